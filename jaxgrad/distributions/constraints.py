"""The regions in which parameters and values must lie: torch.distributions.constraints.

Those with parameters are classes: `greater_than(0)`, `independent(positive, 1)`. The others are
objects: `real`, `simplex`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..core import dtypes
from ..frontend.factories import full
from ..names.missing import missing_in
from ..tape.tensor import Tensor, is_concrete

_UNKNOWN = NotImplemented

__all__ = [
    *("Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property"),
    *("greater_than", "greater_than_eq", "independent", "integer_interval", "interval"),
    *("half_open_interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular"),
    *("MixtureSameFamilyConstraint", "multinomial", "nonnegative", "nonnegative_integer"),
    *("one_hot", "positive", "positive_semidefinite", "positive_definite", "positive_integer"),
    *("real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval"),
]


class Constraint:
    """A region in which a value may lie.

    is_discrete: whether it consists of single points. event_dim: how many of the last dimensions of
    a value it looks at together. Subclasses define `check`.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.positive.check(jaxgrad.tensor([1.0, 0.0]))
    tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Return a bool tensor of the shape of `value` without its last `event_dim` dimensions.

        >>> jaxgrad.distributions.constraints.simplex.check(jaxgrad.tensor([[0.5, 0.5], [1, 1]]))
        tensor([ True, False])
        """
        raise NotImplementedError(f"{type(self).__name__} must define check(value)")

    def __repr__(self):
        shown = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__[1:]}({shown})"


def holds(constraint: Constraint, value) -> bool:
    """Whether a value satisfies a constraint everywhere. Under a trace, where the numbers are not
    known, it counts as satisfied.
    """
    if not isinstance(value, Tensor):
        return bool(constraint.check(value).all())
    if not is_concrete(value):
        return True
    if _is_of_numbers(constraint) and value.device.type == "cpu":
        # NumPy reads the array where it is, and takes a quarter of the time of two kernels
        with np.errstate(invalid="ignore"):
            flags = _with_arrays(constraint).check(np.asarray(value._array))
    else:
        flags = constraint.check(value.detach())
    is_traced = isinstance(flags, Tensor) and not is_concrete(flags)  # by a bound of the constraint
    return is_traced or bool(flags.all())


def _of_numbers(check):
    """Mark a `check` whose code runs on NumPy arrays too."""
    check.is_of_numbers = True
    return check


def _is_of_numbers(constraint):
    inner = getattr(constraint, "base_constraint", None)
    is_marked = getattr(type(constraint).check, "is_of_numbers", False)
    return is_marked and (inner is None or _is_of_numbers(inner))


def _with_arrays(constraint):
    """A constraint whose bounds are NumPy arrays where they are tensors with values."""
    bounds = {name: _with_array(bound) for name, bound in vars(constraint).items()}
    if all(bounds[name] is bound for name, bound in vars(constraint).items()):
        return constraint
    replacement = copy.copy(constraint)
    vars(replacement).update(bounds)
    return replacement


def _with_array(bound):
    if isinstance(bound, Constraint):
        return _with_arrays(bound)
    is_array = isinstance(bound, Tensor) and is_concrete(bound)
    return np.asarray(bound._array) if is_array else bound


class _Dependent(Constraint):
    """A constraint that depends on other values; it cannot be checked.

    >>> from jaxgrad.distributions import constraints
    >>> try:
    ...     constraints.dependent.check(jaxgrad.ones(2))
    ... except ValueError as error:
    ...     print(error)
    Cannot determine validity of dependent constraint
    """

    def __init__(self, *, is_discrete=_UNKNOWN, event_dim=_UNKNOWN):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is _UNKNOWN:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is _UNKNOWN:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=_UNKNOWN, event_dim=_UNKNOWN):
        """The same constraint with what is known of it."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is _UNKNOWN else is_discrete,
            event_dim=self._event_dim if event_dim is _UNKNOWN else event_dim,
        )

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")

    def __repr__(self):
        return "Dependent()"


