"""The base of all transforms, and transforms that are made of others."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Sequence

from .. import ops
from ..core.aval import Size
from ..frontend.factories import zeros, zeros_like
from ..tape import mode
from ..tape.tensor import Tensor
from . import constraints
from .utils import _options_of, _sum_rightmost

_NOTHING = None, None


class Transform:
    """A function `y = t(x)` with an inverse, of tensors of any batch shape.

    cache_size: 1 keeps the last pair of x and y, so that `t.inv(y)` is x itself; 0 keeps nothing.
    Raises ValueError for another number.

    domain, codomain: the constraints of x and y. bijective: whether the inverse undoes the
    function everywhere; where it is False, `t(t.inv(t(x)))` is `t(x)`. sign: 1 or -1 for a
    monotone function of numbers. Subclasses define `_call`, `_inverse` and `log_abs_det_jacobian`.

    >>> transform = jaxgrad.distributions.ExpTransform()
    >>> y = transform(jaxgrad.tensor([0.0, 1.5]))
    >>> y, transform.inv(y)
    (tensor([1.0000, 4.4817]), tensor([0.0000, 1.5000]))
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, not {cache_size}")
        super().__init__()  # a transform with parameters has Module as its other base
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached_x_y: tuple[Tensor | None, Tensor | None] = _NOTHING

    def __getstate__(self):
        # a cycle, and tensors that a copy has no use for
        return {**vars(self), "_inv": None, "_cached_x_y": _NOTHING}

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions of x and y belong together. Raises ValueError if they
        differ: ask `domain` or `codomain`.
        """
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse transform, whose own inverse is this object."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        """1 or -1 for an increasing or decreasing function of numbers, or a tensor of these."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with another size of its cache, 0 or 1.

        >>> transform = jaxgrad.distributions.ExpTransform().with_cache()
        >>> x = jaxgrad.tensor(1.0)
        >>> transform.inv(transform(x)) is x
        True
        """
        if self._cache_size == cache_size:
            return self
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, not {cache_size}")
        transform = copy.copy(self)
        transform._cache_size, transform._inv, transform._cached_x_y = cache_size, None, _NOTHING
        return transform

    def __eq__(self, other):
        return self is other

    def __call__(self, x: Tensor) -> Tensor:
        known = self._cached()
        return known[1] if x is known[0] else self._kept(x, self._call(x))[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        known = self._cached()
        return known[0] if y is known[1] else self._kept(self._inverse(y), y)[0]

    def _cached(self):
        # a compiled function must not depend on what was computed before, nor leave tensors behind
        scope = mode.scope.get() if self._cache_size else None
        return self._cached_x_y if scope is None else scope.memo.get(id(self), _NOTHING)[:2]

    def _kept(self, *pair):
        scope = mode.scope.get() if self._cache_size else None
        if scope is not None:
            scope.memo[id(self)] = (*pair, self)
        elif self._cache_size:
            self._cached_x_y = pair
        return pair

    def _call(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the absolute determinant of dy/dx, without event dimensions.

        x, y: a value and its image, of shape (...) + event. Raises NotImplementedError for a
        transform that is not bijective.

        >>> transform = jaxgrad.distributions.AffineTransform(0.0, 3.0)
        >>> x = jaxgrad.tensor([1.0])
        >>> transform.log_abs_det_jacobian(x, transform(x))
        tensor([1.0986])
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """Return the shape of y for an x of this shape.

        >>> jaxgrad.distributions.StickBreakingTransform().forward_shape((5, 2))
        torch.Size([5, 3])
        """
        return Size(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """Return the shape of x for a y of this shape.

        >>> jaxgrad.distributions.StickBreakingTransform().inverse_shape((5, 3))
        torch.Size([5, 2])
        """
        return Size(shape)

    def __repr__(self):
        return f"{type(self).__name__}()"


class PlainTransform(Transform):
    """A transform without parameters: all of a class are equal."""

    def __eq__(self, other):
        return type(self) is type(other)


class _InverseTransform(Transform):
    """The inverse of a transform, which keeps the cache for both."""

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self._inv = transform

    def __getstate__(self):
        return vars(self).copy()  # `_inv` is what it inverts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self):
        return self._inv

    def with_cache(self, cache_size=1):
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)

    def __repr__(self):
        return f"_InverseTransform({self._inv!r})"


# ---- transforms of transforms


class ComposeTransform(Transform):
    """Transforms one after the other; the parts keep the caches.

    parts: a list of transforms, in the order in which they are applied. An empty list is the
    identity. cache_size: of the parts.

    >>> from jaxgrad.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(1.0, 2.0), ExpTransform()])(jaxgrad.tensor(0.0))
    tensor(2.7183)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        count = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            count += part.domain.event_dim - part.codomain.event_dim
            count = max(count, part.domain.event_dim)
        return with_event_dim(self.parts[0].domain, count)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        count = self.parts[0].domain.event_dim
        for part in self.parts:
            count += part.codomain.event_dim - part.domain.event_dim
            count = max(count, part.codomain.event_dim)
        return with_event_dim(self.parts[-1].codomain, count)

    @property
    def bijective(self):
        return all(part.bijective for part in self.parts)

    @property
    def sign(self):
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return ComposeTransform([part.with_cache(cache_size) for part in self.parts], cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms, count = [], self.domain.event_dim
        for part, *pair in zip(self.parts, values, values[1:], strict=False):
            term = part.log_abs_det_jacobian(*pair)
            terms.append(_sum_rightmost(term, count - part.domain.event_dim))
            count += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return Size(shape)

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return Size(shape)

    def __repr__(self):
        parts = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {parts}\n)"


