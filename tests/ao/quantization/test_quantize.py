"""Models that become quantized: numbers are those of PyTorch 2.13 with FBGEMM."""

import io

import numpy as np
import pytest
from helpers.quantized import filled, numbers

import jaxgrad as torch

nn, q = torch.nn, torch.ao.quantization


def model():
    layers = q.QuantStub(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), q.DeQuantStub()
    return filled(nn.Sequential(*layers))


def after_training(backend):
    fused = q.fuse_modules(model().eval(), ["1", "2"])
    fused.qconfig = q.get_default_qconfig(backend)
    prepared = q.prepare(fused)
    for factor in (1.0, 2.0):
        prepared(numbers(6, 4) * factor)
    return q.convert(prepared)


@pytest.mark.parametrize(
    ("backend", "expected", "integers"),
    [
        (
            "x86",
            [[-1.839259, 1.594024], [0.122617, 1.103555]],
            [[-127, 108, 83], [127, 71, 14]],
        ),
        (
            "qnnpack",
            [[-1.801512, 1.557239], [0.122136, 1.129762]],
            [[-127, 108, 83], [57, 32, 6]],
        ),
    ],
)
def test_after_training(backend, expected, integers):
    converted = after_training(backend)
    kinds = [type(layer).__name__ for layer in converted]
    assert kinds == ["Quantize", "LinearReLU", "Identity", "Linear", "DeQuantize"]
    assert converted[3].weight().int_repr().tolist() == integers
    np.testing.assert_allclose(converted(numbers(2, 4)).tolist(), expected, atol=1e-5)
    assert not any(hasattr(layer, "qconfig") for layer in converted)
    assert not any(layer._forward_hooks for layer in converted)


def test_files_of_quantized_models():
    converted, file = after_training("x86"), io.BytesIO()
    torch.save(converted.state_dict(), file)
    file.seek(0)
    layers = torch.ao.nn.quantized.Quantize(1.0, 0, torch.quint8), nn.Identity()
    other = nn.Sequential(layers[0], type(converted[1])(4, 3), layers[1], type(converted[3])(3, 2))
    other.append(torch.ao.nn.quantized.DeQuantize())
    other.load_state_dict(torch.load(file))
    assert other(numbers(2, 4)).equal(converted(numbers(2, 4)))


@pytest.mark.parametrize(
    ("backend", "losses", "expected"),
    [
        (
            "x86",
            [1.691395, 1.22616, 0.626934],
            [[-0.456621, 0.684932], [0.085616, 0.542238]],
        ),
        (
            "qnnpack",
            [1.655802, 1.190063, 0.572714],
            [[-0.434727, 0.645078], [0.098164, 0.546914]],
        ),
    ],
)
def test_in_training(backend, losses, expected):
    trained = model().train()
    trained.qconfig = q.get_default_qat_qconfig(backend)
    prepared = q.prepare_qat(trained)
    optimizer = torch.optim.SGD(prepared.parameters(), 0.1)
    for factor, number in zip((1.0, 2.0, 1.5), losses, strict=True):
        loss = (prepared(numbers(6, 4) * factor) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert loss.item() == pytest.approx(number, abs=1e-5)
    converted = q.convert(prepared.eval())
    np.testing.assert_allclose(converted(numbers(2, 4)).tolist(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.qint8, [[-1.78953, 1.56367], [0.09738, 1.13035]]),
        (torch.float16, [[-1.79092, 1.57064], [0.0978, 1.13014]]),
    ],
)
def test_dynamic(dtype, expected):
    layers = filled(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
    converted = q.quantize_dynamic(layers, {nn.Linear}, dtype)
    np.testing.assert_allclose(converted(numbers(2, 4)).tolist(), expected, atol=1e-5)
    assert repr(converted[0]).startswith(
        f"DynamicQuantizedLinear(in_features=4, out_features=3, dtype={dtype}"
    )
    assert type(layers[0]) is nn.Linear


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        (
            nn.LSTM,
            {"bidirectional": True},
            [[0.05707, -0.07579, 0.06675, -0.04689], [0.07214, -0.07121, 0.0236, 0.04551]],
        ),
        (nn.GRU, {"num_layers": 2}, [[0.05504, -0.01204], [0.07988, -0.06779]]),
    ],
)
def test_dynamic_recurrent_layers(kind, options, expected):
    layer = filled(kind(3, 2, **options))
    converted = q.quantize_dynamic(nn.Sequential(layer))[0]
    outputs, _ = converted(numbers(2, 1, 3))
    np.testing.assert_allclose(outputs.flatten(0, 1).tolist(), expected, atol=1e-5)


