"""The base of all distributions: torch.distributions.distribution."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core.aval import Size
from ..core.tracebacks import users_stacklevel
from ..names.missing import missing_in
from ..tape.tensor import Tensor, is_concrete
from . import constraints
from .utils import lazy_property


def _is_lazy(kind: type, name: str) -> bool:
    """Whether an attribute of a class of distributions is computed when it is first read."""
    return isinstance(getattr(kind, name, None), lazy_property)


class Distribution:
    """A probability distribution, or a batch of them.

    batch_shape: the shape of the parameters, one distribution for each element. event_shape: the
    shape of one value. A sample has the shape sample_shape + batch_shape + event_shape.
    validate_args: whether to check the parameters now and the values later; None means what
    `set_default_validate_args` says, else that Python runs without -O. The numbers are checked
    where they are known, and not under a trace.

    Subclasses define `arg_constraints` and `support`, and of the methods what there is. Methods
    that a distribution does not have raise NotImplementedError.

    >>> from jaxgrad.distributions import Normal
    >>> normal = Normal(jaxgrad.zeros(2), 1.0)
    >>> normal.batch_shape, normal.event_shape, normal.sample((3,)).shape
    (torch.Size([2]), torch.Size([]), torch.Size([3, 2]))
    >>> normal.log_prob(jaxgrad.tensor([0.0, 1.0]))
    tensor([-0.9189, -1.4189])
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check parameters and values if they are not told.

        value: a bool; ValueError for anything else.

        >>> jaxgrad.distributions.Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise ValueError(f"value must be True or False, but is {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self):
        try:
            checked = self.arg_constraints
        except NotImplementedError:
            self._warn_of_no("arg_constraints", "Please set `arg_constraints = {}` or initialize")
            return
        for name, constraint in checked.items():
            is_unknown = _is_lazy(type(self), name) and name not in vars(self)
            if constraints.is_dependent(constraint) or is_unknown:
                continue
            value = getattr(self, name)
            if not constraints.holds(constraint, value):
                raise ValueError(
                    f"Expected parameter {name} ({_described(value)}) of distribution {self!r} to "
                    f"satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _warn_of_no(self, what, cure):
        warnings.warn(
            f"{type(self)} does not define `{what}`. {cure} the distribution with "
            "`validate_args=False` to turn off validation.",
            stacklevel=users_stacklevel(),
        )

    def _checked(self, value) -> Tensor:
        """The value, checked unless the checks are off."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _checked_place(self, value) -> Tensor:
        """The place of a distribution function, checked as a value: it may also be the end 0 of a
        support of positive numbers.
        """
        if self._validate_args:
            is_tensor = isinstance(value, Tensor)
            self._validate_sample(value.masked_fill(value == 0, 1) if is_tensor else value)
        return value

    def _validate_sample(self, value: Tensor):
        """Raise ValueError for a value that does not fit the shapes, or is outside of the support.

        value: broadcasts with batch_shape + event_shape, and ends with event_shape.
        """
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise ValueError(f"The value argument to log_prob must be a Tensor, not {kind}")
        shape, extended = value.shape, self._batch_shape + self._event_shape
        if extended and shape != extended:
            self._check_shape(shape, extended)
        try:
            support = self.support
        except NotImplementedError:
            self._warn_of_no("support", "To enable sample validation define it, or initialize")
            return
        if not constraints.holds(support, value):
            raise ValueError(
                f"Expected value argument ({_described(value)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _check_shape(self, shape, extended):
        if shape[len(shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{shape} vs {self._event_shape}."
            )
        pairs = zip(reversed(shape), reversed(extended), strict=False)
        if any(1 not in pair and pair[0] != pair[1] for pair in pairs):
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {extended}."
            )

    # ---- shapes

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters: one distribution for each element."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """The shape of a sample: sample_shape + batch_shape + event_shape."""
        if isinstance(sample_shape, int):
            raise TypeError(
                f"{type(self).__name__}: sample_shape is a shape, as in sample(({sample_shape},)), "
                f"not the int {sample_shape}"
            )
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def expand(self, batch_shape: Sequence[int], _instance=None) -> Distribution:
        """Return the distribution with another batch shape, to which its own one is expanded.

        batch_shape: a list of ints. The parameters are views.

        A subclass with an `__init__` of its own must define `expand` too, or NotImplementedError is
        raised. There it makes `new = self._get_checked_instance(ItsClass, _instance)`, sets the
        attributes that it has added, and returns `super().expand(batch_shape, _instance=new)`.

        >>> jaxgrad.distributions.Normal(0.0, 1.0).expand((3, 2)).batch_shape
        torch.Size([3, 2])
        """
        batch_shape = Size(batch_shape)
        ours = (base for base in type(self).__mro__ if base.__module__.startswith(__package__))
        new = self._get_checked_instance(next(ours), _instance)
        for name, value in vars(self).items():
            if not _is_lazy(type(self), name):  # those are computed anew, of the parameters
                vars(new).setdefault(name, self._expanded(value, batch_shape))
        for name, constraint in self._constraints_of_parameters().items():
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                event = value.shape[value.ndim - constraint.event_dim :]
                vars(new)[name] = value.expand(batch_shape + event)
        new._batch_shape = batch_shape
        return new

    def _expanded(self, value, batch_shape):
        """The counterpart of a component distribution in the expanded distribution."""
        if not isinstance(value, Distribution):
            return value
        return value.expand(batch_shape + value.batch_shape[len(self._batch_shape) :])

    def _constraints_of_parameters(self):
        """The `arg_constraints` of this class and its bases."""
        arg_constraints = {}
        for base in reversed(type(self).__mro__):
            declared = vars(base).get("arg_constraints", {})
            if isinstance(declared, property):
                declared = {} if base is Distribution else declared.fget(self)
            arg_constraints |= declared
        return arg_constraints

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return object.__new__(type(self)) if _instance is None else _instance

    # ---- what subclasses define

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter, by its name."""
        raise NotImplementedError(f"{type(self).__name__} does not define arg_constraints")

    @property
    def support(self) -> constraints.Constraint:
        """The constraint of the values."""
        raise NotImplementedError(f"{type(self).__name__} does not define support")

    @property
    def mean(self) -> Tensor:
        """The mean, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        """The value of the greatest density, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation, of shape batch_shape + event_shape."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return random values without a history.

        sample_shape: a list of ints. Returns sample_shape + batch_shape + event_shape.

        >>> jaxgrad.distributions.Normal(jaxgrad.zeros(2), 1.0).sample((3,)).shape
        torch.Size([3, 2])
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return random values with gradients with respect to the parameters (reparameterized).

        sample_shape: a list of ints. Returns sample_shape + batch_shape + event_shape. Raises
        NotImplementedError where `has_rsample` is False.

        >>> loc = jaxgrad.zeros(2, requires_grad=True)
        >>> jaxgrad.distributions.Normal(loc, 1.0).rsample((3,)).sum().backward()
        >>> loc.grad
        tensor([3., 3.])
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no rsample: its samples are not differentiable"
        )

    def sample_n(self, n: int) -> Tensor:
        """Return `sample((n,))`, with PyTorch's warning that it is deprecated.

        n: an int.
        """
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=users_stacklevel(),
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density or of the probability of values.

        value: broadcasts with batch_shape + event_shape; the result has no event dimensions. Raises
        ValueError for other shapes, and for values outside of the support if they are checked.

        >>> jaxgrad.distributions.Uniform(0.0, 2.0).log_prob(jaxgrad.tensor([0.5, 1.0]))
        tensor([-0.6931, -0.6931])
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a value that is not greater than this one.

        value: broadcasts with batch_shape. Errors as in `log_prob`.

        >>> jaxgrad.distributions.Uniform(0.0, 2.0).cdf(jaxgrad.tensor([0.5, 1.0]))
        tensor([0.2500, 0.5000])
        """
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile of a probability, the inverse of `cdf`.

        value: from 0 to 1, broadcasts with batch_shape.

        >>> jaxgrad.distributions.Uniform(0.0, 2.0).icdf(jaxgrad.tensor([0.25, 0.5]))
        tensor([0.5000, 1.0000])
        """
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along a new first dimension.

        expand: whether to expand the values to batch_shape; else these dimensions have size 1.
        Returns (n,) + batch_shape + event_shape. Raises NotImplementedError where
        `has_enumerate_support` is False.

        >>> jaxgrad.distributions.Bernoulli(0.5).enumerate_support()
        tensor([0., 1.])
        """
        raise NotImplementedError(f"{type(self).__name__} cannot enumerate its support")

    def _enumerated(self, values, expand):
        """Values along dimension 0, with a dimension for each one of the batch."""
        values = values.reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape batch_shape.

        >>> jaxgrad.distributions.Uniform(0.0, 2.0).entropy()
        tensor(0.6931)
        """
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy, of shape batch_shape.

        >>> jaxgrad.distributions.Uniform(0.0, 2.0).perplexity()
        tensor(2.)
        """
        return ops.exp(self.entropy())

    def __repr__(self):
        names = [name for name in self.arg_constraints if name in vars(self)]
        shown = [f"{name}: {_shown(vars(self)[name])}" for name in names]
        return f"{type(self).__name__}({', '.join(shown)})"


def _described(value):
    return f"{type(value).__name__} of shape {tuple(value.shape)}"


def _shown(parameter):
    """The number of a parameter, or its shape."""
    if not isinstance(parameter, Tensor):
        return parameter
    is_number = parameter.numel() == 1 and is_concrete(parameter)
    return f"{parameter.detach()}" if is_number else parameter.shape


__getattr__ = missing_in(__name__)
