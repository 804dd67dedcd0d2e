"""The operators: `jaxgrad.ops.<name>` for the shipped table, `jaxgrad.ops.<namespace>.<name>` for
tables loaded at run time.

A call with tensors is recorded. A call with JAX arrays alone is a JAX function with the derivatives
of the table.

>>> import jax
>>> jax.grad(jaxgrad.ops.abs)(0.0)   # PyTorch's convention; jax.numpy.abs has 1
Array(0., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from .. import rules
from ..core import primitive
from ..core.tracebacks import shows_users_frames
from ..late import LateModule
from ..names.missing import MissingName, offered
from ..table import TableError
from ..table import load as load_table
from . import aten, kept
from .inplace import operator_of
from .namespace import EmptyNamespace, Library, Namespace, public_functions

shape_check = LateModule("jaxgrad.core.shape_check")

# An operator becomes a global of this module: `any` is then no longer Python's. So code that calls
# Python's functions stands in namespace.py.

# The operators whose names begin with one of these are functions of torch.linalg, ...; PyTorch
# calls torch.linalg.svd `linalg_svd` in its table.
MODULES = ("fft_", "linalg_", "special_")


def _shipped() -> Library:
    path = Path(rules.__file__).parents[1] / "derivatives.yaml"
    functions = rules.Functions(kept.functions)
    help_path = str(path.with_name("help.yaml"))
    table = load_table(path, functions, late=True, kept=kept.rules_of, help_path=help_path)
    return Library(table, functions, kept=kept)


@shows_users_frames
def load(path, namespace: str = "my", functions=None) -> Namespace:
    """Load a table of your own; its operators become `jaxgrad.ops.<namespace>.<name>`.

    path: a file in the format of derivatives.yaml; functions: a module or a dict with the value
    functions and helpers that its formulas call beside the shipped operators. Returns the
    namespace. Raises TableError, a ValueError, with the line and column of every mistake, and then
    loads nothing; ValueError if the namespace is not an identifier, or is the name of an operator
    or of a library of `torch.library`. A table of that namespace is replaced.

    >>> import pathlib, tempfile
    >>> table = pathlib.Path(tempfile.mkdtemp(), "cube.yaml")
    >>> _ = table.write_text('''
    ... - name: cube(Tensor self) -> Tensor
    ...   forward: self * self * self
    ...   self: 3 * grad * self * self
    ... ''')
    >>> my = jaxgrad.ops.load(table)
    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> jaxgrad.ops.my.cube(x).backward()
    >>> x.grad
    tensor(12.)
    """
    if (
        not namespace.isidentifier()
        or namespace.startswith("_")
        or namespace in (*library.names, "load")
    ):
        raise ValueError(f"namespace {namespace!r} must be a name that no operator has")
    # not only libraries of torch.library: `aten` and what this module uses are names here too
    if not isinstance(sys.modules[__name__].__dict__.get(namespace, None), Namespace | None):
        raise ValueError(f"namespace {namespace!r} is taken, for example by a torch.library")
    users = public_functions(functions or {})
    known = frozenset(library.names | library.functions.keys())
    table = load_table(path, functions=frozenset(users) | library.functions.keys(), operators=known)
    # all mistakes of the file at once, before any of its operators exists
    table.check()
    loaded = Library(table, users, library)
    mistakes = shape_check.mistakes_of(loaded)
    if mistakes:
        raise TableError(mistakes)
    module = Namespace(f"{__name__}.{namespace}", loaded, operator_of)
    # last: a table with a mistake leaves nothing behind
    add_namespace(namespace, module)
    return module


def add_namespace(name: str, namespace):
    """Let the operators of a namespace be found as `ops.<name>.<operator>`."""
    setattr(sys.modules[__name__], name, namespace)


def load_library(path) -> None:
    """Provide the operators of a library for PyTorch that jaxgrad has itself: torchvision's. Other
    libraries are not loaded: `jaxgrad.library` defines operators, and so does `load`.

    Raises OSError for another library.

    >>> try:
    ...     jaxgrad.ops.load_library("libmy_ops.so")
    ... except OSError as error:
    ...     print("PyTorch's own library" in str(error))
    True
    """
    package, name = Path(path).parent.name, Path(path).stem
    if (package, name) in _PROVIDED:
        importlib.import_module(_PROVIDED[package, name])
        return
    refused.add(package)
    raise OSError(
        f"torch.ops.load_library: {path} is for PyTorch's own library, and is not loaded: define "
        "operators by torch.library.custom_op, or by jax.ffi"
    )


def is_public(name: str) -> bool:
    """Whether an operator of the shipped table, or its alias, is a function of `jaxgrad` itself."""
    return library.has(name) and not name.startswith(("_", *MODULES))


def module_functions(
    prefix: str, module: dict, aliases: Mapping[str, str] = types.MappingProxyType({})
):
    """Return the `__getattr__` and `__dir__` of a module that has the operators of one prefix.

    module: the globals of the module, which keep what was found; aliases: the operators of other
    names that the module has too, by their names in it.
    """

    def find(name):
        if name == "__all__":
            return offered(module["__name__"])
        if name == "__path__":
            return []  # as of a package: names that are absent can be imported
        operator = aliases.get(name, prefix + name)
        if name.startswith("_") or not library.has(operator):
            raise MissingName(module["__name__"], name)
        function = module[name] = getattr(_operators, operator)
        return function

    def names():
        helpers = [name for name, value in module.items() if callable(value) and name[0] != "_"]
        operators = [n.removeprefix(prefix) for n in library.names if n.startswith(prefix)]
        return sorted({*helpers, *operators, *aliases})

    return find, names


# the modules with the operators of other packages' libraries, by package and library
_PROVIDED = dict.fromkeys(
    (("torchvision", "_C"), ("torchvision", "_C_stable")), "jaxgrad.library._vision"
)

# the packages whose library was not loaded, which may register more of its operators
refused: set[str] = set()

library = _shipped()
primitive.op.install(library.find)
_operators = Namespace(__name__, library, operator_of)

# what returns a function that has an operator's name and is no entry of the table, by that name
composed = {}


def compose(name: str, find: Callable):
    """Let `find()` return the function of an operator's name that is no entry of the table."""
    composed[name] = find


