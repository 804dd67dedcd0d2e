"""Lists and dicts that refuse changes: the arguments of nodes.

>>> from jaxgrad.fx.immutable_collections import immutable_list
>>> immutable_list([1, 2])
[1, 2]
"""

from __future__ import annotations

import copy

from ..names.missing import missing_in
from ..utils import _pytree

__getattr__ = missing_in(__name__)

_HELP = (
    "object does not support mutation: a node notes its users when its arguments are assigned. "
    "Change a copy, and assign that to node.args or node.kwargs"
)


def _refused(name: str):
    def method(self, *args, **kwargs):
        raise TypeError(f"{type(self).__name__!r} {_HELP}")

    method.__name__ = name
    return method


_OF_BOTH = ("__delitem__", "__setitem__", "clear", "pop")
_OF_LISTS = ("__iadd__", "__imul__", "append", "extend", "insert", "remove", "reverse", "sort")
_OF_DICTS = ("__ior__", "popitem", "setdefault", "update")


class immutable_list(list):
    """A list that refuses changes."""

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)

    def __deepcopy__(self, memo):
        return immutable_list(map(_copied(memo), self))


class immutable_dict(dict):
    """A dict that refuses changes."""

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)

    def __deepcopy__(self, memo):
        copied = _copied(memo)
        return immutable_dict({copied(key): copied(value) for key, value in self.items()})


def _copied(memo):
    return lambda value: copy.deepcopy(value, memo)


for _name in (*_OF_BOTH, *_OF_LISTS):
    setattr(immutable_list, _name, _refused(_name))
for _name in (*_OF_BOTH, *_OF_DICTS):
    setattr(immutable_dict, _name, _refused(_name))

_pytree.register_pytree_node(
    immutable_list, lambda value: (list(value), None), lambda values, _: immutable_list(values)
)
_pytree.register_pytree_node(
    immutable_dict,
    lambda value: (list(value.values()), list(value)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
)
