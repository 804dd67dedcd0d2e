"""Factories: zeros, ones, full, empty, arange, linspace, logspace, eye, and the `_like` forms.

Every factory takes `FactoryOptions` after its own arguments.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from typing import Unpack

import jax
import numpy as np
from jax.sharding import PartitionSpec

from .. import ops
from ..core import (
    dtypes,
    executor,
    fork,
    host_values,
    named_dtypes,
    promotion,
    spread,
    strides,
    world,
)
from ..core.aval import meta_array, with_strides
from ..core.device import default_device, preserve_format, strided
from ..core.pending import value_of
from ..core.pytorch_tensors import type_name
from ..core.symbolic_extents import is_symbolic
from ..core.tracebacks import users_stacklevel
from ..late import LateModule
from ..storage.inplace_check import give
from ..tape.sparse_tensor import implementation, is_compressed, is_sparse
from ..tape.symbolic_number import is_open, open_number
from ..tape.tensor import (
    Tensor,
    abstract_value,
    current,
    has_tangent,
    held,
    is_concrete,
    set_abstract_value,
)
from ..tape.torch_function import api_boundary
from .array_creation import beside, build, finish
from .factory_options import (
    FactoryOptions,
    check_options,
    dtype_of,
    has_no_data,
    number_of,
    shape_of,
    size_of,
)

communication = LateModule("jaxgrad.core.communication")


def create(name, function, shape, dtype, options, *numbers) -> Tensor:
    """A tensor that `function(shape, dtype, module, *numbers)` fills."""
    if options.get("out") is not None and options.get("memory_format") is not None:
        raise RuntimeError(
            f"'memory_format' argument is incompatible with 'out' tensor argument: {name} keeps "
            "the strides of a tensor that it writes to"
        )
    if check_options(name, options):
        return implementation().make(name, shape, dtype, options)
    if has_no_data(options):
        return from_array(name, meta_array(shape, dtype), options)
    fill = build if fork.is_forked else functools.partial(executor.run, name, build)
    array = fill(function, numbers, shape, dtype, options.get("device"))
    return from_array(name, array, options)


def from_array(name: str, array, options: FactoryOptions) -> Tensor:
    """The tensor of a new array; applies `requires_grad`, `memory_format` and `out`."""
    if options.get("_sharded_like") is not None:
        array = as_sharded(array, options["_sharded_like"])
    result = finish(array, options.get("requires_grad", False))
    requested, out = options.get("memory_format"), options.get("out")
    if requested is preserve_format:
        raise RuntimeError(f"unsupported memory format option Preserve: {name} has no model")
    if requested is not None and not isinstance(requested, tuple) and requested.rank:
        requested.check(name, result.shape)
        requested = requested.strides(result.shape)
    if isinstance(requested, tuple):
        set_abstract_value(result, with_strides(abstract_value(result), requested))
    if out is None:
        return result
    _fill(name, result, out)
    return out.requires_grad_() if options.get("requires_grad", False) else out


# functions of a row of numbers: a target of as many elements keeps its shape
ROWS = frozenset(["arange", "linspace", "logspace", "range"])


def _fill(name: str, result: Tensor, out: Tensor):
    """Write new numbers into a tensor, which is resized without a warning, except by `arange`."""
    count = result.numel()
    if name in ROWS and out.numel() == count:
        result = result.reshape(out.shape)
    elif name == "arange" and out.numel():
        warnings.warn(
            f"The number of elements in the out tensor of shape {list(out.shape)} is "
            f"{out.numel()} which does not match the computed number of elements {count}. The out "
            f"tensor will be resized to a tensor of shape ({count},).",
            stacklevel=users_stacklevel(),
        )
    give(name, result, out, warns=False)


def as_sharded(array, like: Tensor):
    """A new array, sharded as a tensor is; in a trace, of all processes where that is."""
    if host_values.is_new(like._value):
        return array  # NumPy's values are on no mesh
    model = held(current(like))
    if isinstance(array, jax.core.Tracer) or isinstance(model, jax.core.Tracer):
        if not world.is_several() or not communication.is_global(model):
            return array
        whole = communication.FromLocal(spread.mesh_of_value(model), target=PartitionSpec())
        return communication.communicate(array, whole)
    array = value_of(array)
    if world.is_several() and world.spans(model) and array.shape != model.shape:
        return spread.shared(array, spread.mesh_of_value(model))
    return spread.placed_as(array, model)


def _zeros(shape, dtype, module):
    return module.zeros(shape, dtype)


def _ones(shape, dtype, module):
    return module.ones(shape, dtype)


def _full(shape, dtype, module, value):
    return module.full(shape, module.asarray(value, dtype))


def _arange(shape, dtype, module, start, step):
    wide = isinstance(start, float) or isinstance(step, float)
    counts = module.arange(*shape, dtype=module.result_type(float) if wide else None)
    return (counts * step + start).astype(dtype)


def _linspace(shape, dtype, module, start, end):
    (steps,) = shape
    counts = module.arange(steps)
    step = (end - start) / max(steps - 1, 1)
    # count from both ends, so that the last number is exactly `end`
    rising, falling = start + step * counts, end - step * (steps - 1 - counts)
    return module.where(counts < max(steps // 2, 1), rising, falling).astype(dtype)


def _logspace(shape, dtype, module, start, end, base):
    wide = complex if isinstance(start, complex) or isinstance(end, complex) else float
    exponents = _linspace(shape, module.result_type(wide), module, start, end)
    return (base**exponents).astype(dtype)


def _eye(shape, dtype, module):
    return module.eye(*shape, dtype=dtype)


@api_boundary
def zeros(*size, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor of zeros.

    size: the shape, as ints or as one list of ints.
    dtype: the default dtype if it is None. device, requires_grad, layout, memory_format, out: as
    for every factory.

    Raises TypeError for a size that is not of ints, RuntimeError for a negative one.

    >>> jaxgrad.zeros(2, 3, dtype=jaxgrad.int64)
    tensor([[0, 0, 0],
            [0, 0, 0]])
    """
    shape = size_of("zeros", size, options)
    return create("zeros", _zeros, shape, dtype_of(options, dtypes.get_default_dtype()), options)


