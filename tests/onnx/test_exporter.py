"""torch.onnx.export: onnxruntime computes what the model computes."""

import warnings

import numpy as np
import onnx
import onnxruntime
import pytest

import jaxgrad as torch
from jaxgrad import nn

from .architectures import BATCHED, CASES, architecture


def outputs_of(path, args):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = [value.name for value in session.get_inputs()]
    feed = dict(zip(inputs, [arg.numpy() for arg in args], strict=True))
    return session.run(None, feed)


def results_of(model, args):
    with torch.no_grad():
        result = model(*args)
    return result if isinstance(result, tuple) else (result,)


def check_equal(outputs, results):
    for output, result in zip(outputs, results, strict=True):
        assert output.dtype == result.numpy().dtype
        np.testing.assert_allclose(output, result.numpy(), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_architecture_gives_equal_numbers(name, tmp_path):
    model, args = architecture(name)
    path = tmp_path / "model.onnx"
    torch.onnx.export(model, args, path, external_data=False)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    check_equal(outputs_of(path, args), results_of(model, args))


@pytest.mark.parametrize("name", CASES)
def test_architecture_takes_batches_of_any_size(name):
    model, args = architecture(name)
    batched = BATCHED.get(name, (True,) * len(args))
    batch = torch.export.Dim("batch")
    shapes = tuple([{0: batch} if varies else None for varies in batched])
    program = torch.onnx.export(model, args, dynamic_shapes=shapes)
    pairs = [*zip(args, batched, strict=True)]
    for parts in ([0], [1, 0, 1]):
        others = [torch.cat([arg[n : n + 1] for n in parts]) if v else arg for arg, v in pairs]
        outputs = [output.numpy() for output in program(*others)]
        check_equal(outputs, results_of(model, others))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))

    def forward(self, x, times=1, *, shift=None, pair=()):
        y = self.layer(x) * self.scale * times
        y = y if shift is None else y + shift
        return y + pair[0] * pair[1] if pair else y


def scaled():
    torch.manual_seed(0)
    return Scaled().eval()


def test_parameters_and_buffers_are_initializers_with_their_names():
    model = scaled()
    program = torch.onnx.export(model, (torch.ones(1, 3),))
    tensors = {tensor.name: tensor for tensor in program.model_proto.graph.initializer}
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensors[name]), value.numpy())


def test_inputs_have_the_names_of_parameters_in_their_order():
    model, one = scaled(), torch.ones(2)
    kwargs = {"pair": (one, 3 * one), "shift": 5 * one}
    program = torch.onnx.export(model, (torch.ones(1, 3), 2), kwargs=kwargs)
    assert program.input_names == ["x", "shift", "pair_0", "pair_1"]
    args = torch.randn(1, 3), torch.randn(2), torch.randn(2), torch.randn(2)
    expected = model(args[0], 2, shift=args[1], pair=args[2:])
    check_equal([program(*args)[0].numpy()], [expected.detach()])


def test_names_of_the_user(tmp_path):
    path = str(tmp_path / "m.onnx")
    names = {"input_names": ["image"], "output_names": ["score"]}
    assert torch.onnx.export(scaled(), torch.ones(1, 3), path, dynamo=False, **names) is None
    session = onnxruntime.InferenceSession(path)
    assert [value.name for value in session.get_inputs()] == ["image"]
    assert [value.name for value in session.get_outputs()] == ["score"]
    with pytest.raises(ValueError, match="2 names for 1"):
        torch.onnx.export(scaled(), torch.ones(1, 3), input_names=["a", "b"])


@pytest.mark.parametrize(
    "option",
    [
        {"dynamic_shapes": {"x": {0: "batch"}}},
        {"dynamic_shapes": ({0: "batch"},)},
        {"dynamic_shapes": [("batch", None)]},
        {"dynamic_axes": {"x": {0: "batch"}}, "input_names": ["x"]},
    ],
)
def test_extent_that_varies(option):
    model = scaled()
    program = torch.onnx.export(model, (torch.ones(2, 3),), **option)
    shape = program.model_proto.graph.input[0].type.tensor_type.shape
    assert [dim.dim_param or dim.dim_value for dim in shape.dim] == ["batch", 3]
    for rows in (1, 2, 5):
        x = torch.randn(rows, 3)
        check_equal([program(x)[0].numpy()], [model(x).detach()])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": {0: "batch"}}, "top-level keys must be the arg names"),
        ({"x": {2: "batch"}}, "has 2 dimensions, and none of number 2"),
        ((None, None), "has 2 entries, and there are 1"),
    ],
)
def test_wrong_dynamic_shapes_are_refused(shapes, message):
    with pytest.raises(torch.onnx.OnnxExporterError, match=message):
        torch.onnx.export(scaled(), (torch.ones(2, 3),), dynamic_shapes=shapes)