def with_event_dim(constraint, count):
    """The constraint, with so many event dimensions."""
    more = count - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform with more of the last dimensions as event dimensions: `log_abs_det_jacobian` sums
    over them.

    base_transform: the transform. reinterpreted_batch_ndims: how many dimensions more.

    >>> from jaxgrad.distributions import ExpTransform, IndependentTransform
    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
    tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        count = self.reinterpreted_batch_ndims
        return IndependentTransform(self.base_transform, count, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        need_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        need_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        det = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(det, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def __repr__(self):
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def need_dims(shape, count):
    """Raise ValueError for a shape of fewer dimensions."""
    if len(shape) < count:
        raise ValueError(
            f"Too few dimensions on input: {count} are needed, and the shape is {list(shape)}"
        )


class ReshapeTransform(Transform):
    """Another shape of the last dimensions.

    in_shape, out_shape: lists of ints, the event shapes of x and y. Raises ValueError if they have
    different numbers of elements.

    >>> jaxgrad.distributions.ReshapeTransform((4,), (2, 2))(jaxgrad.zeros(3, 4)).shape
    torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements: {self.in_shape}, "
                f"{self.out_shape}"
            )

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(x.shape[: x.ndim - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return zeros(x.shape[: x.ndim - len(self.in_shape)], **_options_of(x))

    def forward_shape(self, shape):
        return _replaced(Size(shape), self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return _replaced(Size(shape), self.out_shape, self.in_shape)


def _replaced(shape, end, new_end):
    need_dims(shape, len(end))
    cut = len(shape) - len(end)
    if shape[cut:] != end:
        raise ValueError(f"Shape mismatch: expected {end} at the end but got {shape}")
    return shape[:cut] + new_end


class _Parts(Transform):
    """Transforms of the parts of a tensor along a dimension."""

    _of_parts = staticmethod(constraints.cat)

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int):
        if not all(isinstance(transform, Transform) for transform in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [
            transform.with_cache(cache_size) if cache_size else transform for transform in tseq
        ]
        self.dim = dim

    @property
    def bijective(self):
        return all(transform.bijective for transform in self.transforms)

    def _parts_of(self, value):
        """The part of a value that each transform gets."""
        if not -value.ndim <= self.dim < value.ndim:
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {value.ndim} dimensions"
            )
        if value.shape[self.dim] != self.length:
            raise AssertionError(
                f"the size {value.shape[self.dim]} in dimension {self.dim} must equal length "
                f"{self.length}"
            )
        return self._cut(value)

    def _call(self, x):
        parts = zip(self.transforms, self._parts_of(x), strict=True)
        return self._join([transform(part) for transform, part in parts], self.dim)

    def _inverse(self, y):
        parts = zip(self.transforms, self._parts_of(y), strict=True)
        return self._join([transform.inv(part) for transform, part in parts], self.dim)

    def _dets(self, x, y):
        parts = zip(self.transforms, self._parts_of(x), self._parts_of(y), strict=True)
        return [transform.log_abs_det_jacobian(*pair) for transform, *pair in parts]


class CatTransform(_Parts):
    """A transform of each piece of a tensor along a dimension, as `cat` joins them.

    tseq: the transforms. dim: the dimension. lengths: of the pieces, each 1 by default.

    >>> from jaxgrad.distributions import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(jaxgrad.zeros(3))
    tensor([1., 0., 0.])
    """

    _join = staticmethod(ops.cat)

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @property
    def event_dim(self):
        return max(transform.event_dim for transform in self.transforms)

    @property
    def length(self) -> int:
        """The size of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _cut(self, value):
        return ops.split(value, self.lengths, self.dim)

    def log_abs_det_jacobian(self, x, y):
        count = self.event_dim
        pairs = zip(self.transforms, self._dets(x, y), strict=True)
        dets = [_sum_rightmost(det, count - transform.event_dim) for transform, det in pairs]
        dim = (self.dim if self.dim < 0 else self.dim - x.ndim) + count
        return ops.cat(dets, dim) if dim < 0 else sum(dets)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat(
            [transform.domain for transform in self.transforms], self.dim, self.lengths
        )

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat(
            [transform.codomain for transform in self.transforms], self.dim, self.lengths
        )


class StackTransform(_Parts):
    """A transform of each slice of a tensor along a dimension, as `stack` joins them.

    tseq: the transforms. dim: the dimension.

    >>> from jaxgrad.distributions import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform], dim=1)(jaxgrad.zeros(1, 2))
    tensor([[1., 0.]])
    """

    _join = staticmethod(ops.stack)

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)

    @property
    def length(self) -> int:
        """The size of the dimension."""
        return len(self.transforms)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _cut(self, value):
        return ops.unbind(value, self.dim)

    def log_abs_det_jacobian(self, x, y):
        return ops.stack(self._dets(x, y), self.dim)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([transform.domain for transform in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([transform.codomain for transform in self.transforms], self.dim)
