"""`func.rearrange`: split, permute and merge dimensions by a pattern of their names."""

from __future__ import annotations

import functools
import math
import re

from .. import ops

_TOKEN = re.compile(r"\s*(\(|\)|\.\.\.|\w+|\S)")
# the name of the dimensions that the pattern leaves open
_REST = "..."


class _Merged(tuple):
    """The names in a pair of parentheses."""


def _is_open(group) -> bool:
    """Whether `...` stands alone, for dimensions that are not merged."""
    return group == (_REST,) and type(group) is not _Merged


def rearrange(tensor, pattern: str, **axes_lengths: int):
    """Split, permute and merge dimensions by a pattern, as einops does: `"b c h w -> b (c h w)"`.

    tensor: of any shape and dtype, or a list of tensors, which are stacked first.
    pattern: the left side names the dimensions. Parentheses split one into several, `...` stands
    for any number of dimensions and 1 for one of size 1. The right side has the same names in the
    new order; parentheses merge dimensions.
    axes_lengths: sizes of names, ints; one name in each pair of parentheses may lack its size.

    Raises ValueError for a pattern that is not valid or does not fit the shape, TypeError for a
    size that is not an int.

    >>> jaxgrad.func.rearrange(jaxgrad.arange(6).view(2, 3), "a b -> (b a)")
    tensor([0, 3, 1, 4, 2, 5])
    """
    if isinstance(tensor, list | tuple):
        tensor = ops.stack(tensor)
    for size in axes_lengths.values():
        if not isinstance(size, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(size)}")
    left, right = _parsed(pattern)
    unknown = axes_lengths.keys() - set(_names(left))
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    sizes = _sizes(left, tuple(tensor.shape), axes_lengths, pattern)
    parts = [(name, i) for name in _names(left) for i in range(len(sizes[name]))]
    order = [parts.index((name, i)) for name in _names(right) for i in range(len(sizes[name]))]
    wanted = []
    for group in right:
        inside = [size for name in group for size in sizes[name]]
        wanted += inside if _is_open(group) else [math.prod(inside)]
    split = tensor.reshape([sizes[name][i] for name, i in parts])
    return split.permute(order).reshape(wanted)


@functools.lru_cache(maxsize=256)
def _parsed(pattern):
    """Both sides of a pattern: a tuple of names for each dimension; `...` stands alone."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"Pattern must contain a single '->' separator: {pattern!r}")
    left, right = map(_side, sides)
    names = [set(_names(side)) for side in (left, right)]
    if _REST in names[1] - names[0]:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if any(_REST in group and not _is_open(group) for group in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if names[0] != names[1]:
        raise ValueError(
            "Identifiers only on one side of rearrange expression (should be on both): "
            f"{names[0] ^ names[1]}"
        )
    return left, right


def _side(text):
    groups, inside = [], None
    for token in _TOKEN.findall(text.strip()):
        if token in "()":
            if (token == "(") == (inside is not None):
                raise ValueError(f"Imbalanced parentheses in expression: {text!r}")
            inside = [] if inside is None else groups.append(_Merged(inside))
            continue
        is_name = token.isidentifier() and token == token.strip("_")
        if token != "1" and token != _REST and not is_name:
            cure = "rearrange only supports unnamed axes of size 1" if token.isdigit() else ""
            raise ValueError(cure or f"Invalid axis identifier: {token}, in {text!r}")
        names = () if token == "1" else (token,)
        groups.append(names) if inside is None else inside.extend(names)
    if inside is not None:
        raise ValueError(f"Imbalanced parentheses in expression: {text!r}")
    names = _names(groups)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension {name!r}")
    return tuple(groups)


def _names(groups):
    return [name for group in groups for name in group]


def _spread(left, shape, pattern):
    """The names of each dimension of a shape, None for a dimension of `...`."""
    count = len(shape) - len(left) + 1
    if ((_REST,) not in left and count != 1) or count < 0:
        raise ValueError(
            f"Number of dimensions in pattern ({len(left) - ((_REST,) in left)}) must be equal to "
            f"the number of dimensions in the tensor ({len(shape)}): {pattern!r}"
        )
    return [names for group in left for names in ([None] * count if group == (_REST,) else [group])]


def _sizes(left, shape, lengths, pattern):
    """The sizes of each name: one, or several for `...`."""
    sizes = {_REST: []}
    for group, size in zip(_spread(left, shape, pattern), shape, strict=True):
        if group is None:
            sizes[_REST].append(size)
            continue
        open_names = [name for name in group if name not in lengths]
        if len(open_names) > 1:
            raise ValueError(
                f"cannot infer the sizes of two dimensions at once, {open_names} in {pattern!r}"
            )
        known = math.prod(lengths[name] for name in group if name in lengths)
        rest = size // known if open_names and known else 1
        if known * rest != size:
            raise ValueError(
                f"{pattern!r}: a dimension of size {size} is not made of {list(group)} with "
                f"{lengths}"
            )
        sizes |= {name: [lengths.get(name, rest)] for name in group}
    return sizes