# what gives the functions of PyTorch's names that modules above this one have
_searched: list[Callable] = []


def search_too(find: Callable):
    """Let `find(name, is_form)` give the function of an operator `add` or an overload `add.Tensor`
    of `torch.ops.aten`, or None. is_form: whether to look among calls of another form only.
    """
    _searched.append(find)


@functools.cache
def _of_pytorch(full_name: str):
    """The function of an operator of PyTorch's table, or of one of its overloads; None without
    one.
    """
    name, _, _ = full_name.partition(".")
    for find in _searched:
        if (function := find(full_name, True)) is not None:
            return function
    if library.has(name):
        return getattr(_operators, name)
    if name in composed:
        return composed[name]()
    return next(filter(None, (find(name, False) for find in _searched)), None)


aten = aten.namespace(_of_pytorch)


def has(name: str) -> bool:
    """Whether there is an operator or a namespace of this name."""
    return name in globals() or name in composed or library.has(name)


def __getattr__(name):
    if name.startswith("__") or has(name):
        return _late_global(name)
    if PathFinder.find_spec(f"{__name__}.{name}", __path__) is not None:
        raise AttributeError(f"the module {name!r} has not been imported")  # an import goes on
    # any other name may be a namespace, as in PyTorch
    return EmptyNamespace(__name__, name, globals().get)


def _late_global(name):
    # a global from now on, which Python finds without this function
    function = composed[name]() if name in composed else getattr(_operators, name)
    globals()[name] = function
    return function


def __dir__():
    loaded = [name for name, value in globals().items() if isinstance(value, Namespace)]
    return sorted({*dir(_operators), *composed, *loaded, "load", "load_library"} - {"_operators"})
