"""Gradient clipping, as torch.nn.utils.clip_grad."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Iterable

import jax.numpy as jnp

from ...autograd.grad_mode import no_grad
from ...core.device import are_several
from ...frontend.factories import zeros
from ...frontend.jax_interop import own_operator
from ...names.missing import missing_in
from ...tape.sparse_tensor import implementation, is_sparse
from ...tape.tensor import Tensor, is_traced


def _norm(array, p):
    """Return the p-norm of an array; float16 and bfloat16 are computed in float32."""
    size = jnp.abs(array)
    if size.dtype in (jnp.float16, jnp.bfloat16):
        size = size.astype(jnp.float32)
    if p == 2:
        return jnp.sqrt(jnp.sum(jnp.square(size)))
    if math.isinf(p):
        return jnp.max(size, initial=0) if p > 0 else jnp.min(size, initial=jnp.inf)
    if p == 0:
        return jnp.sum(size != 0).astype(size.dtype)
    return jnp.sum(size**p) ** (1 / p)


@own_operator
def _total_norm(arrays, p):
    norms = jnp.stack([_norm(array, p) for array in arrays])
    kind = functools.reduce(jnp.promote_types, [jnp.finfo(array.dtype).dtype for array in arrays])
    return _norm(norms, p).astype(kind)


def _as_list(parameters) -> list[Tensor]:
    if callable(getattr(parameters, "parameters", None)):
        kind = type(parameters).__name__
        raise TypeError(f"{kind!r} object is not iterable: pass its parameters()")
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters) -> list[Tensor]:
    gradients = [parameter.grad for parameter in parameters]
    return [gradient for gradient in gradients if gradient is not None]


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the p-norm of tensors taken as one vector, a tensor without dimensions; 0 for none.

    tensors: one tensor or an iterable, floating-point or complex dtypes; the elements of a sparse
    one count where they are stored. norm_type: p, a number or
    `inf`. foreach: accepted, without effect. error_if_nonfinite: raise RuntimeError if the norm is
    infinite or NaN; it needs the value of the norm, so it also raises under `jaxgrad.jit`.

    >>> jaxgrad.nn.utils.get_total_norm([jaxgrad.tensor([3.0]), jaxgrad.tensor([4.0])])
    tensor(5.)
    """
    tensors, norm_type = _as_list(tensors), float(norm_type)
    if not tensors:
        return zeros(())
    tensors = [implementation().merged_values(t) if is_sparse(t) else t for t in tensors]
    if are_several() and len({tensor.device for tensor in tensors}) > 1:
        tensors = [_total_norm([t], norm_type).to(tensors[0].device) for t in tensors]
    total = _total_norm(tensors, norm_type)
    if error_if_nonfinite:
        _check_finite(total, norm_type)
    return total


def _check_finite(total, norm_type):
    if is_traced(total):
        raise RuntimeError(
            "error_if_nonfinite=True reads the total norm, which has no value while it is being "
            "traced: leave it out and check the returned norm outside"
        )
    if not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To scale the gradients by it all the same, set "
            "`error_if_nonfinite=False`"
        )


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Multiply the `.grad` of parameters in place by `min(1, max_norm / (total_norm + 1e-6))`.

    parameters: one tensor or an iterable. total_norm: without dimensions, as from `get_total_norm`.
    foreach: accepted, without effect.

    >>> x = jaxgrad.ones(1, requires_grad=True)
    >>> (x * 8).sum().backward()
    >>> jaxgrad.nn.utils.clip_grads_with_norm_(x, 1.0, jaxgrad.tensor(2.0))
    >>> x.grad
    tensor([4.0000])
    """
    scale = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    for gradient in _gradients(_as_list(parameters)):
        gradient.mul_(scale.to(gradient.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the `.grad` of parameters in place to a total norm of at most `max_norm`.

    Returns the norm before, without dimensions. The other arguments and errors are those of
    `get_total_norm`, the formula that of `clip_grads_with_norm_`.
    Source: Pascanu et al., "On the Difficulty of Training Recurrent Neural Networks", 2013.

    >>> x = jaxgrad.ones(1, requires_grad=True)
    >>> (x * 8).sum().backward()
    >>> jaxgrad.nn.utils.clip_grad_norm_([x], max_norm=2.0), x.grad
    (tensor(8.), tensor([2.0000]))
    """
    is_generator = inspect.isgenerator(parameters)
    parameters = _as_list(parameters)
    if is_generator and not parameters:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Call `clip_grad_norm_`, the newer name, after a FutureWarning.

    >>> x = jaxgrad.ones(1, requires_grad=True)
    >>> (x * 8).sum().backward()
    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.nn.utils.clip_grad_norm([x], max_norm=2.0)
    tensor(8.)
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamp each element of the `.grad` of parameters in place to [-clip_value, clip_value].

    parameters: one tensor or an iterable. foreach: accepted, without effect.

    >>> x = jaxgrad.ones(1, requires_grad=True)
    >>> (x * 8).sum().backward()
    >>> jaxgrad.nn.utils.clip_grad_value_(x, 2.0)
    >>> x.grad
    tensor([2.])
    """
    for gradient in _gradients(_as_list(parameters)):
        gradient.clamp_(min=-clip_value, max=clip_value)


__getattr__ = missing_in(__name__)
