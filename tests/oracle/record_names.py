"""Record the names in the modules of PyTorch that jaxgrad does not provide.

make record PARTS=names
"""

import contextlib
import importlib
import io
import pkgutil
import types
import typing
import warnings
from pathlib import Path

import torch

import jaxgrad
from jaxgrad.names.not_provided import is_placeholder

FILE = Path(__file__).parents[2] / "jaxgrad" / "coverage" / "not_provided.tsv"

HEADER = """\
# Names in modules of PyTorch 2.13 that jaxgrad does not provide; exceptions end in "!".
"""

# packages with all their public modules
TREES = "distributed export fx futures monitor nested onnx package"

# single modules, and those with an underscore that packages import
MODULES = """
_C _C._distributed_c10d _custom_ops _dynamo
_dynamo._trace_wrapped_higher_order_op _dynamo.exc _export _higher_order_ops
_higher_order_ops.associative_scan _inductor _jit_internal _subclasses _subclasses.fake_tensor
ao ao.nn ao.nn.intrinsic ao.nn.qat ao.nn.quantizable ao.nn.quantized ao.pruning ao.quantization
ao.quantization.fake_quantize ao.quantization.observer ao.quantization.qconfig
ao.quantization.quantize_fx compiler cuda distributed._composable distributed._composable.fsdp
distributed._functional_collectives distributed._tensor
distributed.algorithms._checkpoint.checkpoint_wrapper fx._pytree fx._symbolic_trace mps mtia
nn.attention.bias quantization
utils._python_dispatch utils.bottleneck utils.bundled_inputs utils.cpp_extension
utils.benchmark utils.flop_counter utils.mobile_optimizer utils.throughput_benchmark xpu
"""


# names with an underscore that packages import, by module
PRIVATE = {
    "torch.distributed.checkpoint.format_utils": "_EmptyStateDictLoadPlanner",
    "torch.distributed.checkpoint.state_dict_loader": "_load_state_dict",
    "torch.distributed.tensor.placement_types": "_StridedShard",
    "torch.distributed.utils": "_sync_module_states",
    "torch.fx.graph_module": "_CodeOnlyModule _USER_PRESERVED_ATTRIBUTES_KEY _copy_attr",
}


def modules_of(tree: str):
    """The names of the modules of a package that have no underscore."""
    package = importlib.import_module(f"torch.{tree}")
    yield package.__name__
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", lambda _: None):
        if "._" not in module.name:
            yield module.name


def names_in(module) -> list[str]:
    """The functions and classes that a module of PyTorch defines or means to offer; those of
    exceptions end in "!".
    """
    offered = {*getattr(module, "__all__", ())}
    root = ".".join(module.__name__.split(".")[: 3 if ".nn." in module.__name__ else 2])
    names = []
    for name, value in vars(module).items():
        if name.startswith("_") or not callable(value) or isinstance(value, typing.TypeVar):
            continue
        home = getattr(value, "__module__", root) or ""
        if name in offered or home.startswith((root, "torch._C")) or module is torch._C:
            is_exception = isinstance(value, type) and issubclass(value, BaseException)
            names.append(f"{name}!" if is_exception else name)
    private = PRIVATE.get(module.__name__, "").split()
    assert all(hasattr(module, name) for name in private)
    return sorted(names) + private


def provided(name) -> set[str]:
    """The names that jaxgrad's module in the place of one of PyTorch defines."""
    with contextlib.suppress(ImportError):
        ours = importlib.import_module(f"jaxgrad{name.removeprefix('torch')}")
        return {*vars(ours)}
    return set()


def top_level() -> list[str]:
    """The classes in `torch` itself that have no base in Python's code, types and storages, and the
    public functions of its libraries that are not here.
    """
    names = [name for name, value in vars(torch).items() if isinstance(value, type)]
    functions = [
        name
        for name, value in vars(torch).items()
        if isinstance(value, types.BuiltinFunctionType) and not name.startswith("_")
    ]
    absent = [
        name
        for name in functions
        if not hasattr(jaxgrad, name) or is_placeholder(getattr(jaxgrad, name))
    ]
    return sorted(name for name in names if name[0].isupper()) + sorted(absent)


def main():
    lines = [HEADER, "\t".join(["torch", " ".join(top_level())]) + "\n"]
    names = {name for tree in TREES.split() for name in modules_of(tree)}
    names |= {f"torch.{name}" for name in MODULES.split()}
    for name in sorted(names):
        # a module that needs a package, a program, or another platform
        with contextlib.suppress(Exception, SystemExit):
            members = names_in(importlib.import_module(name))
            members = [
                member for member in members if member.removesuffix("!") not in provided(name)
            ]
            lines.append("\t".join([name, " ".join(members)]) + "\n")
    FILE.write_text("".join(lines))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        main()
