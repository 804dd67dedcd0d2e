"""The arguments `out=` and numpy's names of arguments, for functions composed of operators."""

from __future__ import annotations

import functools
import inspect

import jax

from ..core.overloads import renamed
from ..storage import inplace_check
from ..tape.tensor import Tensor, abstract_value
from ..tape.torch_function import api_boundary


def takes_out(function, tags=frozenset(), sees_out=False, refusal=None):
    """Give a function the keyword `out`: the tensor, or the tensors, that receive its results.

    The errors are those of an operator's `out` with these tags. As an operator, it takes numpy's
    `axis` for `dim`. sees_out: whether the function takes the tensor, as `_target`. refusal: the
    words of PyTorch for a tensor of another dtype, with {expected} and {dtype}.
    """
    signature, name = inspect.signature(function), function.__name__
    out_parameter = inspect.Parameter(
        "out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Tensor | None
    )

    @api_boundary
    @functools.wraps(function)
    def call(*args, out=None, **kwargs):
        kwargs = renamed(kwargs, signature.parameters)
        if out is None:
            return function(*args, **kwargs)
        targets = inplace_check.targets_of(
            name, jax.tree.leaves((args, kwargs), is_leaf=_is_tensor), out
        )
        if sees_out:
            kwargs["_target"] = targets[0]
        output = function(*args, **kwargs)
        inplace_check.check_kind(name, out, isinstance(output, Tensor))
        results = [output] if isinstance(output, Tensor) else list(output)
        avals = [abstract_value(result) for result in results]
        if refusal is not None:
            _refuse_other_dtypes(refusal, avals, targets)
        inplace_check.check_outputs(name, avals, targets, tags)
        for result, target in zip(results, targets, strict=True):
            inplace_check.give(name, result.to(target.dtype), target)
        if isinstance(out, Tensor):
            return out
        return output._make(targets) if hasattr(output, "_fields") else tuple(targets)

    # a stable sort: `out` goes before `**options`
    parameters = sorted([*signature.parameters.values(), out_parameter], key=lambda p: p.kind)
    call.__signature__ = signature.replace(parameters=parameters)
    return call


takes_exact_out = functools.partial(takes_out, tags=frozenset(["exact_out"]))
takes_joined_out = functools.partial(takes_out, tags=frozenset(["type_error_out"]))
takes_seen_out = functools.partial(takes_out, sees_out=True)
takes_real_out = functools.partial(takes_out, tags=frozenset(["real_out"]))


def _refuse_other_dtypes(refusal, avals, targets):
    for aval, target in zip(avals, targets, strict=False):
        if target.dtype is not aval.dtype:
            kinds = {"expected": aval.dtype.scalar_type, "dtype": target.dtype.scalar_type}
            raise RuntimeError(refusal.format(**kinds))


def _is_tensor(value):
    return isinstance(value, Tensor)
