"""Structures of arguments and results as JSON, from which reading makes no class by its name."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

from ..utils import _pytree as pytree
from ._errors import UserError

_PLAIN = {"tuple": tuple, "list": list, "dict": dict, "ordered": OrderedDict}
_NAMES = {kind: name for name, kind in _PLAIN.items()}


def described(spec):
    """A structure as JSON. Raises UserError for a container that no file describes."""
    if spec.is_leaf():
        return None
    children = [described(child) for child in spec.children_specs]
    kind, context = spec.type, spec.context
    if kind in _NAMES:
        keys = [*context] if context is not None else None
        if keys is not None and not all(isinstance(key, str | int) for key in keys):
            raise UserError(f"a file has dicts with texts and ints as keys, and not {keys}")
        return [_NAMES[kind], keys, children]
    if pytree.is_namedtuple_class(context):
        return ["namedtuple", [context.__name__, *context._fields], children]
    name = pytree.SUPPORTED_NODES[kind].serialized_type_name
    if name is None:
        raise UserError(
            f"a file cannot describe {kind}: pass serialized_type_name to "
            "utils._pytree.register_pytree_node, or return a dict"
        )
    convert = pytree.SUPPORTED_NODES[kind].to_dumpable_context
    return ["class", [name, convert(context) if convert else context], children]


def agree(spec, other) -> bool:
    """Whether two structures are one. Of named tuples the fields count: a file has no classes."""
    if spec == other:
        return True
    if spec.type is not other.type or len(spec.children_specs) != len(other.children_specs):
        return False
    kinds = spec.context, other.context
    are_named = all(map(pytree.is_namedtuple_class, kinds))
    if kinds[0] != kinds[1] and not (are_named and kinds[0]._fields == kinds[1]._fields):
        return False
    return all(map(agree, spec.children_specs, other.children_specs))


def structure(text):
    """The structure that `described` describes."""
    if text is None:
        return pytree.LeafSpec()
    kind, context, parts = text
    return pytree.tree_structure(_built(kind, context, [_example(part) for part in parts]))


def _example(text):
    """A tree of a structure, with zeros for leaves."""
    if text is None:
        return 0
    kind, context, parts = text
    return _built(kind, context, [_example(part) for part in parts])


def _built(kind, context, children):
    if kind in ("dict", "ordered"):
        return _PLAIN[kind](zip(context, children, strict=True))
    if kind in _PLAIN:
        return _PLAIN[kind](children)
    if kind == "namedtuple":
        name, *fields = context
        return namedtuple(name, fields)(*children)
    return _of_class(*context, children)


def _of_class(name, context, children):
    for node in pytree.SUPPORTED_NODES.values():
        if node.serialized_type_name == name:
            convert = node.from_dumpable_context
            return node.unflatten_fn(children, convert(context) if convert else context)
    raise UserError(
        f"the program takes or gives a {name}, which is not registered: import its module, or call "
        "utils._pytree.register_pytree_node, before the file is loaded"
    )
