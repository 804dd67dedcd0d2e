"""Random sampling: distributions and in-place samplers, whose numbers come from a generator.

frontend/random.py has the functions that only create tensors. The old values of a tensor that a
sampler overwrites, and the parameters of a distribution, get gradients of zero; gamma and Dirichlet
samples alone have others.

Every function raises TypeError for a `generator` that is none.
"""

from __future__ import annotations

import math
import numbers

from .. import ops
from ..core import dtypes, promotion
from ..core.device import contiguous_format
from ..frontend import draw
from ..frontend.factories import empty_like, like
from ..frontend.factory_options import number_of, shape_of
from ..frontend.random import (
    check_draw,
    draw_floats,
    draw_integers,
    draw_normal,
    generator_of,
    new_key,
    random_tensor,
    refuse_long,
    samples_in_turn,
    steps_of,
)
from ..frontend.request import is_dense_copy
from ..late import LateModule
from ..storage import inplace_check
from ..tape.tensor import Tensor, is_concrete, may_require_grad
from ..tape.torch_function import api_boundary
from . import samplers
from .arguments import check_probability, check_tensor
from .out import takes_exact_out, takes_out, takes_seen_out

rejection = LateModule("jaxgrad.frontend.rejection")  # it needs NumPy's random numbers


def _uniform(shape, like_tensor, generator, is_double, steps=None) -> Tensor:
    """Uniform numbers in [0, 1), float64 or float32, to compare with probabilities; steps: the
    strides of a tensor that they are for.
    """
    dtype = dtypes.float64 if is_double else dtypes.float32
    options = like("uniform", like_tensor, {"generator": generator, "dtype": dtype})
    options["_steps"] = steps
    return random_tensor("rand", draw.uniform, tuple(shape), dtype, options)


