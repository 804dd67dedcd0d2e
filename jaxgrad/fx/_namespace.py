"""Names that are unique in a graph, and in the scope of its code."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any, NamedTuple

from ..core.device import device
from ..utils import _pytree as pytree
from . import _names
from . import _pytree as fx_pytree

_illegal_char_regex = re.compile("[^0-9a-zA-Z_]+")
_name_regex = re.compile(r"^(.*)_(\d+)$")


class _CustomBuiltin(NamedTuple):
    """A name that the code of every graph has. import_str: the line that makes it elsewhere."""

    import_str: str
    obj: Any


_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj):
    """Let the code of every graph have an object under a name."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", _names.torch_module())
_register_custom_builtin("device", "from torch import device", device)
_register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)

# names by which texts of values call what is no name in code
_illegal_names = dict.fromkeys(keyword.kwlist) | vars(builtins)


def _is_magic(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _snake_case(text: str) -> str:
    """A name in lower case, with `_` before capitals: `AvgPool` is `avg_pool`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()


class _Namespace:
    """Names that are taken, and the objects that bear them."""

    def __init__(self):
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj) -> str:
        """Return a name that no other object has: the candidate, or that with a number.

        obj: the object that gets it, the same again at a second call; None for a node.

        >>> from jaxgrad.fx.graph import _Namespace
        >>> names = _Namespace()
        >>> [names.create_name(word, None) for word in ("x", "x", "for", "1.a")]
        ['x', 'x_1', 'for_1', '_1_a']
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _illegal_char_regex.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = _name_regex.match(candidate)
        base, number = (candidate, None) if match is None else (match[1], int(match[2]))
        if candidate in self._used_names or self._is_illegal_name(candidate, obj):
            number = self._base_count.get(base, 0)
            while candidate in self._used_names or self._is_illegal_name(candidate, obj):
                number += 1
                candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        if number is not None:
            self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj):
        """Note that an object has a name. Raises AssertionError where it has another."""
        if self._obj_to_name.setdefault(obj, name) != name:
            raise AssertionError(f"{obj} has another name, {self._obj_to_name[obj]}, than {name}")
        self._used_names.add(name)

    def _is_illegal_name(self, name: str, obj) -> bool:
        """Whether a name means something else in the code of a graph."""
        if name in keyword.kwlist:
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        if name in _custom_builtins:
            return _custom_builtins[name].obj is not obj
        return False

    def _rename_object(self, obj, name: str):
        self._obj_to_name[obj] = name
        self._used_names.add(name)
