"""torch.onnx.ONNXProgram: calls, files, weights."""

import numpy as np
import onnx
import onnxruntime
import pytest

import jaxgrad as torch
from jaxgrad import nn


@pytest.fixture(scope="module")
def layer():
    torch.manual_seed(0)
    return nn.Linear(16, 8).eval()


@pytest.fixture
def program(layer):
    return torch.onnx.export(layer, (torch.ones(2, 16),), input_names=["x"], output_names=["y"])


def run(path, **feed):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


def test_file_alone_and_with_external_data(layer, program, tmp_path):
    x = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)
    expected = layer(torch.tensor(x)).detach().numpy()
    for external, names in ((False, ["m.onnx"]), (True, ["m.onnx", "m.onnx.data"])):
        folder = tmp_path / str(external)
        folder.mkdir()
        program.save(folder / "m.onnx", external_data=external)
        assert sorted(path.name for path in folder.iterdir()) == names
        np.testing.assert_allclose(run(folder / "m.onnx", x=x), expected, rtol=1e-5, atol=1e-6)


def test_parameters_may_be_inputs(layer, program, tmp_path):
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    x = np.ones((2, 16), np.float32)
    program.save(tmp_path / "inputs.onnx", keep_initializers_as_inputs=True)
    doubled = run(tmp_path / "inputs.onnx", x=x, weight=2 * weight)
    np.testing.assert_allclose(doubled, x @ (2 * weight).T + bias, rtol=1e-5, atol=1e-6)
    inputs = {value.name for value in program.model_proto.graph.input}
    assert inputs == {"x"}


def test_other_weights(layer, program):
    other = nn.Linear(16, 8)
    x = torch.randn(2, 16)
    program.apply_weights(other.state_dict())
    np.testing.assert_allclose(
        program(x)[0].numpy(), other(x).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ValueError, match="shape"):
        program.apply_weights({"bias": torch.ones(3)})


def test_model_proto_and_printing(program):
    onnx.checker.check_model(program.model_proto)
    assert repr(program).startswith("ONNXProgram(inputs=[x], outputs=['y']")


class Twins(nn.Module):
    """Two layers whose parameters have the same values."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(4), nn.LayerNorm(4)

    def forward(self, x):
        return self.second(self.first(x) * 2 + 2) + 2


def test_optimizing_shares_constants_and_no_parameters():
    model, x = Twins().eval(), torch.randn(3, 4)
    sizes = []
    for optimize in (False, True):
        program = torch.onnx.export(model, (x,), optimize=optimize)
        names = {tensor.name for tensor in program.model_proto.graph.initializer}
        assert names >= model.state_dict().keys()
        sizes.append(len(names))
    assert sizes[1] < sizes[0]
    program.apply_weights({"second.bias": torch.full((4,), 5.0)})
    program.optimize()
    expected = model(x).detach().numpy() + 5
    np.testing.assert_allclose(program(x)[0].numpy(), expected, rtol=1e-5, atol=1e-6)


def test_report_lists_operators(layer, tmp_path):
    torch.onnx.export(layer, (torch.ones(2, 16),), report=True, artifacts_dir=tmp_path)
    (report,) = tmp_path.iterdir()
    assert "| MatMul | 1 |" in report.read_text() or "| Gemm | 1 |" in report.read_text()