def is_dependent(constraint) -> bool:
    """Return whether a constraint depends on other values, so that it cannot be checked.

    >>> from jaxgrad.distributions import Uniform, constraints
    >>> constraints.is_dependent(Uniform.support), constraints.is_dependent(constraints.real)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """A property that gives a constraint; on the class it is itself one, which cannot be checked.

    is_discrete, event_dim: what is known of all constraints that it gives.

    >>> from jaxgrad.distributions import constraints
    >>> class Ends:
    ...     low, high = 0, 1
    ...     @constraints.dependent_property(is_discrete=False, event_dim=0)
    ...     def support(self):
    ...         return constraints.interval(self.low, self.high)
    >>> Ends().support
    Interval(lower_bound=0, upper_bound=1)
    """

    def __init__(
        self, fn: Callable[..., Any] | None = None, *, is_discrete=_UNKNOWN, event_dim=_UNKNOWN
    ):
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn):
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _Wrapping(Constraint):
    """A constraint on top of another."""

    def __init__(self, base_constraint: Constraint):
        if not isinstance(base_constraint, Constraint):
            kind = type(base_constraint).__name__
            raise AssertionError(f"base_constraint must be a Constraint, got {kind}")
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim


class _IndependentConstraint(_Wrapping):
    """A constraint that must hold along the last dimensions together.

    reinterpreted_batch_ndims: how many dimensions, at least 0. The result of a check lacks them.

    >>> from jaxgrad.distributions import constraints
    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, -4.0]])
    >>> constraints.independent(constraints.positive, 1).check(x)
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        super().__init__(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be an int >= 0, got {reinterpreted_batch_ndims}"
            )
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    @_of_numbers
    def check(self, value):
        flags = self.base_constraint.check(value)
        if flags.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        batch = flags.shape[: flags.ndim - self.reinterpreted_batch_ndims]
        return flags.reshape(*batch, -1).all(-1)

    def __repr__(self):
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_Wrapping):
    """The support of a mixture. The value must lie in the supports of all components.

    base_constraint: the support of the components, which have a dimension more than the value.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(jaxgrad.tensor([1, -1]))
    tensor([ True, False])
    """

    def check(self, value):
        if value.ndim < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        flags = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return flags.reshape(*flags.shape[: value.ndim - self.event_dim], -1).all(-1)

    def __repr__(self):
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


# ---- numbers


class _Boolean(Constraint):
    """The numbers 0 and 1."""

    is_discrete = True

    @_of_numbers
    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors with one element 1 and the others 0."""

    is_discrete, event_dim = True, 1

    @_of_numbers
    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """A constraint by one or two bounds, which are numbers or tensors."""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _Above(Constraint):
    def __init__(self, lower_bound):
        self.lower_bound = lower_bound


class _Below(Constraint):
    def __init__(self, upper_bound):
        self.upper_bound = upper_bound


class _IntegerInterval(_Bounded):
    """Integers from `lower_bound` to `upper_bound`, both included.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.integer_interval(0, 2).check(jaxgrad.tensor([0, 2, 3]))
    tensor([ True,  True, False])
    """

    is_discrete = True

    @_of_numbers
    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    """Integers up to `upper_bound`, which is included."""

    is_discrete = True

    @_of_numbers
    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Integers from `lower_bound` on, which is included."""

    is_discrete = True

    @_of_numbers
    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """All numbers but NaN."""

    @_of_numbers
    def check(self, value):
        return value == value  # NaN is not equal to itself


