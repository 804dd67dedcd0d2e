"""Forward mode, as torch.autograd.forward_ad: tensors with tangents.

Tangents pass through `no_grad`, which affects reverse mode only; `detach` and `inference_mode` drop
them. Levels can be nested, which PyTorch refuses, for derivatives of higher order. A level belongs
to the thread or asyncio task that entered it, and to contexts copied from there. Tensors carry
their tangents into other threads, and operators there compute with them. In PyTorch all threads
share one level.

>>> import jaxgrad.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(jaxgrad.tensor(3.0), jaxgrad.tensor(1.0))
...     fwAD.unpack_dual(x * x).tangent
tensor(6.)
"""

from __future__ import annotations

from typing import NamedTuple

from .. import ops
from ..core import elementary
from ..core.pytorch_tensors import type_name
from ..core.tracebacks import shows_users_frames
from ..names.missing import MissingName
from ..tape import dual
from ..tape.dual_level import Level, enabled, entered
from ..tape.mode import is_inference_mode_enabled
from ..tape.sparse_tensor import is_sparse, sparse, values_for, values_of
from ..tape.tensor import Tensor, abstract_value, may_have_tangents, may_require_grad, wrap
from .grad_mode import _Mode, _Setting

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

NO_LEVEL = (
    "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
    "enter_dual_level() first."
)


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent, None if there is none.

    primal: the value.
    tangent: a tensor of the shape and dtype of `primal`, or None.

    >>> import jaxgrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     primal, tangent = fwAD.unpack_dual(jaxgrad.ones(2))
    >>> tangent is None
    True
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level of forward mode; returns its number, for `exit_dual_level`.

    >>> import jaxgrad.autograd.forward_ad as fwAD
    >>> level = fwAD.enter_dual_level()
    >>> fwAD.unpack_dual(fwAD.make_dual(jaxgrad.ones(2), jaxgrad.zeros(2))).tangent
    tensor([0., 0.])
    >>> fwAD.exit_dual_level(level=level)
    """
    dual.start()
    here = entered.get()
    entered.set((*here, Level()))
    return len(here)


def exit_dual_level(*, level: int | None = None):
    """End the innermost level; its tangents are dropped.

    level: the number of the innermost level, which is the default.

    Raises RuntimeError for another number, and outside of any level.

    >>> import jaxgrad.autograd.forward_ad as fwAD
    >>> level = fwAD.enter_dual_level()
    >>> fwAD.exit_dual_level()
    """
    here = entered.get()
    level = len(here) - 1 if level is None else level
    if level < 0 or not here:
        raise RuntimeError(
            "Dual level must be a positive number. No level of forward mode is entered: "
            "enter_dual_level() comes first"
        )
    if level != len(here) - 1:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            f"is not supported. The last one is {len(here) - 1}, not {level}"
        )
    _leave(here, level)


def _leave(here, number):
    """End a level and the levels inside of it."""
    entered.set(here[:number])
    for level in here[number:]:
        level.end()


class dual_level(_Mode):
    """A context, or a decorator, for a level of forward mode; yields its number.

    Its end raises RuntimeError if an inner level was not exited. If an exception is propagating, it
    ends both instead.

    >>> import jaxgrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level() as level:
    ...     print(level)
    0
    """

    def __init__(self):
        self.begun = []

    def __enter__(self) -> int:
        number = enter_dual_level()
        self.begun.append(entered.get()[-1])
        return number

    def __exit__(self, kind, *exception):
        here = entered.get()
        # One object may be entered several times, and in several contexts at once.
        mine = next((level for level in reversed(self.begun) if level in here), self.begun[-1])
        self.begun.remove(mine)
        if mine not in here:
            mine.end()  # it was entered in another context
        elif kind is not None:
            _leave(here, here.index(mine))
        else:
            exit_dual_level(level=here.index(mine))


@shows_users_frames
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor with a tangent.

    tensor: a floating point or complex tensor of any shape.
    tangent: a tensor of the same shape, which is cast to the dtype of `tensor`. It may require
        grad: operators on the tangent are recorded. In-place operators on the dual give it a new
        tangent and do not write to this one. A later write to `tensor` changes the value of the
        dual but not its tangent.
    level: the number of the level, by default the innermost.

    In inference mode the result has no tangent. Raises RuntimeError outside of a level, for a
    tangent of another shape, for a complex tangent of a real tensor, and if the tensor or the
    tangent has a tangent at this level; ValueError for tensors of other dtypes; TypeError for
    objects that are not tensors.

    >>> import jaxgrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 0.0]))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor([2., 0.])
    """
    here = entered.get()
    number = len(here) - 1 if level is None else level
    if number < 0:
        raise RuntimeError(NO_LEVEL)
    if number >= len(here):
        why = f"level {number} is not one of the {len(here)} entered levels"
        raise RuntimeError(f"Invalid level given to _make_dual: {why}. {NO_LEVEL}")
    if here[number].ended:
        raise RuntimeError(f"{NO_LEVEL} Level {number} was exited in the context that entered it")
    _check(tensor, tangent)
    if is_sparse(tensor):
        return _sparse_dual(tensor, tangent, number)
    for operand, words in (
        (tensor, "Making a dual Tensor based on a Tensor that already has a forward gradient"),
        (tangent, "Setting a forward grad that itself has a forward gradient"),
    ):
        if dual.tangent(operand, here[number]) is not None:
            raise RuntimeError(f"{words} at the same level {number} is not supported.")
    if is_inference_mode_enabled():
        return _shown_again(tensor)
    return _joined(tensor, here[number], tangent.to(tensor.dtype))


