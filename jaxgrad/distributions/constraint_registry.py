"""Which transform leads from the real numbers to a constraint: `biject_to`, `transform_to`."""

from __future__ import annotations

from collections.abc import Callable

from ..names.missing import missing_in
from . import constraints, transforms
from .constraints import Constraint
from .transforms import Transform


class ConstraintRegistry:
    """Factories of transforms by the class of a constraint.

    Call it with a constraint to get the transform from the real numbers to it. Raises
    NotImplementedError if there is none.

    >>> from jaxgrad.distributions import Gamma, transform_to
    >>> transform_to(Gamma.arg_constraints["rate"])(jaxgrad.tensor([-1.0, 0.0]))
    tensor([0.3679, 1.0000])
    """

    def __init__(self):
        self._registry = {}

    def register(self, constraint: Constraint | type[Constraint], factory: Callable | None = None):
        """Register a function that takes a constraint and returns a transform; also a decorator.

        constraint: the class of the constraints, or one of them. Raises TypeError for others.

        >>> from jaxgrad.distributions import constraints
        >>> from jaxgrad.distributions.constraint_registry import ConstraintRegistry
        >>> registry = ConstraintRegistry()
        >>> @registry.register(constraints.positive)
        ... def softplus(constraint):
        ...     return jaxgrad.distributions.SoftplusTransform()
        >>> registry(constraints.positive)
        SoftplusTransform()
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints: no transform has been "
                "registered for them"
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register(registries, *kinds):
    """Register a factory for several constraints, in one registry or in both."""

    def decorated(factory):
        for registry in registries:
            for kind in kinds:
                registry.register(kind, factory)
        return factory

    return decorated


_BOTH = (biject_to, transform_to)

_register(_BOTH, constraints.real)(lambda constraint: transforms.identity_transform)
_register([biject_to], constraints.simplex)(lambda _: transforms.StickBreakingTransform())
_register([transform_to], constraints.simplex)(lambda _: transforms.SoftmaxTransform())
_register(_BOTH, constraints.corr_cholesky)(lambda _: transforms.CorrCholeskyTransform())
_register([transform_to], constraints.lower_cholesky)(lambda _: transforms.LowerCholeskyTransform())
_register([transform_to], constraints.positive_definite, constraints.positive_semidefinite)(
    lambda _: transforms.PositiveDefiniteTransform()
)


# `positive` is `greater_than(0.0)`: PyTorch has one class for both, and the last one registered is
# that of a bound
@_register(_BOTH, constraints.greater_than, constraints.greater_than_eq)
def _above(constraint):
    affine = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_register(_BOTH, constraints.less_than)
def _below(constraint):
    affine = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_register(_BOTH, constraints.interval, constraints.half_open_interval)
def _between(constraint):
    lower, upper = constraint.lower_bound, constraint.upper_bound
    are_numbers = all(isinstance(bound, int | float) for bound in (lower, upper))
    if are_numbers and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    affine = transforms.AffineTransform(lower, upper - lower)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), affine])


def _register_parts(registry):
    """Constraints made of others have transforms made of theirs."""

    @registry.register(constraints.independent)
    def _independent(constraint):
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def _cat(constraint):
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _stack(constraint):
        return transforms.StackTransform([registry(e) for e in constraint.cseq], constraint.dim)


for _registry in _BOTH:
    _register_parts(_registry)

__getattr__ = missing_in(__name__)
