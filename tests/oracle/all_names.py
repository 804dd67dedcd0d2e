"""Record which names PyTorch's modules have, private ones too, and where each is defined.

.venv-torch/bin/python tests/oracle/all_names.py LIST

LIST has a line for each module and each name in it: module, name (empty for the module itself) and
kind, with tabs between. The installed PyTorch tells where a class or function is defined, so that
a name that several modules have is one object.
"""

import builtins
import collections
import contextlib
import gzip
import importlib
import io
import sys
import types
import typing
import warnings
from pathlib import Path

import torch
from torch._jit_internal import BroadcastingListCls

FILE = Path(__file__).parents[2] / "jaxgrad" / "coverage" / "all_names.tsv.gz"

HEADER = """\
# All modules of PyTorch 2.13 and their names: the module, then groups of names, with tabs. \
A group begins with its kind: class, layer (a class of modules), function, value, alias (of \
types), the name of a class of typing, or the built-in exception that it derives from; after "@" \
the module that defines the names, if another one does; "name=other" where it has another name \
there.
"""


def kind_of(listed: str, value) -> str:
    """The kind of a name: that of the list, with what the object tells more exactly."""
    if listed == "exception":
        bases = value.__mro__ if isinstance(value, type) else (Exception,)
        return next(base.__name__ for base in bases if getattr(builtins, base.__name__, 0) is base)
    if isinstance(value, typing.TypeVar | typing.ParamSpec | typing.TypeVarTuple):
        return type(value).__name__
    if listed == "class" and isinstance(value, type) and issubclass(value, torch.nn.Module):
        return "layer"
    if listed == "constant":
        is_alias = typing.get_origin(value) is not None or isinstance(
            value, types.UnionType | typing.NewType | BroadcastingListCls
        )
        return "alias" if is_alias else "value"
    return listed


def home_of(module: str, name: str, value, offers: dict) -> tuple[str, str]:
    """The module of PyTorch that defines an object, and its name there."""
    home, path = None, None
    with contextlib.suppress(Exception):  # of a constant whose attributes ask for a device
        home = value.__module__
        path = getattr(value, "__qualname__", None) or value.__name__
    if not (isinstance(home, str) and isinstance(path, str)) or "." in path:
        return module, name
    is_there = home.partition(".")[0] == "torch" and home in sys.modules
    if not is_there or getattr(sys.modules[home], path, None) is not value:
        return module, name
    # users know a name of the library by the module that offers it
    return (offers.get((path, id(value)), home) if home.startswith("torch._C") else home), path


def public_modules(modules: dict) -> dict[tuple[str, int], str]:
    """The first module without an underscore that has an object under a name."""
    offers = {}
    for module in sorted(modules, key=lambda path: (path.count("."), path), reverse=True):
        if "._" not in module:
            values = vars(sys.modules.get(module, types))
            offers |= {(name, id(values.get(name))): module for name, _ in modules[module]}
    return offers


def line_of(module: str, names: list[tuple[str, str]], offers: dict) -> str:
    """The line of a module with its names and their kinds."""
    groups = collections.defaultdict(list)
    for name, listed in names:
        value = getattr(sys.modules.get(module), name, None)
        home, path = home_of(module, name, value, offers)
        group = kind_of(listed, value) + ("" if home == module else f"@{home}")
        groups[group].append(name if path == name else f"{name}={path}")
    texts = [" ".join([group, *sorted(groups[group])]) for group in sorted(groups)]
    return "\t".join([module, *texts])


def main(source: str):
    modules = collections.defaultdict(list)
    for row in Path(source).read_text().splitlines()[1:]:
        module, name, kind = row.split("\t")
        modules[module] += [(name, kind)] if name else []
    for module in modules:
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(module)
    offers = public_modules(modules)
    lines = [line_of(module, modules[module], offers) for module in sorted(modules)]
    text = HEADER + "\n".join(lines) + "\n"
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        main(sys.argv[1])