def _sparse_dual(tensor, tangent, level):
    """A sparse tensor whose values have the elements of a tangent at its indices as tangent."""
    values = make_dual(values_of(tensor), values_for(tensor, tangent), level=level)
    return _at_indices_of(tensor, values)


def _at_indices_of(tensor, values):
    return sparse(values, tensor._indices_held, tensor._sizes, tensor._coalesced)


def _check(tensor, tangent):
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            kind = type_name(value)
            raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {kind}")
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not may_require_grad(value):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {value.dtype}"
            )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )
    if tangent.is_meta != tensor.is_meta:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices: a "
            f"tensor on {tensor.device} and its tangent on {tangent.device}"
        )
    if tangent.dtype.is_complex and not tensor.dtype.is_complex:
        raise RuntimeError(
            f"a tensor of {tensor.dtype} cannot have a tangent of {tangent.dtype}, which is complex"
        )


def _shown_again(tensor):
    """A view of a whole tensor that has tangents of its own, none so far."""
    view = ops.alias(tensor)
    dual.own_tangents(view)
    return view


def _joined(tensor, level, tangent):
    """A view of a tensor with a tangent at a level at which neither has one.

    The tangents of both at inner levels become the value and the tangent of a dual there.
    """
    view, inner = _shown_again(tensor), {}
    for other in dual.levels_of(tensor):
        other_tangent = dual.tangent(tensor, other)
        if other.number < level.number:
            dual.give(view, other, other_tangent)
        else:
            inner[other] = other_tangent, None
    for other in dual.levels_of(tangent):
        if other.number > level.number:
            other_tangent, _ = inner.get(other, (None, None))
            inner[other] = other_tangent, dual.tangent(tangent, other)
    dual.give(view, level, dual.below(tangent, level))
    for other, (other_tangent, both) in inner.items():
        other_tangent = _zeros(tensor) if other_tangent is None else other_tangent
        dual.give(
            view, other, other_tangent if both is None else _joined(other_tangent, level, both)
        )
    return view


def _zeros(tensor):
    return wrap(elementary.filled(abstract_value(tensor), 0))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A view of a tensor without its tangent at a level, and that tangent.

    tensor: a tensor of any shape and dtype.
    level: the number of the level, by default the innermost.

    Returns an UnpackedDualTensor. Its tangent is None if the tensor does not depend on a dual, in
    inference mode, and outside of any level. Raises TypeError for an object that is not a tensor,
    RuntimeError for a level that is not entered.

    >>> import jaxgrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(jaxgrad.tensor(3.0), jaxgrad.tensor(1.0))
    ...     fwAD.unpack_dual(x.sin()).tangent
    tensor(-0.9900)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual(): argument 'dual' must be Tensor, not {type_name(tensor)}")
    here = entered.get()
    number = len(here) - 1 if level is None else level
    if number >= max(len(here), 1):
        raise RuntimeError(
            f"Invalid level given to _fw_primal: unpack_dual(level={level}) with {len(here)} "
            "levels entered"
        )
    if not here or number < 0 or is_inference_mode_enabled() or not enabled.get():
        return UnpackedDualTensor(tensor, None)
    if not any(other.number >= here[number].number for other in dual.levels_of(tensor)):
        return UnpackedDualTensor(tensor, None)
    if is_sparse(tensor):
        parts = _split(values_of(tensor), here[number])
        return UnpackedDualTensor(
            *[None if part is None else _at_indices_of(tensor, part) for part in parts]
        )
    primal, tangent = _split(tensor, here[number])
    if tangent is not None and tangent.dtype is not tensor.dtype:
        tangent = tangent.to(tensor.dtype)  # one of complex32 is computed in complex64
    return UnpackedDualTensor(primal, tangent)


def _split(tensor, level):
    """The inverse of `_joined`: a tensor without its tangent at a level, and that tangent."""
    primal, inner = _shown_again(tensor), []
    tangent = dual.tangent(tensor, level) if level.is_seen() else None
    for other in dual.levels_of(tensor):
        other_tangent, both = dual.tangent(tensor, other), None
        if other.number > level.number:
            other_tangent, both = _split(other_tangent, level)
        if other is not level:
            dual.give(primal, other, other_tangent)
        if both is not None:
            inner.append((other, both))
    if inner:
        tangent = _shown_again(_zeros(tensor) if tangent is None else tangent)
    for other, both in inner:
        dual.give(tangent, other, both)
    return primal, tangent


def shown(tensor: Tensor) -> list[str]:
    """The tangents in the printed form of a tensor, one text for each level."""
    here = entered.get()
    if not may_have_tangents(tensor) or is_inference_mode_enabled() or not enabled.get():
        return []
    tangents = [(number, dual.tangent(tensor, level)) for number, level in enumerate(here)]
    names = ["tangent"] if len(here) == 1 else [f"tangent{number}" for number in range(len(here))]
    return [f"{names[number]}={tangent}" for number, tangent in tangents if tangent is not None]


def _is_fwd_grad_enabled() -> bool:
    return enabled.get()


class _set_fwd_grad_enabled(_Setting):
    """Choose whether operators compute tangents, from the call on or for a `with` block."""

    def set(self):
        before = enabled.get()
        enabled.set(self.mode)
        return before

    def reset(self, before):
        enabled.set(before)


__path__ = []  # as of a package: names that are absent can be imported


def __getattr__(name):
    if name == "_current_level":  # the number of the innermost level, -1 outside of any
        return len(entered.get()) - 1
    raise MissingName(__name__, name)
