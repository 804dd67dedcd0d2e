"""Modules that round in training, by the formula of affine quantization."""

import copy

import pytest

import jaxgrad as torch

q = torch.ao.quantization


def test_values_and_gradients():
    module = q.FakeQuantize(q.MinMaxObserver, quant_min=0, quant_max=3)
    # the range is from 0 to 6, so the scale is 2
    assert module(torch.tensor([0.0, 1.5, 6.0])).tolist() == [0, 2, 6]
    module.disable_observer()
    x = torch.tensor([0.5, 2.9, 9.0, -4.0], requires_grad=True)
    y = module(x)
    assert y.tolist() == [0, 2, 6, 0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [0, 4, 0, 0]
    module.disable_fake_quant()
    assert module(x) is x


def test_channels_and_state():
    options = {"dtype": torch.qint8, "qscheme": torch.per_channel_symmetric}
    module = q.FakeQuantize(q.PerChannelMinMaxObserver, -2, 1, **options)
    result = module(torch.tensor([[1.5, 0.2], [3.0, -1.4]]))
    # the scales are 1.5 / 1.5 and 3 / 1.5
    assert module.scale.tolist() == [1.0, 2.0]
    assert result.tolist() == [[1.0, 0.0], [2.0, -2.0]]
    other = q.FakeQuantize(q.PerChannelMinMaxObserver, -2, 1, **options)
    other.load_state_dict(module.state_dict())
    assert other.scale.tolist() == [1.0, 2.0]


def test_training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), q.default_fake_quant())
    model(torch.ones(2, 3)).sum().backward()
    assert (model[0].weight.grad != 0).any()
    model.apply(q.disable_observer)
    assert model[1].observer_enabled.tolist() == [0]


def test_fixed_parameters():
    make = q.FixedQParamsObserver.with_args(scale=0.5, zero_point=1, quant_max=3)
    module = q.FixedQParamsFakeQuantize(make)
    assert module(torch.tensor([-3.0, 0.3, 9.0])).tolist() == [-0.5, 0.5, 1.0]


def test_what_raises():
    with pytest.raises(AssertionError, match="less than or equal"):
        q.FakeQuantize(quant_min=5, quant_max=1)
    with pytest.raises(AssertionError, match="quant_min out of bound"):
        q.FakeQuantize(quant_min=-8, quant_max=7)


def test_the_older_name():
    assert torch.quantization.FakeQuantize is q.FakeQuantize


@pytest.mark.slow
@pytest.mark.parametrize("name", ["default_fake_quant", "default_per_channel_weight_fake_quant"])
def test_an_exported_program_has_the_switches(name):
    # PyTorch's export refuses these modules: their code depends on the values of buffers
    torch.manual_seed(0)
    model = getattr(torch.ao.quantization, name)()
    model(torch.randn(4, 4))
    reference = copy.deepcopy(model)
    module = torch.export.export(model, (torch.randn(4, 4),), platforms=("cpu",)).module()
    for observes, rounds in ((1, 1), (0, 1), (1, 0), (0, 0)):
        for member in (module, reference):
            member.observer_enabled.fill_(observes)
            member.fake_quant_enabled.fill_(rounds)
        x = torch.randn(4, 4)
        torch.testing.assert_close(module(x), reference(x))
        for (path, buffer), wanted in zip(module.named_buffers(), reference.buffers(), strict=True):
            torch.testing.assert_close(buffer, wanted, msg=path)
