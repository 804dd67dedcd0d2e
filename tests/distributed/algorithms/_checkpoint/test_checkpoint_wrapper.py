"""Modules in wrappers that checkpoint or offload. The numbers are PyTorch's."""

import copy

import pytest

import jaxgrad as torch
from jaxgrad.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
from jaxgrad.distributed.fsdp.wrap import ModuleWrapPolicy

nn = torch.nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.tag, self.calls = nn.Linear(2, 2), 7, 0
        self.register_buffer("ones", torch.ones(2))

    def forward(self, x, *, scale=None):
        self.calls += 1
        y = torch.tanh(self.layer(x)) * self.ones
        return y if scale is None else y * scale


def numbers(*shape):
    return (torch.arange(torch.Size(shape).numel()).reshape(shape) + 1.0) / 10


def model():
    layers = nn.Sequential(Block(), nn.ReLU(), Block())
    with torch.no_grad():
        for position, parameter in enumerate(layers.parameters()):
            parameter.copy_(numbers(*parameter.shape) * (-1) ** position)
    return layers


def kinds(module):
    return [type(inner).__name__ for inner in module.modules()]


@pytest.mark.parametrize("form", wrappers.CheckpointImpl)
def test_gradients_of_arguments_by_position_and_by_name(form):
    layers = model()
    layers[0] = wrappers.checkpoint_wrapper(layers[0], form)
    x, scale = numbers(3, 2).requires_grad_(), numbers(2).requires_grad_()
    layers[2](layers[1](layers[0](x, scale=scale))).sum().backward()
    expected = torch.tensor([[0.0, 0.0], [0.03878, 0.05429], [0.03775, 0.05292]])
    torch.testing.assert_close(x.grad, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(scale.grad, torch.tensor([0.03109, 0.13901]), atol=1e-5, rtol=0)
    assert abs(layers[0].layer.weight.grad.sum().item() - 0.2754) < 1e-4
    assert layers[0].tag == 7 and layers[0].calls == 2


def test_names_of_parameters_and_states():
    layers = model()
    wrappers.apply_activation_checkpointing(layers, check_fn=lambda m: isinstance(m, Block))
    assert kinds(layers) == [
        *("Sequential", "CheckpointWrapper", "Block", "Linear", "ReLU"),
        *("CheckpointWrapper", "Block", "Linear"),
    ]
    assert list(layers.state_dict()) == list(model().state_dict())
    wrapped = wrappers.checkpoint_wrapper(model())
    assert list(dict(wrapped.named_parameters())) == list(dict(model().named_parameters()))
    other = copy.deepcopy(layers)
    for parameter in other.parameters():
        nn.init.zeros_(parameter)
    other.load_state_dict(model().state_dict())
    plain = model()
    plain.load_state_dict(layers.state_dict())
    assert torch.equal(other(numbers(3, 2)), layers(numbers(3, 2)))
    assert torch.equal(plain(numbers(3, 2)), layers(numbers(3, 2)))


def test_offloaded_modules_by_a_policy():
    layers, x = model(), numbers(3, 2).requires_grad_()
    policy = ModuleWrapPolicy({Block, nn.Sequential})
    wrappers.apply_activation_checkpointing(layers, wrappers.offload_wrapper, None, policy)
    assert kinds(layers)[:3] == ["Sequential", "OffloadWrapper", "Block"]
    layers(x).sum().backward()
    expected = torch.tensor([[0.0, 0.0], [0.2144, 0.31187], [0.21169, 0.30856]])
    torch.testing.assert_close(x.grad, expected, atol=1e-5, rtol=0)


def test_a_function_in_place_of_checkpoint():
    calls = []

    def call(function, *args, k=1):
        calls.append(k)
        return function(*args)

    wrappers.checkpoint_wrapper(model(), checkpoint_fn=call, k=5)(numbers(3, 2))
    assert calls == [5]


def test_errors():
    with pytest.raises(ValueError, match="Expected 3 to be callable"):
        wrappers.apply_activation_checkpointing(model(), auto_wrap_policy=3)
    with pytest.raises(TypeError, match="abstract"):
        wrappers.ActivationWrapper(model())
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = wrappers.checkpoint_wrapper(model()).nothing
    assert wrappers.checkpoint_wrapper(model())[0].tag == 7