@takes_out
def bernoulli(input: Tensor, p: float | None = None, *, generator=None) -> Tensor:
    """Return ones with the given probabilities and zeros otherwise.

    input: probabilities, a floating-point tensor of any shape. p: one probability for all elements;
    then `input` gives shape and dtype only. generator: the default one if it is None.

    The gradient is 0. Raises RuntimeError for a probability outside [0, 1], NotImplementedError for
    other dtypes.

    >>> jaxgrad.bernoulli(jaxgrad.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    check_tensor("bernoulli", input)
    if p is not None:
        if isinstance(p, Tensor):
            raise TypeError("bernoulli(): argument 'p' must be float, not Tensor")
        check_draw(input)
        contiguous = input.clone(memory_format=contiguous_format)
        return bernoulli_(contiguous, p, generator=generator)
    if input.dtype.is_floating_point:
        _check_probabilities(input)
    check_draw(input)
    is_double = input.dtype is dtypes.float64
    return ops._bernoulli(input, _uniform(input.shape, input, generator, is_double))


def _source(generator, name, parameters_of, *parameters):
    """What an operator of rules/random.py draws from: samples of PyTorch's stream for these
    parameters, or a key. parameters_of: gives the sampler and its parameters for their values.
    """
    check_draw(*parameters)
    generator = generator_of(name, {"generator": generator})
    samples = samples_in_turn(generator, name, parameters_of, *parameters)
    if samples is not None:
        return samples
    return new_key(generator, name, parameters[0], at_once=True)


def _check_probabilities(p):
    if is_concrete(p) and not bool(((p >= 0) & (p <= 1)).all()):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: a probability is outside"
        )


@takes_out
def poisson(input: Tensor, generator=None) -> Tensor:
    """Return numbers from Poisson distributions.

    input: the rates, a floating-point tensor of any shape, not negative; the result has its shape
    and dtype. generator: the default one if it is None.

    The gradient is 0. Raises RuntimeError for a negative rate, NotImplementedError for another
    dtype.

    >>> jaxgrad.poisson(jaxgrad.zeros(2))
    tensor([0., 0.])
    """
    check_tensor("poisson", input)
    known = input.dtype.is_floating_point and is_concrete(input)
    if known and not bool((input >= 0).all()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return ops._poisson(input, _source(generator, "poisson", rejection.poisson, input))


@takes_out
def binomial(count: Tensor, prob: Tensor, generator=None) -> Tensor:
    """Return numbers of successes from binomial distributions.

    count: the numbers of trials, a floating-point tensor. prob: the probabilities of success, of
    the same dtype; shapes broadcast. generator: the default one if it is None.

    The gradients are 0. Raises ValueError for dtypes that are not floating point, RuntimeError for
    different ones.

    >>> jaxgrad.binomial(jaxgrad.tensor([3.0, 3.0]), jaxgrad.tensor([0.0, 1.0]))
    tensor([0., 3.])
    """
    check_tensor("binomial", count, "argument 'count'")
    check_tensor("binomial", prob, "argument 'prob'")
    return ops._binomial(
        count, prob, _source(generator, "binomial", rejection.binomial, count, prob)
    )


@takes_exact_out
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator=None):
    """Return categories with probabilities in proportion to weights.

    input: the weights, a floating-point tensor of shape (k,) or (m, k), finite and not negative,
    with a positive sum. num_samples: n, how many to draw for each row. replacement: whether a
    category may come twice. generator: the default one if it is None. Returns int64 of shape (n,)
    or (m, n).

    Raises RuntimeError for other weights, n < 1, and n > k without replacement.

    >>> jaxgrad.multinomial(jaxgrad.tensor([0.0, 1.0]), 2, replacement=True)
    tensor([1, 1])
    """
    check_tensor("multinomial", input)
    if input.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, but its shape is {list(input.shape)}")
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{input.dtype.scalar_type}"
        )
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, but got {num_samples}")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement: "
            f"{num_samples} of {input.shape[-1]}"
        )
    if input.shape[-1] > 2**24:
        raise RuntimeError(f"number of categories cannot exceed 2^24, but is {input.shape[-1]}")
    if is_concrete(input):
        _check_weights(input.detach())
    check_draw(input)
    weights = input.detach()
    if replacement and num_samples > 1:
        shape = (*input.shape[:-1], num_samples)
        numbers = _uniform(shape, input, generator, is_double=True)
    else:
        replacement = False
        options = like("multinomial", weights, {"generator": generator})
        # rows of matrices are copied one behind the other first
        is_of_all = input.ndim == 1 and len(steps_of(input) or ()) > 1
        options["_steps"] = steps_of(input) if is_of_all else empty_like(weights).stride()
        shape = tuple(weights.shape)
        numbers = random_tensor(
            "multinomial", samplers.EXPONENTIAL, shape, weights.dtype, options, 1.0
        )
    return ops._multinomial(weights, num_samples, replacement, numbers)


def _check_weights(weights):
    if not bool((weights.isfinite() & (weights >= 0)).all()):
        raise RuntimeError(
            "invalid multinomial distribution: "
            "probability tensor contains either `inf`, `nan` or element < 0"
        )
    if not bool((weights.sum(-1) > 0).all()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


@takes_seen_out
def normal(mean=0.0, std=1.0, size=None, *, generator=None, **options) -> Tensor:
    """Return numbers from normal distributions with the given means and standard deviations.

    mean, std: numbers, or floating-point tensors that broadcast; the result has their shape, and
    the dtype of `mean` if that is a tensor. size: the shape, a list of ints, if both are numbers.
    generator: the default one if it is None. Other options as for `rand`. A number as the mean of
    complex numbers is that of both parts.

    The gradients of `mean` and `std` are 0; write `mean + std * randn_like(std)` to get others.
    Raises RuntimeError for a negative `std`, TypeError if both are numbers and there is no size,
    or for a size otherwise.

    >>> jaxgrad.normal(jaxgrad.tensor([1.0, 2.0]), 0.0)
    tensor([1., 2.])
    """
    tensors = [parameter for parameter in (mean, std) if isinstance(parameter, Tensor)]
    is_misused = any(tensor.ndim for tensor in tensors) if size is not None else not tensors
    if is_misused:
        raise TypeError(
            "normal() received an invalid combination of arguments: two numbers need a size, and "
            "tensors give it"
        )
    _check_deviation(std)
    options["generator"] = generator
    requires_grad, target = options.pop("requires_grad", False), options.pop("_target", None)
    if target is not None:
        dtype = dtypes.as_dtype(options.setdefault("dtype", target.dtype) or target.dtype)
        if dtype is not target.dtype:
            raise RuntimeError(
                f"normal: dtype {dtype.scalar_type} does not match dtype of out parameter "
                f"({target.dtype.scalar_type})"
            )
    if size is not None:
        shape = shape_of("normal", size)
        options["_steps"] = _steps_of(target, shape)
        mean, std = number_of("normal", "mean", mean), number_of("normal", "std", std)
        numbers = _normal("normal", shape, options, mean, std)
        return numbers.requires_grad_(requires_grad)
    check_draw(*tensors)
    shape = promotion.broadcast_shapes("normal", *(tensor.shape for tensor in tensors))
    options, is_scaled = like("normal", tensors[0], options), not isinstance(std, Tensor)
    if tensors[0].is_complex() and not dtypes.as_dtype(options["dtype"]).is_complex:
        raise RuntimeError(
            f"normal: result type {tensors[0].dtype.scalar_type} can't be cast to the desired "
            f"output type {dtypes.as_dtype(options['dtype']).scalar_type}"
        )
    options["_steps"] = _steps_of(target, shape)
    sample = _normal("normal", shape, options, 0.0, std if is_scaled else 1.0)
    numbers = ops._normal(mean, 1.0 if is_scaled else std, sample)
    return numbers if numbers.dtype is sample.dtype else numbers.to(sample.dtype)


def _steps_of(target: Tensor | None, shape):
    """The strides of a tensor that takes the numbers, if it has their shape."""
    return steps_of(target) if target is not None and target.shape == shape else None


def _normal(name, shape, options, mean, std) -> Tensor:
    """Normal numbers; mean, std: Python numbers, maybe those of a trace, or tensors."""
    if isinstance(mean, complex):
        raise TypeError(f"{name}(): argument 'mean' must be float, not complex")
    if not {type(mean), type(std)} <= {int, float, bool}:
        sample = draw_normal(name, shape, options) * std
        return sample + (sample.new_tensor(1 + 1j) * mean if sample.is_complex() else mean)
    numbers = float(std), float(mean)
    return draw_floats(name, draw.scaled_normal, shape, options, "normal_kernel_cpu", *numbers)


def _check_deviation(std):
    if not isinstance(std, Tensor):
        if isinstance(std, numbers.Number) and not std >= 0:  # NaN too
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
        return
    if std.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex, not complex")
    if is_concrete(std) and bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0, but one is negative")


# gamma and Dirichlet


@api_boundary
def _standard_gamma(input: Tensor, generator=None) -> Tensor:
    """Return numbers from gamma distributions with rate 1.

    input: the shapes, a floating-point tensor, positive. generator: the default one if it is None.
    The gradient is that of implicit reparameterization. Raises NotImplementedError for another
    dtype.
    """
    check_tensor("_standard_gamma", input)
    return ops._gamma_sample(input, _source(generator, "_standard_gamma", rejection.gamma, input))


@api_boundary
def _sample_dirichlet(input: Tensor, generator=None) -> Tensor:
    """Return points from Dirichlet distributions.

    input: the concentrations, a floating-point tensor of shape (..., n), positive. generator: the
    default one if it is None. The gradient is that of implicit reparameterization. Raises
    NotImplementedError for another dtype.
    """
    check_tensor("_sample_dirichlet", input)
    return ops._dirichlet_sample(
        input, _source(generator, "_sample_dirichlet", rejection.gamma_of_double, input)
    )


_standard_gamma_grad, _dirichlet_grad = ops._standard_gamma_grad, ops._dirichlet_grad


# in-place samplers; for the distributions see samplers.py


def _drawn(name, distribution, tensor, generator, *arguments) -> Tensor:
    """A sample in the shape and dtype of a tensor that it will overwrite."""
    inplace_check.permit(name, tensor, tensor.requires_grad)
    check_draw(target=tensor)
    _refuse(name, tensor, tensor.dtype in dtypes.FLOAT8)
    options = like(name, tensor, {"generator": generator})
    options["_steps"] = steps_of(tensor)
    return random_tensor(
        name, distribution, tuple(tensor.shape), tensor.dtype, options, *map(float, arguments)
    )


def _refuse(kernel, tensor, is_refused):
    if is_refused:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{tensor.dtype.scalar_type}'")


@api_boundary
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, generator=None) -> Tensor:
    """Fill the tensor with numbers from a normal distribution, and return it.

    mean, std: numbers; the mean is that of both parts of a complex number. generator: the default
    one if it is None.

    Raises RuntimeError for a negative `std` and for a leaf that requires grad, NotImplementedError
    for an integer tensor.

    >>> jaxgrad.zeros(3).normal_(1.0, 0.0)
    tensor([1., 1., 1.])
    """
    inplace_check.permit("normal_", self, self.requires_grad)
    check_draw(mean, std, target=self)
    _check_deviation(std)
    options = like("normal_", self, {"generator": generator})
    options["_steps"] = steps_of(self)
    sample = _normal("normal_", tuple(self.shape), options, mean, std)
    return inplace_check.replace(ops._normal_, self, sample)


@api_boundary
def uniform_(self: Tensor, *bounds, generator=None, **named) -> Tensor:
    """Fill the tensor with numbers from the uniform distribution on [from, to), and return it.

    Form: `uniform_(from, to)` with numbers, 0 and 1 by default. generator: the default one if it is
    None.

    Raises RuntimeError if `from` is greater than `to`, if the dtype cannot hold them or their
    difference, and for a leaf that requires grad; NotImplementedError for an integer tensor;
    TypeError for other arguments.

    >>> jaxgrad.zeros(2).uniform_(3, 3)
    tensor([3., 3.])
    """
    bounds, generator = _split_generator(bounds, generator)
    arguments = dict(zip(("from", "to"), bounds, strict=False)) | named
    low, high = arguments.pop("from", 0.0), arguments.pop("to", 1.0)
    if arguments or len(bounds) > 2:
        raise TypeError("uniform_() takes two bounds, `from` and `to`, and a generator")
    _refuse("check_uniform_bounds", self, not may_require_grad(self))
    greatest = dtypes.finfo(self.dtype).max
    for which, bound in (("from", low), ("to", high)):
        if not abs(bound) <= greatest:
            raise RuntimeError(f"{which} is out of bounds for {self.dtype}: {bound}")
    _check_range(low, high)
    if high - low > greatest:
        raise RuntimeError(
            f"uniform_ expects to-from <= {greatest}, but found to={high} and from={low} which "
            "result in to-from to exceed the limit"
        )
    sample = _drawn("uniform_", samplers.UNIFORM, self, generator, low, high)
    return inplace_check.replace(ops._uniform_, self, sample)


def _check_range(low, high):
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )


def _split_generator(arguments, generator):
    """Positional arguments without a generator at their end, and the generator."""
    if arguments and generator is None and not isinstance(arguments[-1], numbers.Number):
        return arguments[:-1], arguments[-1]
    return arguments, generator


@api_boundary
def bernoulli_(self: Tensor, p=0.5, generator=None) -> Tensor:
    """Fill the tensor with ones with probability `p` and zeros otherwise, and return it.

    p: a number, or a floating-point tensor that broadcasts. generator: the default one if it is
    None.

    Raises RuntimeError for a probability outside [0, 1] and for a leaf that requires grad,
    NotImplementedError for a complex tensor and for a `p` of another dtype.

    >>> jaxgrad.zeros(2).bernoulli_(1.0)
    tensor([1., 1.])
    """
    inplace_check.permit("bernoulli_", self, self.requires_grad)
    check_draw(p, target=self)
    _refuse("bernoulli_scalar_cpu_", self, self.is_complex())
    if isinstance(p, Tensor):
        _refuse("bernoulli_tensor_cpu_p_", p, not p.dtype.is_floating_point)
        _check_probabilities(p)
    else:
        check_probability(p)
    is_double = not isinstance(p, Tensor) or p.dtype is dtypes.float64
    probabilities = p if isinstance(p, Tensor) else self
    sample = _uniform(self.shape, probabilities, generator, is_double, steps_of(self))
    return ops._bernoulli_(self, p, sample)


def truncated_normal_(self: Tensor, mean, std, least, greatest, generator) -> Tensor:
    """Fill the tensor with normal numbers between two bounds, drawn in single precision, and return
    it.
    """
    # twice the values of the distribution function, less 1
    values = [(1 + math.erf((end - mean) / std / math.sqrt(2.0))) / 2 for end in (least, greatest)]
    bounds = [2 * value - 1 for value in values]
    _check_range(*bounds)
    numbers = *bounds, std, mean, least, greatest, is_dense_copy(self.shape, self.stride())
    _refuse("normal_kernel_cpu", self, not self.dtype.is_floating_point)
    sample = _drawn("trunc_normal_", samplers.TRUNCATED_NORMAL, self, generator, *numbers)
    return inplace_check.replace(ops._normal_, self, sample)


@api_boundary
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, generator=None) -> Tensor:
    """Fill the tensor with numbers from a Cauchy distribution, and return it.

    median: a number. sigma: the half width, positive. generator: the default one if it is None.
    Raises RuntimeError for another sigma or dtype and for a leaf that requires grad.

    >>> jaxgrad.zeros(3).cauchy_().shape
    torch.Size([3])
    """
    _check_continuous("Cauchy", self)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    sample = _drawn("cauchy_", samplers.CAUCHY, self, generator, median, sigma)
    return inplace_check.replace(ops._cauchy_, self, sample)


def _check_continuous(name, tensor):
    if not tensor.dtype.is_floating_point:
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {tensor.dtype.scalar_type}"
        )


@api_boundary
def exponential_(self: Tensor, lambd: float = 1.0, generator=None) -> Tensor:
    """Fill the tensor with positive numbers from an exponential distribution, and return it.

    lambd: the rate, positive. generator: the default one if it is None. Raises RuntimeError for
    another rate or dtype and for a leaf that requires grad.

    >>> bool((jaxgrad.zeros(3).exponential_() > 0).all())
    True
    """
    _check_continuous("Exponential", self)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    sample = _drawn("exponential_", samplers.EXPONENTIAL, self, generator, lambd)
    return inplace_check.replace(ops._exponential_, self, sample)


@api_boundary
def geometric_(self: Tensor, p: float, generator=None) -> Tensor:
    """Fill the tensor with the number of trials up to the first success, and return it.

    p: the probability of success, in (0, 1); the numbers begin at 1. generator: the default one if
    it is None. Raises RuntimeError for another p and for a leaf that requires grad,
    NotImplementedError for a bool or complex tensor.

    >>> bool((jaxgrad.zeros(3).geometric_(0.5) >= 1).all())
    True
    """
    _refuse("geometric_cpu", self, self.is_complex() or self.dtype is dtypes.bool)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    sample = _drawn("geometric_", samplers.GEOMETRIC, self, generator, math.log1p(-p))
    return inplace_check.replace(ops._geometric_, self, sample)


@api_boundary
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, generator=None) -> Tensor:
    """Fill the tensor with numbers whose logarithms are normal, and return it.

    mean, std: those of the logarithms; std is positive. generator: the default one if it is None.
    Raises RuntimeError for another std and for a leaf that requires grad, NotImplementedError for a
    tensor that is not floating point.

    >>> bool((jaxgrad.zeros(3).log_normal_() > 0).all())
    True
    """
    _refuse("log_normal_cpu", self, not self.dtype.is_floating_point)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    sample = _drawn("log_normal_", samplers.LOG_NORMAL, self, generator, mean, std)
    return inplace_check.replace(ops._log_normal_, self, sample)


@api_boundary
def random_(self: Tensor, *bounds, generator=None, **named) -> Tensor:
    """Fill the tensor with integers from a uniform distribution, and return it.

    Forms: `random_(from, to)` draws from [from, to), `random_(to)` from [0, to), and `random_()`
    all numbers from 0 that the dtype holds exactly. generator: the default one if it is None.

    Raises RuntimeError for an empty range, for bounds that the dtype cannot hold and for a leaf
    that requires grad, TypeError for bounds that are not ints, NotImplementedError for a complex
    tensor.

    >>> jaxgrad.zeros(3).random_(2, 3)
    tensor([2., 2., 2.])
    """
    if bounds and generator is None and not hasattr(bounds[-1], "__index__") and bounds[-1]:
        bounds, generator = _split_generator(bounds, generator)
    alone = len(bounds) == 1 and "to" not in named
    arguments = dict(zip(("to",) if alone else ("from", "to"), bounds, strict=False)) | named
    for which, bound in arguments.items():
        is_int = hasattr(bound, "__index__") and not isinstance(bound, bool)
        if which not in ("from", "to") or not (is_int or (bound is None and which == "to")):
            raise TypeError(
                "random_() received an invalid combination of arguments: it takes (), (int to) or "
                f"(int from, int to), not {which}={bound!r}"
            )
    inplace_check.permit("random_", self, self.requires_grad)
    check_draw(target=self)
    _refuse("random_kernel_cpu", self, self.is_complex() or self.dtype in dtypes.FLOAT8)
    low, high = arguments.get("from", 0), arguments.get("to")
    if high is not None and high >= 2**63:
        refuse_long("random_", low, high)
    if high is None:
        high = _exact_end(self.dtype)
    options = like("random_", self, {"generator": generator})
    options["_steps"] = steps_of(self)
    if arguments:
        sample = draw_integers("random_", low, high, tuple(self.shape), options, self.dtype)
    else:
        sample = random_tensor(
            "random_", draw.all_integers, tuple(self.shape), self.dtype, options, high
        )
    name = "_random_from_" if "from" in arguments else "_random_to_" if arguments else "_random_"
    return inplace_check.replace(getattr(ops, name), self, sample)


def _exact_end(dtype):
    """The first int that a dtype does not hold exactly, at most the greatest of 64 bits."""
    if dtype is dtypes.bool:
        return 2
    if dtype.is_floating_point:
        return round(2 / dtypes.finfo(dtype).eps) + 1
    return dtypes.iinfo(dtype).max + 1
