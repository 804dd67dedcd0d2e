"""Modules as functions of their parameters, against the same arithmetic by hand."""

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import func, nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x))


X = torch.tensor([[1.0, 2.0], [0.5, -1.0]])


@pytest.mark.row("K17")
def test_a_call_with_other_parameters():
    layer = nn.Linear(2, 3)
    weight = torch.tensor(np.arange(6.0).reshape(3, 2), dtype=torch.float32, requires_grad=True)
    before = layer.weight
    output = func.functional_call(layer, {"weight": weight}, X)
    np.testing.assert_allclose(
        output.detach().numpy(), (X @ weight.detach().T + layer.bias.detach()).numpy(), rtol=1e-6
    )
    output.sum().backward()
    assert weight.grad.tolist() == [[1.5, 1.0]] * 3
    assert layer.weight is before and before.grad is None and layer.bias.grad is not None


@pytest.mark.row("K17")
def test_errors_of_functional_call():
    layer, weight = nn.Linear(2, 3), torch.ones(3, 2)
    for error, message, parameters, strict in (
        (
            RuntimeError,
            r"reparametrizing for Linear:\n\tMissing key\(s\): 'bias'\.",
            {"weight": weight},
            True,
        ),
        (RuntimeError, r"Unexpected key\(s\): 'z'", {"weight": weight, "bias": X, "z": X}, True),
        (ValueError, r"\['weight'\] appeared in multiple", [{"weight": weight}] * 2, False),
        (ValueError, "to be a dict, or a list/tuple of dicts", 3, False),
        (ValueError, "all elements of", [3], False),
    ):
        with pytest.raises(error, match=message):
            func.functional_call(layer, parameters, (X,), strict=strict)
    assert func.functional_call(layer, {"z": X}, X).shape == (2, 3)


@pytest.mark.row("K17")
def test_tied_weights_of_functional_call():
    tied, twice = Tied(), {"a.weight": 2 * torch.eye(2)}
    assert func.functional_call(tied, twice, X).tolist() == (4 * X).tolist()
    with pytest.raises(ValueError, match="which are tied"):
        func.functional_call(tied, twice | {"b.weight": torch.eye(2)}, X)
    both = twice | {"b.weight": 3 * torch.eye(2)}
    output = func.functional_call(tied, both, X, tie_weights=False)
    assert output.tolist() == (9 * X).tolist()  # one module, whose weight was replaced twice


@pytest.mark.row("K18")
@pytest.mark.slow
def test_an_ensemble_of_stacked_modules():
    torch.manual_seed(1)
    models = [nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)) for _ in range(4)]
    parameters, buffers = func.stack_module_state(models)
    assert (
        all(parameter.requires_grad and parameter.is_leaf for parameter in parameters.values())
        and not buffers
    )

    def call(parameters, x):
        return func.functional_call(models[0], parameters, (x,))

    for mapped in (
        func.vmap(call, in_dims=(0, None)),
        torch.jit(func.vmap(call, in_dims=(0, None))),
    ):
        outputs = mapped(parameters, X)
        wanted = torch.stack([model(X) for model in models])
        np.testing.assert_allclose(outputs.detach().numpy(), wanted.detach().numpy(), rtol=1e-5)
    outputs.sum().backward()
    wanted.sum().backward()
    for name, stacked in parameters.items():
        gradients = [dict(model.named_parameters())[name].grad for model in models]
        np.testing.assert_allclose(
            stacked.grad.numpy(), torch.stack(gradients).numpy(), rtol=1e-5, atol=1e-6
        )


@pytest.mark.row("K18")
def test_what_cannot_be_stacked():
    layer = nn.Linear(2, 3)
    for models, message in (
        ([], "at least one model, got 0"),
        ([layer, nn.Linear(2, 3).eval()], "same training/eval mode"),
        ([layer, nn.ReLU()], "of the same class"),
        ([layer, nn.Linear(2, 3).requires_grad_(False)], "weight.*same .requires_grad"),
    ):
        with pytest.raises(RuntimeError, match=message):
            func.stack_module_state(models)


@pytest.mark.row("K16")
def test_per_sample_gradients_of_a_module():
    model = nn.Linear(2, 1)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(parameters, x):
        return func.functional_call(model, parameters, (x,)).square().sum()

    gradients = func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, X)
    for row, x in enumerate(X):
        model.zero_grad()
        model(x).square().sum().backward()
        for name, parameter in model.named_parameters():
            np.testing.assert_allclose(
                gradients[name][row].numpy(), parameter.grad.numpy(), rtol=1e-5
            )


class Counts(nn.Module):
    """A module that assigns a new tensor to its buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.scale = torch.ones(1)

    def forward(self, x):
        self.count = self.count + 1
        return x * self.scale + self.count


def test_assigned_members_are_in_the_dict_afterwards():
    module, count = Counts(), torch.tensor([2.0])
    state = {"count": count}
    assert func.functional_call(module, state, torch.zeros(1)).tolist() == [3]
    assert module.count.tolist() == [0] and count.tolist() == [2]
    assert state["count"].tolist() == [3]


def test_attributes_are_replaced_too():
    """PyTorch replaces what is no parameter and no buffer as well."""
    module = Counts()
    assert func.functional_call(module, {"scale": torch.zeros(1)}, torch.ones(1)).tolist() == [1]
    assert module.scale.tolist() == [1]
    assert "extra" not in vars(module)
    func.functional_call(module, {"extra": torch.zeros(1)}, torch.ones(1))
    assert "extra" not in vars(module)
    layer = nn.Linear(1, 1)
    weight = torch.ones(1, 1)
    state = {"weight": weight, "bias": None}
    assert func.functional_call(layer, state, torch.tensor([4.0])).tolist() == [4]
    assert layer.bias is not None
    module.scale = 2.0
    with pytest.raises(TypeError, match=r"attribute `scale`: 2\.0 is not an instance of torch.Ten"):
        func.functional_call(module, {"scale": torch.zeros(1)}, torch.ones(1))