class _GreaterThan(_Above):
    """Numbers greater than `lower_bound`.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.greater_than(1).check(jaxgrad.tensor([1, 2]))
    tensor([False,  True])
    """

    @_of_numbers
    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Numbers not less than `lower_bound`.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.greater_than_eq(1).check(jaxgrad.tensor([0, 1]))
    tensor([False,  True])
    """

    @_of_numbers
    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Below):
    """Numbers less than `upper_bound`.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.less_than(1).check(jaxgrad.tensor([0, 1]))
    tensor([ True, False])
    """

    @_of_numbers
    def check(self, value):
        return value < self.upper_bound


class _Interval(_Bounded):
    """Numbers from `lower_bound` to `upper_bound`, both included.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.interval(0, 1).check(jaxgrad.tensor([0, 1, 2]))
    tensor([ True,  True, False])
    """

    @_of_numbers
    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    """Numbers from `lower_bound`, included, to `upper_bound`, excluded.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.half_open_interval(0, 1).check(jaxgrad.tensor([0, 1]))
    tensor([ True, False])
    """

    @_of_numbers
    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


# ---- vectors


class _Simplex(Constraint):
    """Vectors of numbers that are not negative, and whose sum is 1."""

    event_dim = 1

    @_of_numbers
    def check(self, value):
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class _Multinomial(_Below):
    """Vectors of counts, whose sum is at most `upper_bound`.

    >>> from jaxgrad.distributions import constraints
    >>> constraints.multinomial(3).check(jaxgrad.tensor([[1, 2], [2, 2]]))
    tensor([ True, False])
    """

    is_discrete, event_dim = True, 1

    @_of_numbers
    def check(self, value):
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# ---- matrices


def _everywhere(flags):
    return flags.flatten(-2).all(-1)


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value):
        return _everywhere(value.tril() == value)


class _LowerCholesky(Constraint):
    """Lower triangular matrices whose diagonal is positive."""

    event_dim = 2

    def check(self, value):
        return _everywhere(value.tril() == value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Lower Cholesky factors of correlation matrices: rows of length 1."""

    event_dim = 2

    def check(self, value):
        tolerance = dtypes.finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = value.detach().square().sum(-1).sqrt()
        return lower_cholesky.check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value):
        is_square = value.shape[-2] == value.shape[-1]
        return full(value.shape[:-2], is_square, dtype=dtypes.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value):
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _everywhere(ops.isclose(value, value.mT, atol=1e-6))


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value):
        is_symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return is_symmetric
        return is_symmetric & (ops.linalg_eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices whose eigenvalues are all positive."""

    def check(self, value):
        is_symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return is_symmetric
        return is_symmetric & (ops.linalg_cholesky_ex(value)[1] == 0)


# ---- several constraints on parts of a value


class _Joined(Constraint):
    """Constraints on the parts of a value along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int):
        if not all(isinstance(constraint, Constraint) for constraint in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:
        return any(constraint.is_discrete for constraint in self.cseq)

    def _check_dim(self, value):
        if not -value.ndim <= self.dim < value.ndim:
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.ndim} dimensions"
            )

    def __repr__(self):
        return f"{type(self).__name__[1:]}()"


class _Cat(_Joined):
    """Constraints on pieces of a value along `dim`, each as long as `lengths` says.

    >>> from jaxgrad.distributions import constraints
    >>> both = constraints.cat([constraints.positive, constraints.boolean], lengths=[1, 2])
    >>> both.check(jaxgrad.tensor([-1.0, 0.0, 1.0]))
    tensor([False,  True,  True])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    @property
    def event_dim(self) -> int:
        return max(constraint.event_dim for constraint in self.cseq)

    def check(self, value):
        self._check_dim(value)
        pieces = ops.split(value.narrow(self.dim, 0, sum(self.lengths)), self.lengths, self.dim)
        pairs = zip(self.cseq, pieces, strict=True)
        return ops.cat([constraint.check(piece) for constraint, piece in pairs], self.dim)


class _Stack(_Joined):
    """Constraints on the slices of a value along `dim`.

    >>> from jaxgrad.distributions import constraints
    >>> both = constraints.stack([constraints.positive, constraints.boolean])
    >>> both.check(jaxgrad.tensor([[3.0, -1.0], [3.0, 1.0]]))
    tensor([[ True, False],
            [False,  True]])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:
        most = max(constraint.event_dim for constraint in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value):
        self._check_dim(value)
        pairs = zip(self.cseq, ops.unbind(value, self.dim), strict=True)
        return ops.stack([constraint.check(slice) for constraint, slice in pairs], self.dim)


dependent = _Dependent()
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack

__getattr__ = missing_in(__name__)
