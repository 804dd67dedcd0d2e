"""Models that are traced and quantized as graphs: numbers are those of PyTorch 2.13."""

import io
import operator

import numpy as np
import pytest
from helpers.quantized import filled, numbers

import jaxgrad as torch

nn, F, q = torch.nn, torch.nn.functional, torch.ao.quantization


class Residual(nn.Module):
    """Convolutions with batch normalization, a sum with relu, and pools."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 1)
        self.norm, self.head = nn.BatchNorm2d(2), nn.Linear(2, 3)

    def forward(self, x):
        y = F.relu(self.norm(self.first(x)))
        y = F.max_pool2d(F.relu(self.second(y) + x), 2).mean([2, 3])
        return torch.sigmoid(self.head(torch.cat([y.view(-1, 1, 2), y.unsqueeze(1)], 1)))


class Functions(nn.Module):
    """A product with a parameter, and functions that have no kernel for quantized tensors."""

    def __init__(self):
        super().__init__()
        self.weight, self.layer = nn.Parameter(torch.ones(3, 4)), nn.Linear(4, 4)

    def forward(self, x):
        y = F.relu(F.linear(self.layer(x), self.weight))
        return F.softmax(y * y + 0.5, -1), F.gelu(y), y.size(0)


def prepared(model, train=False, mapping=None):
    model = filled(model).train(train)
    prepare = q.quantize_fx.prepare_qat_fx if train else q.quantize_fx.prepare_fx
    name = "get_default_qat_qconfig_mapping" if train else "get_default_qconfig_mapping"
    return prepare(model, getattr(q, name)("x86") if mapping is None else mapping, ())


def converted(model, *shape, train=False, mapping=None):
    result = prepared(model, train, mapping)
    for factor in (0.93, 0.61):
        result(numbers(*shape) * factor + 0.011)
    return q.quantize_fx.convert_fx(result.eval())


def close(result, expected):
    np.testing.assert_allclose(result.tolist(), expected, atol=1e-5)


def test_after_training():
    model = converted(Residual(), 2, 2, 4, 4)
    names = {name: layer._get_name() for name, layer in model.named_children()}
    assert names == {
        "first": "QuantizedConvReLU2d",
        "second": "QuantizedConv2d",
        "head": "QuantizedLinear",
    }
    called = [node.target for node in model.graph.nodes if node.op == "call_function"]
    assert torch.ops.quantized.add_relu in called and operator.add not in called
    close(
        model(numbers(2, 2, 4, 4) * 0.9),
        [
            [[0.4375, 0.957031, 0.761719], [0.4375, 0.957031, 0.761719]],
            [[0.394531, 0.949219, 0.757812], [0.394531, 0.949219, 0.757812]],
        ],
    )


def test_in_training():
    model = prepared(Residual(), train=True)
    assert type(model.first) is torch.ao.nn.intrinsic.qat.ConvBnReLU2d
    optimizer, losses = torch.optim.SGD(model.parameters(), 0.1), []
    for factor in (0.93, 0.61):
        optimizer.zero_grad()
        loss = model(numbers(2, 2, 4, 4) * factor + 0.011).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, [6.214813, 5.449677], rtol=1e-4)
    close(
        q.quantize_fx.convert_fx(model.eval())(numbers(2, 2, 4, 4) * 0.9),
        [
            [[0.4375, 0.835938, 0.527344], [0.4375, 0.835938, 0.527344]],
            [[0.4375, 0.839844, 0.53125], [0.4375, 0.839844, 0.53125]],
        ],
    )


def test_functions():
    model = converted(Functions(), 3, 4)
    probabilities, activated, count = model(numbers(3, 4) * 0.9)
    close(
        probabilities,
        [[0.333333, 0.333333, 0.333333], [0.99923, 0.000385, 0.000385], [0.999986, 7e-06, 7e-06]],
    )
    close(activated, [[0.0, 0.043989, 0.0], [2.799558, 0.0, 0.093371], [3.438439, 0.0, 0.0]])
    assert count == 3


@pytest.mark.parametrize("make", [Residual, Functions])
def test_files(make):
    shape = (2, 2, 4, 4) if make is Residual else (3, 4)
    model, other, file = converted(make(), *shape), converted(make(), *shape), io.BytesIO()
    with torch.no_grad():
        for buffer in other.buffers():
            buffer.zero_()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    results = (part(numbers(*shape)) for part in (model, other))
    expected, result = (part if make is Residual else part[0] for part in results)
    assert result.equal(expected)


def test_layers_that_quantize_at_each_call():
    mapping = q.QConfigMapping().set_global(q.default_dynamic_qconfig)
    layers = nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)
    model = converted(nn.Sequential(*layers), 2, 4, mapping=mapping)
    assert [layer._get_name() for layer in model.children()] == [
        "DynamicQuantizedLinearReLU",
        "DynamicQuantizedLinear",
    ]
    close(model(numbers(2, 4)), [[-1.789528, 1.563667], [0.09738, 1.130348]])


def test_what_a_mapping_leaves_out():
    qconfig = q.get_default_qconfig("x86")
    layers = nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Linear(3, 2)
    for mapping, expected in (
        (q.QConfigMapping().set_global(qconfig).set_module_name("1", None), "Q-Q"),
        (q.QConfigMapping().set_global(qconfig).set_module_name_regex("[01].*", None), "--Q"),
        (q.QConfigMapping().set_object_type(nn.Linear, qconfig), "QQQ"),
        (q.QConfigMapping.from_dict({"": qconfig, "module_name": [("0", None)]}), "-QQ"),
        ({"": None, "module_name": [("2", qconfig)]}, "--Q"),
    ):
        model = converted(nn.Sequential(*layers), 2, 4, mapping=mapping)
        parts = model.get_submodule("0"), model.get_submodule("1.0"), model.get_submodule("2")
        kinds = ["Q" if part._get_name().startswith("Quantized") else "-" for part in parts]
        assert "".join(kinds) == expected


def test_modules_that_are_not_traced():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(x) if x.sum() > -100 else x

    model = filled(nn.Sequential(Branches(), nn.Linear(3, 2))).eval()
    config = q.quantize_fx.PrepareCustomConfig().set_non_traceable_module_names(["0"])
    mapping = q.get_default_qconfig_mapping("x86")
    observed = q.quantize_fx.prepare_fx(model, mapping, (), config)
    observed(numbers(2, 3))
    result = q.quantize_fx.convert_fx(observed)
    assert [type(layer).__name__ for layer in result.children()] == ["Branches", "Linear"]
    assert result.get_submodule("1")._get_name() == "QuantizedLinear"


def test_fused_layers():
    layers = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 1, 1)
    model = filled(nn.Sequential(*layers)).eval()
    fused = q.quantize_fx.fuse_fx(model)
    assert [type(layer).__name__ for layer in fused.children()] == ["ConvReLU2d", "Conv2d"]
    x = numbers(1, 1, 2, 2)
    np.testing.assert_allclose(fused(x).tolist(), model(x).tolist(), atol=1e-6)


def test_what_is_not_provided():
    with pytest.raises(NotImplementedError, match="prepare_fx: backend_config is not provided"):
        q.quantize_fx.prepare_fx(nn.Linear(2, 2), q.QConfigMapping(), (), backend_config=3)
    mapping = q.QConfigMapping().set_global(q.float16_static_qconfig)
    with pytest.raises(NotImplementedError, match="results of float16 are not provided"):
        q.quantize_fx.prepare_fx(nn.Sequential(nn.Linear(2, 2)).eval(), mapping, ())
