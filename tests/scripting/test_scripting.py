"""Traced and scripted modules, and their files."""

import copy
import io

import pytest

import jaxgrad as torch
from jaxgrad import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).eval()


def loaded(module, **options):
    file = io.BytesIO()
    torch.jit.save(module, file, **options)
    file.seek(0)
    return torch.jit.load(file, map_location="cpu")


def test_a_traced_module_is_the_module():
    original = model()
    traced = torch.jit.trace(original, torch.ones(2, 3))
    assert isinstance(traced, torch.jit.ScriptModule) and isinstance(traced, nn.Sequential)
    assert isinstance(traced, torch.jit.TopLevelTracedModule)
    assert traced.original_name == "Sequential" and repr(traced) == repr(original)
    assert traced[0].weight is original[0].weight
    assert [*traced.state_dict()] == [*original.state_dict()]
    assert isinstance(copy.deepcopy(traced), torch.jit.ScriptModule)
    assert not isinstance(original, torch.jit.ScriptModule)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.jit.trace(original, torch.ones(2, 4))


def test_a_module_from_a_file():
    original = model()
    module = loaded(torch.jit.trace(original, torch.ones(2, 3)))
    x = torch.randn(5, 3)
    torch.testing.assert_close(module(x), original(x))
    assert isinstance(module, torch.jit.ScriptModule) and module.original_name == "Sequential"
    assert [*module.state_dict()] == [*original.state_dict()]
    module(x).sum().backward()
    original(x).sum().backward()
    weight = module.get_parameter("0.weight")
    torch.testing.assert_close(weight.grad, original[0].weight.grad)
    assert "stablehlo" in module.graph and "torch.ops.aten.linear.default(input_1" in module.code
    assert module.train().eval() is module
    torch.testing.assert_close(loaded(module)(x), module(x))
    with pytest.raises(AssertionError, match=r"size\(\)\[1\] == 3, and it is 4"):
        module(torch.ones(5, 4))


def test_scripted_modules_and_functions():
    original = model()
    scripted = torch.jit.script(original)
    assert isinstance(scripted, torch.jit.RecursiveScriptModule)
    x = torch.randn(2, 3)
    file = io.BytesIO()
    with pytest.raises(RuntimeError, match=r"save\(path, example_inputs=\(x,\)\)"):
        scripted.save(file)
    scripted.save(file, example_inputs=x)
    file.seek(0)
    torch.testing.assert_close(torch.jit.load(file)(x), original(x))
    with_example = torch.jit.script(original, example_inputs=[(x,)])
    torch.testing.assert_close(loaded(torch.jit.freeze(with_example))(x), original(x))

    def function(x):
        return x * 2

    assert torch.jit.script(function) is function
    traced = torch.jit.trace(function, torch.ones(2))
    assert isinstance(traced, torch.jit.ScriptFunction) and traced.name == "function"
    assert traced(torch.ones(3)).tolist() == loaded(traced)(torch.ones(3)).tolist() == [2.0] * 3


def test_extra_files_and_errors(tmp_path):
    traced = torch.jit.trace(nn.ReLU(), torch.ones(2))
    traced.save(tmp_path / "m.pt", _extra_files={"a.txt": "text"})
    files = {"a.txt": ""}
    torch.jit.load(tmp_path / "m.pt", _extra_files=files)
    assert files == {"a.txt": b"text"}
    assert torch.export.load(tmp_path / "m.pt").module()(-torch.ones(3)).tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.load(tmp_path / "none.pt")
    with pytest.raises(AttributeError, match="has no attribute 'save'"):
        torch.jit.save(nn.ReLU(), tmp_path / "n.pt")
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        torch.jit.freeze(nn.ReLU())
    both = torch.jit.trace_module(Both(), {"forward": torch.ones(1), "other": torch.ones(1)})
    assert both.other(torch.ones(1)).item() == 3
    with pytest.raises(RuntimeError, match="forward alone, and trace_module got inputs of other"):
        both.save(tmp_path / "n.pt")
    other = torch.jit.trace_module(Both(), {"other": torch.ones(1)})
    assert other.other(torch.ones(1)).item() == 3


class Both(nn.Module):
    def forward(self, x):
        return x * 2

    def other(self, x):
        return x * 3


@pytest.mark.parametrize("value", [3, "a", None, 0.5])
def test_script_refuses_numbers_and_texts(value):
    with pytest.raises(TypeError, match="is a built-in class"):
        torch.jit.script(value)