def test_packed_sequences_are_those_alone():
    """Examples of one length, packed, are the batch; states come back in the order of the batch."""
    layer = q.quantize_dynamic(nn.Sequential(filled(nn.LSTM(3, 2))))[0]
    x = numbers(4, 2, 3)
    outputs, state = layer(x)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 4]))
    results, after = layer(packed)
    assert results.data.equal(outputs.flatten(0, 1)) and after[1].equal(state[1])
    ragged = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 4]), enforce_sorted=False)
    _, (hidden, _) = layer(ragged)
    assert hidden.shape == (1, 2, 2) and not hidden[0, 0].equal(state[0][0, 0])


def test_layers_of_two_operands():
    f = torch.ao.nn.quantized.FloatFunctional()
    f.activation_post_process = q.MinMaxObserver()
    f.add_relu(torch.tensor([1.0, 2.0]), torch.tensor([-3.0, 3.1]))
    operators = torch.ao.nn.quantized.QFunctional.from_float(f)
    x = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.1, 10, torch.quint8)
    assert operators.scale == pytest.approx(0.02) and operators.zero_point == 0
    assert operators.add_relu(x, x).int_repr().tolist() == [100, 200]
    with pytest.raises(RuntimeError, match="not intended to use the 'forward'"):
        operators(x)


def test_fusion_with_normalization():
    """In evaluation a convolution takes the factors of its normalization in."""
    layers = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU()).eval()
    layers[1].running_var.fill_(0.25)
    fused = q.fuse_modules(layers, ["0", "1", "2"])
    assert type(fused[0]) is torch.ao.nn.intrinsic.ConvReLU2d
    x = numbers(1, 1, 2, 2)
    np.testing.assert_allclose(fused(x).tolist(), layers(x).tolist(), 1e-5)
    with pytest.raises(AssertionError, match="did not find fuser method for"):
        q.fuse_modules(nn.Sequential(nn.ReLU(), nn.ReLU()), ["0", "1"])


def test_wrong_arguments():
    with pytest.raises(AssertionError, match="only works on models in training mode"):
        q.prepare_qat(model().eval())
    with pytest.raises(ValueError, match="please pass observer class instead"):
        q.QConfig(q.MinMaxObserver(), q.default_weight_observer)
    with pytest.raises(AssertionError, match="backend: tpu not supported"):
        q.get_default_qconfig("tpu")
    with pytest.raises(ValueError, match="Don't know how to quantize with default settings"):
        q.quantize_dynamic(model(), dtype=torch.int8)
    with pytest.warns(UserWarning, match="None of the submodule got qconfig applied"):
        q.prepare(model())


def test_histogram_observer():
    observer = q.HistogramObserver(bins=8)
    for row in ([0.0, 1.0, 2.0, 2.0], [-1.0, 0.5, 9.0]):
        observer(torch.tensor(row))
    assert observer.histogram.tolist() == [2, 2, 2, 0, 0, 0, 0, 1]
    scale, zero_point = observer.calculate_qparams()
    assert scale.item() == pytest.approx(0.03431372717022896) and zero_point.tolist() == [29]
    observer = q.HistogramObserver()  # which leaves out no number that is far from the others
    observer(torch.cat([numbers(400), torch.tensor([40.0])]))
    scale, zero_point = observer.calculate_qparams()
    assert scale.item() == pytest.approx(0.1607058048248291) and zero_point.tolist() == [6]
    with pytest.warns(UserWarning, match="inf detected"):
        observer(torch.tensor([float("inf")]))


def test_which_convolutions_of_one_dimension_round_their_weights_in_training():
    """As in PyTorch: those of traced models, and those with normalization."""
    qat, qconfig = torch.ao.nn.qat, q.get_default_qat_qconfig("fbgemm")
    layers = nn.Conv1d(2, 3, 3), nn.ReLU(), nn.Conv1d(3, 3, 1)
    model = q.fuse_modules_qat(nn.Sequential(*layers).train(), ["0", "1"])
    model.qconfig = qconfig
    model = q.prepare_qat(model)
    assert type(model[0]) is torch.ao.nn.intrinsic.ConvReLU1d and type(model[2]) is nn.Conv1d
    mapping = q.QConfigMapping().set_global(qconfig)
    traced = q.quantize_fx.prepare_qat_fx(
        nn.Sequential(*layers).train(), mapping, (torch.ones(1, 2, 9),)
    )
    kinds = [type(layer) for layer in traced.modules()]
    assert torch.ao.nn.intrinsic.qat.ConvReLU1d in kinds and qat.Conv1d in kinds
