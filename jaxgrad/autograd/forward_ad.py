"""Forward mode, as torch.autograd.forward_ad: tensors with tangents.

>>> import jaxgrad.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(jaxgrad.tensor(3.0), jaxgrad.tensor(1.0))
...     fwAD.unpack_dual(x * x).tangent
tensor(6.)

Levels may be entered one inside the other (PyTorch refuses), for derivatives of higher order.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import ops, tangents
from ..modes import is_inference_mode_enabled
from ..tensor import Tensor
from .grad_mode import _Setting


class UnpackedDualTensor(NamedTuple):
    """A tensor's value, and its tangent, which is None where it stands still."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a derivative; gives the number of its level, for `exit_dual_level`."""
    tangents.start()
    entered = tangents.levels.get()
    tangents.levels.set((*entered, tangents.Level()))
    return len(entered)


def exit_dual_level(*, level: int | None = None):
    """End the derivative that was begun last. Its tangents are gone.

    Raises RuntimeError for the level of another, and where there is none.
    """
    entered = tangents.levels.get()
    level = len(entered) - 1 if level is None else level
    if level < 0 or not entered:
        raise RuntimeError(
            "Dual level must be a positive number. No level of forward mode is entered: "
            "enter_dual_level() comes first"
        )
    if level != len(entered) - 1:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            f"is not supported. The last one is {len(entered) - 1}, not {level}"
        )
    tangents.levels.set(entered[:-1])


class dual_level:
    """A context in which tensors may have tangents. Gives the number of the level."""

    def __enter__(self) -> int:
        self.entered = [*getattr(self, "entered", ()), enter_dual_level()]
        return self.entered[-1]

    def __exit__(self, *exception):
        exit_dual_level(level=self.entered.pop())


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that has a tangent, of the same shape.

    level: that of the tangent, the innermost by default. The tangent may require grad: what is
    computed from it is recorded. Raises RuntimeError outside of a level, for a tangent of another
    shape, and for a tensor that has a tangent at this level already; ValueError for tensors that
    are neither floating point nor complex.
    """
    entered = tangents.levels.get()
    if (level is None and not entered) or (level is not None and not 0 <= level < len(entered)):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    _check(tensor, tangent)
    number = len(entered) - 1 if level is None else level
    if tangents.tangent(tensor, entered[number]) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            f"same level {number} is not supported."
        )
    made = _shown_again(tensor)
    held = tangents.own(made)
    for other in entered:
        kept = tangents.tangent(tensor, other)
        if kept is not None:
            held.of[other] = kept
    if tangent.dtype is not tensor.dtype:
        tangent = tangent.to(tensor.dtype)
    tangents.give(made, entered[number], tangent)
    return made


def _check(tensor, tangent):
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {kind}")
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not value._aval.differentiable:
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {value.dtype}"
            )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )
    if tangent.dtype.is_complex and not tensor.dtype.is_complex:
        raise RuntimeError(
            f"a tensor of {tensor.dtype} cannot have a tangent of {tangent.dtype}, which is complex"
        )


def _shown_again(tensor):
    """A view of all of a tensor, whose tangents are its own."""
    token = tangents.enabled.set(False)
    try:
        return ops.alias(tensor)
    finally:
        tangents.enabled.reset(token)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A view of a tensor without its tangent at a level, and that tangent.

    The tangent is None where the tensor does not depend on what was made dual, in inference mode,
    and outside of any level. Raises TypeError for what is no tensor.

    >>> import jaxgrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(jaxgrad.tensor(3.0), jaxgrad.tensor(1.0))
    ...     fwAD.unpack_dual(x.sin()).tangent
    tensor(-0.9900)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual(): expected a Tensor, not {type(tensor).__name__}")
    entered = tangents.levels.get()
    number = len(entered) - 1 if level is None else level
    if not 0 <= number < len(entered) or is_inference_mode_enabled():
        return UnpackedDualTensor(tensor, None)
    tangent = tangents.tangent(tensor, entered[number])
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    primal = _shown_again(tensor)
    held = tangents.own(primal)
    for outer in entered[:number]:
        kept = tangents.tangent(tensor, outer)
        if kept is not None:
            held.of[outer] = kept
    tangents.mark(primal)
    return UnpackedDualTensor(primal, tangent)


class _set_fwd_grad_enabled(_Setting):
    """Whether operators compute tangents."""

    def set(self):
        before = tangents.enabled.get()
        tangents.enabled.set(self.mode)
        return before

    def reset(self, before):
        tangents.enabled.set(before)