def test_doubles_stay_doubles():
    model, x = scaled().double(), torch.randn(2, 3, dtype=torch.float64)
    (output,) = torch.onnx.export(model, (x,))(x)
    np.testing.assert_allclose(output.numpy(), model(x).detach().numpy(), rtol=1e-14)


def test_layers_in_training_mode_are_exported_in_evaluation_mode():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="training mode"):
        program = torch.onnx.export(model, (torch.randn(4, 3),))
    assert all(module.training for module in model.modules())
    x = torch.randn(4, 3)
    check_equal([program(x)[0].numpy()], [model.eval()(x).detach()])


class Written(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x + self.calls


def test_model_that_writes_to_a_buffer_is_refused():
    model = Written().eval()
    with pytest.raises(torch.onnx.OnnxExporterError, match="buffer 'calls'"):
        torch.onnx.export(model, (torch.ones(2),))
    assert model.calls == 0


def refused(function, x):
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError) as caught:
        torch.onnx.export(function, (x,))
    return str(caught.value)


def test_operator_without_conversion_is_named_with_its_line():
    def function(x):
        y = torch.sin(x)
        return torch.linalg.svdvals(y @ y) + 1

    message = refused(function, torch.randn(3, 3))
    line = function.__code__.co_firstlineno + 2
    assert (
        f"linalg_svdvals cannot be converted to ONNX, called in {__file__}, line {line}" in message
    )


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(1, 4)
        self.weight = nn.Parameter(torch.randn(4, 4, 3, dtype=torch.complex64))

    def forward(self, x):
        hidden = self.lift(x).permute(0, 2, 1)
        modes = torch.fft.rfft(hidden)[..., :3]
        return torch.fft.irfft(torch.einsum("bix,iox->box", modes, self.weight), n=16)


def test_the_first_operator_of_complex_numbers_is_named():
    message = refused(Spectral().eval(), torch.randn(2, 16, 1))
    line = Spectral.forward.__code__.co_firstlineno + 2
    assert f"_fft_r2c cannot be converted to ONNX, called in {__file__}, line {line}" in message
    assert "complex numbers" in message and "real and imaginary parts" in message


def test_operator_that_is_converted_to_other_values_is_named():
    """jax2onnx approximates this function."""
    message = refused(lambda x: torch.special.gammainc(x, 2 * x).exp(), torch.rand(3) + 0.5)
    assert "igamma" in message and "differ by" in message


def test_operator_that_onnxruntime_refuses_is_named():
    assert "sin cannot" in refused(lambda x: x + torch.sin(x), torch.ones(2, dtype=torch.bfloat16))


def test_code_that_depends_on_values_or_sizes_is_named_with_its_line():
    def on_values(x):
        return x if x.sum() > 0 else -x

    def on_sizes(x):
        return x if x.shape[0] > 5 else -x

    for function in (on_values, on_sizes):
        line = function.__code__.co_firstlineno + 1
        with pytest.raises(torch.onnx.OnnxExporterError, match=rf"test_exporter\.py:{line}"):
            torch.onnx.export(function, (torch.ones(4),), dynamic_shapes=({0: "n"},))


def test_numbers_of_inputs_and_of_sizes(tmp_path):
    class Scaled(nn.Module):
        def forward(self, x):
            row = x[:, 0].argmax().item()
            scaled = x * x.sum().item() * x.shape[0] ** -1
            return scaled, x[row], torch.cond(x.shape[0] > 3, torch.abs, torch.neg, (x,)), row

    path = tmp_path / "model.onnx"
    sizes = ({0: torch.export.Dim("n", min=2)},)
    torch.onnx.export(Scaled().eval(), (torch.ones(3, 1),), path, dynamic_shapes=sizes)
    for column, expected in (  # what torch 2.13 gives
        ([1.0, -4.0], [[-1.5, 6.0], [1.0], [-1.0, 4.0], 0]),
        ([1.0, -4.0, 5.0, 2.0], [[1.0, -4.0, 5.0, 2.0], [5.0], [1.0, 4.0, 5.0, 2.0], 2]),
    ):
        outputs = outputs_of(path, (torch.tensor(column)[:, None],))
        assert [output.ravel().tolist() for output in outputs] == [*expected[:3], [expected[3]]]


def test_one_precision_is_needed():
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="one precision"):
        torch.onnx.export(lambda x: x.double().sum(), (torch.ones(4),))


def test_no_state_of_jax_or_of_logging_is_changed():
    import logging

    import jax

    handlers, wide = [*logging.getLogger().handlers], jax.config.jax_enable_x64
    softmax, add = jax.nn.softmax, jax.numpy.add
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.onnx.export(scaled(), (torch.ones(1, 3),))
    assert logging.getLogger().handlers == handlers
    assert jax.config.jax_enable_x64 == wide
    assert jax.nn.softmax is softmax and jax.numpy.add is add