@api_boundary
def ones(*size, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor of ones; arguments and errors as for `zeros`.

    >>> jaxgrad.ones(2, requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """
    shape = size_of("ones", size, options)
    return create("ones", _ones, shape, dtype_of(options, dtypes.get_default_dtype()), options)


@api_boundary
def empty(*size, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor of unspecified values; arguments and errors as for `zeros`.

    The values are zeros, because XLA has no uninitialized memory.

    >>> jaxgrad.empty(2, 3).shape
    torch.Size([2, 3])
    """
    shape = size_of("empty", size, options)
    return create("empty", _zeros, shape, dtype_of(options, dtypes.get_default_dtype()), options)


@api_boundary
def full(size, fill_value, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor that is filled with one number.

    size: the shape, a list of ints.
    fill_value: a number, or a 0-d tensor that does not require grad.
    dtype: if None, int64 for an int, bool for a bool, the default dtype for a float and its complex
    counterpart for a complex number. Other options as for `zeros`.

    Raises RuntimeError if the dtype cannot hold the number, TypeError for other arguments.

    >>> jaxgrad.full((2,), 1.5), jaxgrad.full((2,), 7)
    (tensor([1.5000, 1.5000]), tensor([7, 7]))
    """
    return _filled("full", shape_of("full", size), fill_value, None, options)


def _filled(name, shape, fill_value, default, options):
    number = number_of(name, "fill_value", fill_value)
    if default is None:
        kind = getattr(open_number(number), "kind", type(number))
        example = kind(0) if is_open(number) else number
        default = dtypes.int64 if kind is int else promotion.result_type(example)
        # as in PyTorch, in complex64 also where the default dtype is of half precision
        default = dtypes.complex64 if default is named_dtypes.complex32 else default
    dtype = named_dtypes.of_tensor(dtype_of(options, default))
    if is_open(number):
        value = open_number(number)._array  # the exported program makes an array of it
    else:
        element = promotion.checked_element(number, dtype, shape)
        value = dtypes.of_array(np.asarray(element), dtype)
    return create(name, _full, shape, dtype, options, value)


@api_boundary
def arange(*bounds, **options) -> Tensor:
    """Return the numbers `start`, `start + step`, ... up to and without `end`, with shape (n,).

    Forms: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`; real numbers.
    dtype: if None, int64 for ints and the default dtype for floats. Other options as for `zeros`.

    Raises RuntimeError if `step` is zero, leads away from `end` or a bound is not finite,
    ValueError if it is zero in the dtype alone, NotImplementedError for a bool or complex dtype.

    >>> jaxgrad.arange(3), jaxgrad.arange(1, 2, 0.5)
    (tensor([0, 1, 2]), tensor([1.0000, 1.5000]))
    """
    numbers = [number_of("arange", name, bound) for name, bound in _bounds(bounds, options).items()]
    if any(isinstance(number, complex) for number in numbers):
        raise RuntimeError(
            "value cannot be converted to type double without overflow: arange() takes real numbers"
        )
    is_float = any(isinstance(number, float) for number in numbers)
    dtype = dtype_of(options, dtypes.get_default_dtype() if is_float else dtypes.int64)
    _refuse("arange", dtype, (dtypes.BOOLEAN, dtypes.COMPLEX))
    count = _count(*numbers, dtype)
    start, _, step = numbers if dtype.is_floating_point else map(_whole, numbers)
    return create("arange", _arange, (count,), dtype, options, start, step)


def _bounds(bounds, options):
    """start, end and step by name, from positional and keyword arguments."""
    named = {name: options.pop(name) for name in ("start", "end", "step") if name in options}
    alone = len(bounds) == 1 and "end" not in named
    arguments = (
        dict(zip(("end",) if alone else ("start", "end", "step"), bounds, strict=False)) | named
    )
    if "end" not in arguments or len(arguments) < len(bounds) + len(named):
        raise TypeError(
            "arange() received an invalid combination of arguments: "
            "it takes (end), (start, end) or (start, end, step)"
        )
    return {
        "start": arguments.get("start", 0),
        "end": arguments["end"],
        "step": arguments.get("step", 1),
    }


def _count(start, end, step, dtype):
    """The number of steps between start and end."""
    if any(map(is_symbolic, (start, end, step))):
        return -((start - end) // step)
    if not all(map(math.isfinite, (start, end))):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    is_given = step != 0
    if dtype is dtypes.int64:
        start, end, step = int(start), int(end), int(step)
    if step == 0 or step != step:
        # as in PyTorch: a step that is 0 as an integer alone is a wrong value
        error = ValueError if step == 0 and is_given else RuntimeError
        raise error("step must be nonzero: arange() would never reach its end")
    if (end - start) * step < 0:
        raise RuntimeError(
            "upper bound and lower bound inconsistent with step sign: "
            f"from {start} to {end} by {step}"
        )
    if dtype is dtypes.int64:
        return -((start - end) // step)
    return math.ceil((end - start) / step)


def _whole(number):
    return number if is_symbolic(number) else int(number)


def _refuse(name, dtype, categories):
    if dtype.category in categories or dtype in dtypes.FLOAT8:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.scalar_type}'")


@api_boundary
def linspace(start, end, steps, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included, with shape
    (steps,).

    start, end: numbers or 0-d tensors, which may be traced or require grad. steps: an int, 0 or
    more.
    dtype: if None, the default dtype, or its complex counterpart for complex ends. Other options as
    for `zeros`.

    Raises RuntimeError for negative `steps` and for complex ends with a real dtype,
    NotImplementedError for a bool dtype.

    >>> jaxgrad.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    count = _steps("linspace", start, end, steps)
    if _is_variable(start) or _is_variable(end):
        return _between("linspace", start, end, count, options, lambda numbers: numbers)
    dtype, start, end = _ends("linspace", start, end, options)
    return create("linspace", _linspace, (count,), dtype, options, start, end)


@api_boundary
def logspace(start, end, steps, base=10.0, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return `steps` numbers from `base**start` to `base**end`, both included, with evenly spaced
    exponents.

    base: a number. Other arguments and errors as for `linspace`.

    >>> jaxgrad.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    base = number_of("logspace", "base", base)
    count = _steps("logspace", start, end, steps)
    if _is_variable(start) or _is_variable(end):
        return _between(
            "logspace", start, end, count, options, lambda exponents: ops.pow(base, exponents)
        )
    dtype, *ends = _ends("logspace", start, end, options)
    # as in PyTorch, the exponent of a single number is no number of the dtype
    start, end = ends if count > 1 else (number_of("logspace", "start", start), ends[1])
    return create("logspace", _logspace, (count,), dtype, options, start, end, base)


def _is_variable(end):
    """Whether an end of a range is a tensor that has no number or that gets a gradient."""
    return isinstance(end, Tensor) and (
        end.requires_grad or has_tangent(end) or not is_concrete(end)
    )


def _between(name, start, end, steps, options, function):
    """A range whose ends are tensors: `_linspace`, and `function` of it, by operators."""
    if check_options(name, options):
        return implementation().make(name, (), None, options)
    dtype = _dtype_between(name, start, end, options)
    wide = dtype if dtype.is_floating_point or dtype.is_complex else dtypes.float64
    place = beside(start if isinstance(start, Tensor) else end)
    start, end = (
        bound if isinstance(bound, Tensor) else full((), bound, dtype=wide, device=place)
        for bound in (start, end)
    )
    start, end = start.to(dtype).to(wide), end.to(dtype).to(wide)  # as `_ends` of numbers
    counts = arange(steps, dtype=wide.to_real() if wide.is_complex else wide, device=place)
    step = (end - start) / max(steps - 1, 1)
    rising, falling = start + step * counts, end - step * (steps - 1 - counts)
    numbers = function(ops.where(counts < max(steps // 2, 1), rising, falling)).to(dtype)
    result = numbers if options.get("device") is None else numbers.to(options["device"])
    if options.get("requires_grad", False):
        result.requires_grad_()
    out = options.get("out")
    if out is None:
        return result
    _fill(name, result, out)
    return out


def _ends(name, start, end, options):
    """The dtype of a range, and its ends as Python numbers."""
    dtype = _dtype_between(name, start, end, options)
    start, end = number_of(name, "start", start), number_of(name, "end", end)
    if dtype.category != dtypes.INTEGRAL:
        return dtype, start, end
    # as in PyTorch, ends are numbers of the dtype before anything is computed of them
    start, end = (promotion.checked_number(int(number), dtype) for number in (start, end))
    period = None if dtype.is_signed else 256**dtype.itemsize
    return (dtype, start, end) if period is None else (dtype, start % period, end % period)


def _dtype_between(name, start, end, options):
    """The dtype of a range with these ends, numbers or tensors without dimensions."""
    for which in (start, end):
        if isinstance(which, Tensor) and which.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, "
                f"but got start with {which.ndim} dimension(s)."
            )
    categories = (promotion.result_type(bound).category for bound in (start, end))
    natural = dtypes.get_default_dtype()
    natural = natural.to_complex() if dtypes.COMPLEX in categories else natural
    dtype = dtype_of(options, natural)
    if natural.is_complex and not dtype.is_complex:
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {natural} can't be safely cast to passed dtype {dtype}"
        )
    _refuse(name, dtype, (dtypes.BOOLEAN,))
    return dtype


def _steps(name, start, end, steps):
    if isinstance(steps, bool) or not hasattr(steps, "__index__"):
        types = ", ".join(type_name(argument) for argument in (start, end, steps))
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({types}): argument "
            f"'steps' must be int, not {type_name(steps)}"
        )
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {steps}")
    return operator.index(steps)


@api_boundary
def eye(n: int, m: int | None = None, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a matrix of shape (n, m) with ones on its diagonal and zeros elsewhere.

    n: the number of rows. m: the number of columns, n if it is None. Options as for `zeros`.

    Raises TypeError unless both are ints, RuntimeError if one is negative.

    >>> jaxgrad.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    for name, extent in (("n", n), ("m", n if m is None else m)):
        is_size = hasattr(extent, "__index__") or is_symbolic(extent)
        if isinstance(extent, bool) or not is_size:
            raise TypeError(f"eye(): argument '{name}' must be int, not {type(extent).__name__}")
        if extent < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {extent}")
    shape = shape_of("eye", (n, n if m is None else m))
    return create("eye", _eye, shape, dtype_of(options, dtypes.get_default_dtype()), options)


def like(name: str, input: Tensor, options: FactoryOptions) -> FactoryOptions:
    """Complete the options of a `_like` factory by the dtype, device and strides of `input`."""
    if "out" in options:
        raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type_name(input)}")
    if is_sparse(input) and options.get("layout") is None:
        if not name.startswith("new_"):
            implementation().refuse(name)
        options["layout"] = input.layout
    if options.get("dtype") is None:
        options["dtype"] = input.dtype
    if options.get("device") is None and input.device != default_device():
        options["device"] = input.device
    if spread.meshes:
        options["_sharded_like"] = input
    keeps = options.get("memory_format") in (None, preserve_format)
    if keeps and name.endswith("_like"):
        shown = abstract_value(input)
        is_usual = shown.strides is None
        options["memory_format"] = None if is_usual else strides.like(input.shape, shown.strides)
    return options


@api_boundary
def zeros_like(input: Tensor, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return zeros in the shape of another tensor, by default in its dtype and on its device.

    input: a tensor of any shape and dtype; for a sparse one the result is sparse, without elements.
    Options as for `zeros`. Raises TypeError if `input` is not a tensor.

    >>> jaxgrad.zeros_like(jaxgrad.arange(3))
    tensor([0, 0, 0])
    """
    if is_sparse(input) and options.get("layout") in (None, input.layout):
        return implementation().zeros_like(input, options)
    options = like("zeros_like", input, options)
    return create("zeros_like", _zeros, input.shape, dtype_of(options, None), options)


@api_boundary
def ones_like(input: Tensor, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return ones in the shape of another tensor; see `zeros_like`.

    >>> jaxgrad.ones_like(jaxgrad.arange(3), dtype=jaxgrad.float32)
    tensor([1., 1., 1.])
    """
    if is_compressed(input) and options.get("layout") in (None, input.layout):
        return implementation().like_with(lambda values: values.fill_(1), input, options)
    options = like("ones_like", input, options)
    return create("ones_like", _ones, input.shape, dtype_of(options, None), options)


@api_boundary
def empty_like(input: Tensor, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor of unspecified values in the shape of another; see `zeros_like`.

    >>> jaxgrad.empty_like(jaxgrad.arange(3)).dtype
    torch.int64
    """
    if is_sparse(input) and options.get("layout") is not strided:
        return implementation().empty_like(input, options)
    options = like("empty_like", input, options)
    return create("empty_like", _zeros, input.shape, dtype_of(options, None), options)


@api_boundary
def full_like(input: Tensor, fill_value, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor in the shape of another, filled with one number; see `zeros_like`.

    fill_value: a number. Raises RuntimeError if the dtype cannot hold it.

    >>> jaxgrad.full_like(jaxgrad.zeros(2), 7)
    tensor([7., 7.])
    """
    if is_compressed(input) and options.get("layout") in (None, input.layout):
        return implementation().like_with(lambda values: values.fill_(fill_value), input, options)
    options = like("full_like", input, options)
    return _filled("full_like", input.shape, fill_value, input.dtype, options)


class FactoryMethods:
    """Factories as methods of `Tensor`; the defaults are its dtype and device."""

    @api_boundary
    def new_zeros(self, *size, **options: Unpack[FactoryOptions]) -> Tensor:
        """Return zeros, by default in this tensor's dtype and on its device; see `zeros`.

        >>> jaxgrad.arange(3).new_zeros(2)
        tensor([0, 0])
        """
        return zeros(*size, **like("new_zeros", self, options))

    @api_boundary
    def new_ones(self, *size, **options: Unpack[FactoryOptions]) -> Tensor:
        """Return ones, by default in this tensor's dtype and on its device; see `ones`.

        >>> jaxgrad.arange(3).new_ones(2)
        tensor([1, 1])
        """
        return ones(*size, **like("new_ones", self, options))

    @api_boundary
    def new_empty(self, *size, **options: Unpack[FactoryOptions]) -> Tensor:
        """Return unspecified values, by default in this tensor's dtype and on its device.

        Arguments and errors as for `empty`.

        >>> jaxgrad.arange(3).new_empty(2).dtype
        torch.int64
        """
        return empty(*size, **like("new_empty", self, options))

    @api_boundary
    def new_full(self, size, fill_value, **options: Unpack[FactoryOptions]) -> Tensor:
        """Return a tensor filled with one number, by default in this tensor's dtype and on its
        device; see `full`.

        >>> jaxgrad.zeros(1).new_full((2,), 3)
        tensor([3., 3.])
        """
        return full(size, fill_value, **like("new_full", self, options))
