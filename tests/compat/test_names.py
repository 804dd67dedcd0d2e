"""Names of PyTorch that programs use around their computation."""

import pickle
import typing

import pytest

import jaxgrad as torch
from jaxgrad.torch_version import TorchVersion


def test_names_of_torch_jit_leave_functions_as_they_are():
    def double(x):
        return x * 2

    jit = torch.jit
    for mark in (jit.script, jit.ignore, jit.unused, jit.export, jit.interface):
        assert mark(double) is double
    assert jit.ignore(drop=True)(double) is double and jit.trace(double, (1,)) is double
    assert not jit.is_scripting() and not jit.is_tracing() and jit.Final is typing.Final
    assert jit.annotate(int, 3) == 3 and jit.script_method(double) is double
    assert jit(double)(torch.ones(2)).tolist() == [2, 2]  # it is the compiler itself
    traced = jit.trace(torch.nn.Linear(2, 1), torch.ones(1, 2))
    assert list(traced.state_dict()) == ["weight", "bias"] and traced(torch.ones(1, 2)).shape == (
        1,
        1,
    )
    assert jit.freeze(traced.eval()) is jit.trace_module(traced, {"forward": 1}) is traced


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([1, 2], typing.List[int], True),  # noqa: UP006
        ([1, "a"], list[int], False),
        ({"a": [1]}, dict[str, list[int]], True),
        ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        (None, typing.Optional[int], True),  # noqa: UP045
        ("a", typing.Union[int, float], False),  # noqa: UP007
        ([], list[int], True),
        (3, (int, str), True),
    ],
)
def test_types_of_torch_jit(value, kind, expected):
    assert torch.jit.isinstance(value, kind) is expected


def test_other_names_of_torch_jit():
    jit = torch.jit

    class Net(jit.ScriptModule):
        @jit.script_method
        def forward(self, x):
            return x * 2

    assert isinstance(Net(), torch.nn.Module) and Net()(torch.ones(1)).item() == 2
    assert not isinstance(torch.nn.Linear(1, 1), jit.ScriptModule)
    future = jit.fork(lambda x: x + 1, 2)
    assert jit.wait(future) == 3 and future.then(lambda each: each.wait() * 2).value() == 6
    with pytest.raises(RuntimeError, match="nothing has set the result"):
        jit.Future().wait()
    with jit.optimized_execution(False), jit.strict_fusion():
        assert jit.Attribute(1, int).value == 1 and issubclass(jit.Error, RuntimeError)
    assert not jit.onednn_fusion_enabled() and jit.export_opnames(Net()) == []
    for name in ("save", "load", "CompilationUnit", "last_executed_optimized_graph"):
        with pytest.raises(NotImplementedError, match=f"torch.jit.{name} is not provided"):
            getattr(jit, name)()


def test_modules_that_are_not_provided_say_so_when_called():
    class Tracer(torch.fx.Tracer):
        pass

    assert not isinstance(3, torch.fx.GraphModule) and torch.fx.wrap(len) is len
    for call in (torch.onnx.export, torch.hub.load, torch.ao.quantize, torch.jit.load, Tracer):
        with pytest.raises(NotImplementedError, match="is not provided by jaxgrad: "):
            call()


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (
            lambda: torch.Tensro,
            "module 'jaxgrad' has no attribute 'Tensro': not provided by .*'Tensor'",
        ),
        (lambda: torch.optim.Adm, "module 'jaxgrad.optim' has no attribute 'Adm': .*'Adam'"),
        (lambda: torch.nn.modules.conv.Conv22d, "has no attribute 'Conv22d': .*'Conv2d'"),
        (lambda: torch.quantize_per_tensor, "not provided by jaxgrad"),
    ],
)
def test_names_that_are_missing(find, text):
    with pytest.raises(AttributeError, match=text):
        find()
    assert not hasattr(torch, "Tensro")


def test_versions_compare_by_their_numbers():
    version = torch.version.__version__
    assert version == "2.13.0" and version == (2, 13) and version > "2.9" and version >= (2, 13)
    assert "2.9.1" < version < "10.0" and not version <= "2.12.9+cpu" and version != "2.13.1"
    assert isinstance(version, str) and pickle.loads(pickle.dumps(version)) == version
    assert version != 2.13
    with pytest.raises(ValueError, match="Invalid version: 'new'"):
        TorchVersion.__gt__(version, "new")


def test_backends_and_devices_that_are_not_there():
    backends = torch.backends
    backends.cudnn.benchmark = True
    with backends.cudnn.flags(enabled=False):
        assert not backends.cudnn.enabled
    assert backends.cudnn.enabled and backends.cudnn.benchmark
    backends.cudnn.benchmark = False
    assert not (backends.mps.is_available() or backends.mps.is_built() or torch.mps.is_available())
    assert torch.cuda.is_available() == backends.cudnn.is_available()
    assert torch.cuda.device_count() == 0 and not torch.cuda.is_initialized()
    for call in (torch.cuda.current_device, torch.cuda.synchronize, torch.cuda.memory_allocated):
        with pytest.raises(RuntimeError, match="there is no device cuda: JAX found cpu"):
            call()
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.get_device_name("cpu")
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.manual_seed_all(3)
    with pytest.raises(RuntimeError, match="Both events must be recorded"):
        torch.cuda.Event().elapsed_time(torch.cuda.Event())


def test_constants():
    assert (torch.newaxis, torch.inf) == (None, float("inf")) and torch.nan != torch.nan
    assert (round(torch.pi, 8), round(torch.e, 8)) == (3.14159265, 2.71828183)


def test_accelerator():
    accelerator = torch.accelerator
    assert not accelerator.is_available() and accelerator.device_count() == 0
    assert accelerator.current_accelerator() is None
    accelerator.synchronize("cpu")
    for call in (accelerator.synchronize, accelerator.current_device_index):
        with pytest.raises(RuntimeError, match="there is no accelerator"):
            call()


def test_assert():
    torch._assert(torch.ones(2).sum() == 2, "not shown")
    with pytest.raises(AssertionError, match="the sum is 2"):
        torch._assert(torch.ones(2).sum() > 2, "the sum is 2")
