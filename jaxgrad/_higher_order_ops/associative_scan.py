"""`associative_scan`: the running combinations of slices, in a logarithmic number of steps."""

from __future__ import annotations

from collections.abc import Callable

import jax

from .. import ops
from ..capture.control_flow import check_has_dim, check_scan
from ..late import LateModule
from ..names.not_provided import names_of
from ..tape import pytree
from ..tape.tensor import Tensor

__getattr__, __dir__ = names_of(__name__)

func = LateModule("jaxgrad.func")


def associative_scan(
    combine_fn: Callable, xs, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
):
    """Return the combinations of the first 1, 2, 3 ... slices along a dimension.

    combine_fn: an associative function of two slices of `xs`, which returns a third. xs: a tensor
    or a tree of tensors whose size along `dim` is one. reverse: combine from the end. combine_mode:
    "pointwise" or "generic", both without effect: XLA compiles any function.

    Raises ValueError for trees without tensors, sizes that differ, or another `combine_mode`, and
    ValueError or RuntimeError for arguments of other types.
    Source: Blelloch, "Prefix Sums and Their Applications", 1990.

    >>> from jaxgrad._higher_order_ops import associative_scan
    >>> associative_scan(lambda x, y: x + y, jaxgrad.arange(4), 0)
    tensor([0, 1, 3, 6])
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    check_scan(ValueError, combine_fn, dim, reverse)
    leaves, structure = pytree.flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("associative_scan: xs must have tensors, and nothing else")
    check_has_dim(ValueError, leaves, dim)
    sizes = {leaf.shape[dim] for leaf in leaves}
    if len(sizes) > 1:
        raise ValueError(f"associative_scan: the sizes along dim {dim} differ: {sorted(sizes)}")

    def of_slices(first, second):
        trees = (jax.tree.unflatten(structure, half) for half in (first, second))
        results, shape = pytree.flatten(combine_fn(*trees))
        if shape != structure:
            raise RuntimeError(
                f"associative_scan: combine_fn changes the structure of xs from {structure} to "
                f"{shape}"
            )
        return results

    combine = func.vmap(of_slices)
    slices = [leaf.movedim(dim, 0) for leaf in leaves]
    slices = [part.flip(0) for part in slices] if reverse else slices
    scanned = _scanned(combine, slices)
    scanned = [part.flip(0) for part in scanned] if reverse else scanned
    return jax.tree.unflatten(structure, [part.movedim(0, dim) for part in scanned])


def _scanned(combine, slices: list[Tensor]) -> list[Tensor]:
    """The running combinations along the first dimension: those of pairs give the odd places, and
    the even ones are one slice more than those.
    """
    count = slices[0].shape[0]
    if count < 2:
        return slices
    pairs = combine([part[: count - 1 : 2] for part in slices], [part[1::2] for part in slices])
    odd = _scanned(combine, pairs)
    later = [part[2::2] for part in slices]
    before = [part[: later[0].shape[0]] for part in odd]
    even = combine(before, later) if later[0].shape[0] else later
    even = [ops.cat([part[:1], rest]) for part, rest in zip(slices, even, strict=True)]
    return [_in_turn(*both) for both in zip(even, odd, strict=True)]


def _in_turn(even: Tensor, odd: Tensor) -> Tensor:
    """The slices of two tensors in turn. The first has as many as the second, or one more."""
    paired = ops.stack([even[: odd.shape[0]], odd], 1).flatten(0, 1)
    return ops.cat([paired, even[odd.shape[0] :]])
