"""An export without the optional packages says what to install."""

import sys

import pytest

import jaxgrad as torch


@pytest.mark.parametrize("package", ["jax2onnx", "onnx_ir"])
def test_export_names_the_extra(package, monkeypatch, tmp_path):
    for name in ("jax2onnx", "onnx_ir"):
        monkeypatch.setitem(sys.modules, name, None if name == package else sys)
    with pytest.raises(ModuleNotFoundError, match=rf"{package}.*pip install 'jaxgrad\[onnx\]'"):
        torch.onnx.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),), tmp_path / "m.onnx")
    assert not [*tmp_path.iterdir()]


def test_other_modes_than_evaluation_are_refused():
    layer, x = torch.nn.Linear(2, 1), torch.ones(1, 2)
    with pytest.raises(NotImplementedError, match="evaluation mode"):
        torch.onnx.export(layer, (x,), training=torch.onnx.TrainingMode.TRAINING)


def test_errors_are_those_of_pytorch():
    errors = torch.onnx.errors
    assert issubclass(errors.UnsupportedOperatorError, torch.onnx.OnnxExporterError)
    assert issubclass(torch.onnx.OnnxExporterError, RuntimeError)
