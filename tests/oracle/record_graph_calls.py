"""Record how calls of functions stand in graphs of PyTorch: by which name, with which arguments.

make record PARTS=graph_calls
"""

import contextlib
import importlib
import inspect
import io
import warnings
from pathlib import Path

from torch.fx import Graph, Proxy
from torch.fx.node import _get_qualified_name
from torch.fx.proxy import GraphAppendingTracer
from torch.overrides import get_testing_overrides, resolve_name

FILE = Path(__file__).parents[2] / "jaxgrad" / "coverage" / "graph_calls.tsv"

HEADER = """\
# Calls that graphs of PyTorch have in another form than the program: the public name, the name in \
code; where arguments are handed on, how many by position, and the names of the others.
"""

# the functions that `__torch_function__` overrides
OVERRIDABLE = Path(__file__).parents[1] / "fx" / "overridable.txt"

SPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
SPACES += ("torch.nn.init",)

# other modules are PyTorch's own
HOMES = ("torch._C._", "torch.functional.", "torch.nn.functional.", "torch.nn.init.")

# functions that choose another one by an argument hand on what that takes
CHOOSING = ("_", "adaptive_max", "max_pool", "fractional")


def functions():
    """The public functions, by their names."""
    for space in SPACES:
        module = importlib.import_module(space)
        for name in sorted(dir(module)):
            value = getattr(module, name)
            home = getattr(value, "__module__", "") or "torch"
            is_function = callable(value) and not isinstance(value, type)
            if not name.startswith("_") and is_function and home.startswith("torch"):
                yield f"{space}.{name}", value


def node_of(function, count: int):
    """The node of a call of a function with stand-ins for the arguments that it needs.

    count: the number of arguments where the signature does not tell them.
    """
    graph = Graph()
    x = Proxy(graph.placeholder("x"), GraphAppendingTracer(graph))
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    by_position = [p for p in needed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = {p.name: x for p in needed if p.kind == p.KEYWORD_ONLY}
    node = function(*[x] * (len(by_position) + count), **by_name).node
    return node if node.op == "call_function" else None


def form(path: str, function) -> str | None:
    """The line of a function; None where graphs have its calls as the program writes them."""
    name, handed_on = _get_qualified_name(function), ("", "")
    is_variadic = False
    if inspect.isfunction(function):
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        is_variadic = inspect.Parameter.VAR_POSITIONAL in kinds
    for count in range(6 if is_variadic else 1):
        with contextlib.suppress(Exception):
            node = node_of(function, count) if inspect.isfunction(function) else None
            if node is None:
                break
            called = _get_qualified_name(node.target)
            is_same = called.rpartition(".")[2] == function.__name__
            if node.kwargs and (is_same or function.__name__.startswith(CHOOSING)):
                name, handed_on = called, (str(len(node.args)), " ".join(node.kwargs))
            break
    is_private = name.rpartition(".")[2].startswith("_")
    if is_private or not (name.startswith(HOMES) or name.count(".") == 1):
        name = path
    return None if (name, *handed_on) == (path, "", "") else "\t".join([path, name, *handed_on])


def main():
    lines = []
    for path, function in functions():
        with contextlib.suppress(Exception):  # a function that has no name in code
            lines.append(form(path, function))
    names = filter(None, map(resolve_name, get_testing_overrides()))
    plain = {name for name in names if not (name.startswith("torch.Tensor") or "__" in name)}
    OVERRIDABLE.write_text("".join(f"{name}\n" for name in sorted(plain)))
    FILE.write_text(HEADER + "".join(f"{line}\n" for line in filter(None, lines)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        main()
