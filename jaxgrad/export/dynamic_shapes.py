"""Dimensions whose sizes vary, as torch.export.dynamic_shapes."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import operator
from typing import Any

from ..names.missing import missing_in
from ..nn.function_layer import FunctionLayer
from ..tape.tensor import Tensor
from ..utils import _pytree as pytree
from ._errors import ConstraintViolationError, UserError
from ._extents import UNBOUNDED, Extent, Range


class _DimHintType(enum.Enum):
    """What is known of a size."""

    AUTO = enum.auto()
    STATIC = enum.auto()
    DYNAMIC = enum.auto()


@dataclasses.dataclass
class _DimHint:
    """A dimension without a name: a call gives its range."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None
    _factory: bool = True

    def __call__(self, min=None, max=None):
        if not self._factory:
            raise TypeError(f"'{type(self).__name__}' object is not callable")
        _check_range("Dim hint", min, max)
        return _DimHint(self.type, min, max, _factory=False)

    def __repr__(self):
        ends = "".join(
            f", {name}={value}"
            for name, value in (("min", self.min), ("max", self.max))
            if value is not None
        )
        return f"DimHint({self.type.name}{ends})"


def _check_range(name, low, high):
    if low is not None and high is not None and low > high:
        raise AssertionError(f"Cannot create {name} with inconsistent min={low}, max={high}")


class Dim:
    """A dimension of an argument whose size varies.

    name: an identifier; dimensions of one name have one size. min, max: the range of the size; a
    program serves no size 0. `Dim.AUTO` leaves to the export whether the size varies, `Dim.DYNAMIC`
    asks for that, `Dim.STATIC` keeps the size of the example. `2 * batch + 1` is a dimension that
    is derived from another one.

    Raises AssertionError for a name that is no identifier, and for an empty range.

    >>> batch = jaxgrad.export.Dim("batch", min=3, max=64)
    >>> batch, 2 * batch
    (Dim('batch', min=3, max=64), 2*batch)
    """

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name!r}")
        low, high = 0 if min is None else min, UNBOUNDED if max is None else max
        _check_range("Dim", low, high)
        self.__name__, self.min, self.max = name, low, high

    def _affine(self) -> tuple[Dim, int, int]:
        """A dimension, a factor and a summand that give this one."""
        return self, 1, 0

    def _derived(self, factor: int, summand: int) -> Dim:
        root, scale, offset = self._affine()
        return _DerivedDim(root, scale * factor, offset * factor + summand)

    def __add__(self, other):
        return self._derived(1, _whole(other, "+"))

    def __sub__(self, other):
        return self._derived(1, -_whole(other, "-"))

    def __mul__(self, other):
        factor = _whole(other, "*")
        if factor <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {self.__name__} with {other}: a size grows with the one "
                "that it is derived from, so use a positive int"
            )
        return self._derived(factor, 0)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}: a size grows with the one that it is derived "
            "from"
        )

    def __repr__(self):
        low = "" if self.min == 2 else f", min={self.min}"  # as PyTorch shows it
        high = "" if self.max == UNBOUNDED else f", max={self.max}"
        return f"Dim({self.__name__!r}{low}{high})"


def _whole(number, sign: str) -> int:
    if type(number) is not int:
        raise NotImplementedError(
            f"Attempted {sign} of a Dim with {number!r}, where an integer was expected"
        )
    return number


class _DerivedDim(Dim):
    """A dimension that is a factor times another one, and a summand."""

    def __init__(self, root: Dim, scale: int, offset: int):
        self.root, self._scale, self._offset = root, scale, offset
        self.__name__ = str(Extent(root.__name__, scale, offset))
        self.min = root.min * scale + offset
        self.max = UNBOUNDED if root.max == UNBOUNDED else root.max * scale + offset

    def _affine(self):
        return self.root, self._scale, self._offset

    def __repr__(self):
        return self.__name__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several dimensions with one range.

    >>> jaxgrad.export.dims("height", "width", max=512)
    (Dim('height', min=0, max=512), Dim('width', min=0, max=512))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """The dynamic shapes of arguments, by the tensors themselves.

    >>> x = jaxgrad.ones(3, 2)
    >>> shapes = jaxgrad.export.ShapesCollection()
    >>> shapes[x] = {0: jaxgrad.export.Dim("batch")}
    >>> shapes.dynamic_shapes(jaxgrad.nn.Linear(2, 1), (x,))
    {'input': {0: Dim('batch', min=0)}}
    """

    def __init__(self):
        self._shapes: dict[int, Any] = {}
        self._tensors: list = []  # so that no other object gets their identities

    def __setitem__(self, t, shape):
        known = self._shapes.get(id(t))
        if known is not None and known != shape:
            raise AssertionError(f"Shapes assigned to input do not match! {known} and {shape}")
        self._tensors.append(t)
        self._shapes[id(t)] = shape

    def __getitem__(self, t):
        return self._shapes.get(id(t))

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """The argument `dynamic_shapes` of `export` for these arguments.

        Raises ValueError if one of the tensors is not among them.
        """
        met = set()

        def shape_of(leaf):
            met.add(id(leaf))
            return self._shapes.get(id(leaf))

        arguments = named_arguments(m, args, kwargs or {})
        shapes = {name: pytree.tree_map(shape_of, value) for name, value in arguments.items()}
        if self._shapes.keys() - met:
            raise ValueError("Some tensors that were assigned shapes are not among the arguments")
        return shapes


# ---- the shapes of the arguments of one export


def named_arguments(mod, args, kwargs) -> dict[str, Any]:
    """The arguments of a call by their names, in order; those of `*args` are a tuple."""
    signature = _signature(mod)
    bound = signature.bind(*args, **kwargs).arguments
    named: dict[str, Any] = {}
    for name, value in bound.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named


def _signature(mod) -> inspect.Signature:
    if getattr(type(mod), "forward", None) is FunctionLayer.forward and mod.function:
        return mod._input_signature()
    return inspect.signature(getattr(mod, "forward", mod))


@dataclasses.dataclass
class Shapes:
    """The extents of the tensors among the arguments of an export.

    extents: by the name of a tensor, an `Extent` or an int for each dimension; ranges: of the
    symbols; sizes: those of the symbols in the example; optional: the symbols that may become
    numbers, or one symbol; raised: the symbols that may begin at 2.
    """

    extents: dict[str, tuple]
    ranges: dict[str, Range]
    sizes: dict[str, int]
    optional: frozenset[str]
    raised: frozenset[str]


class _Collector:
    """Collects the extents of tensors, one after the other."""

    def __init__(self):
        self.extents, self.ranges, self.sizes = {}, {}, {}
        self.optional: set[str] = set()
        self.raised: set[str] = set()

    def shapes(self) -> Shapes:
        sets = frozenset(self.optional), frozenset(self.raised)
        return Shapes(self.extents, self.ranges, self.sizes, *sets)

    def add(self, name: str, shape, spec):
        """Add a tensor. spec: what `dynamic_shapes` has for it."""
        known = _by_dimension(name, shape, spec)
        self.extents[name] = tuple(
            [
                self.extent(f"{name}.shape[{number}]", size, known.get(number))
                for number, size in enumerate(shape)
            ]
        )

    def extent(self, place: str, size: int, dim):
        if dim is None or dim is Dim.STATIC or (type(dim) is int and dim == size):
            return size
        if isinstance(dim, _DimHint):
            return self.hinted(place, size, dim)
        if isinstance(dim, Dim):
            return self.named(place, size, dim)
        if type(dim) is int:
            raise ConstraintViolationError(
                f"Static shape constraint of {dim} does not match input size of {size}, for {place}"
            )
        raise UserError(
            f"dynamic_shapes: {place} is {size} in the example, and {dim!r} was given for it: "
            "expected a Dim, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC, None, or that size"
        )

    def hinted(self, place, size, hint):
        is_auto = hint.type is _DimHintType.AUTO
        if hint.type is _DimHintType.STATIC or (is_auto and size < 2):
            return size
        symbol = f"s{len(self.ranges)}"
        if not is_auto and size < 2:
            raise UserError(
                f"dynamic_shapes: {place} is Dim.DYNAMIC, and {size} in the example: give an "
                "example of size 2 or more"
            )
        low = 2 if hint.min is None else max(hint.min, 1)
        self.ranges[symbol] = Range(low, UNBOUNDED if hint.max is None else hint.max)
        self.sizes[symbol] = size
        if is_auto:
            self.optional.add(symbol)
        return self.checked(place, size, Extent(symbol))

    def named(self, place, size, dim):
        root, scale, offset = dim._affine()
        extent = Extent(root.__name__, scale, offset)
        number, rest = divmod(size - offset, scale)
        if rest:
            raise UserError(
                f"dynamic_shapes: {place} is {size} in the example, which is no value of {extent}"
            )
        known = self.sizes.setdefault(extent.symbol, number)
        if known != number:
            raise ConstraintViolationError(
                f"Constraints violated ({extent.symbol})! {place} = {extent} is {size} in the "
                f"example, which is not equal to what another dimension says: {extent.symbol} is "
                f"{known}"
            )
        bounds = Range(max(root.min, 1), root.max)
        if self.ranges.setdefault(extent.symbol, bounds) != bounds:
            raise UserError(
                f"Found different definitions Dim({extent.symbol!r}, ...) for the same symbolic "
                f"dimension {extent.symbol!r}!"
            )
        if root.min < 2:
            self.raised.add(extent.symbol)
        return self.checked(place, size, extent)

    def checked(self, place, size, extent):
        bounds = self.ranges[extent.symbol]
        if not bounds.has(self.sizes[extent.symbol]):
            low, high = bounds.lower, "int_oo" if bounds.upper == UNBOUNDED else bounds.upper
            raise ConstraintViolationError(
                f"Constraints violated ({extent.symbol})! {place} = {extent} is {size} in the "
                f"example: {self.sizes[extent.symbol]} not in range [{low}, {high}]"
            )
        return extent


def _by_dimension(name, shape, spec) -> dict:
    """The dimensions that a tensor has in `dynamic_shapes`, by number."""
    if spec is None:
        return {}
    if isinstance(spec, dict):
        known = {operator.index(number): dim for number, dim in spec.items()}
    elif isinstance(spec, tuple | list):
        if len(spec) != len(shape):
            raise UserError(
                f"Expected dynamic shape spec {spec} of {name!r} to have the same length as the "
                f"actual tensor shape {tuple(shape)}"
            )
        known = dict(enumerate(spec))
    else:
        raise UserError(
            f"Unexpected dynamic_shapes of {name!r}: {spec!r}: give a dict from numbers of "
            "dimensions, or a tuple or list with an entry for each"
        )
    outside = [number for number in known if not -len(shape) <= number < len(shape)]
    if outside:
        raise UserError(
            f"dynamic_shapes: {name!r} has {len(shape)} dimensions, and none of number {outside[0]}"
        )
    return {number % len(shape): dim for number, dim in known.items()}


def shapes_of(mod, args, kwargs, dynamic_shapes) -> Shapes:
    """The extents of the tensors among the arguments. Raises UserError for `dynamic_shapes` that
    do not fit.
    """
    arguments = named_arguments(mod, args, kwargs)
    if isinstance(dynamic_shapes, ShapesCollection):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    collector = _Collector()
    specs = _specs_by_name(arguments, dynamic_shapes)
    for name, value in arguments.items():
        _collect(collector, name, value, specs.get(name))
    return collector.shapes()


def shapes_by_name(tensors: dict, specs: dict) -> Shapes:
    """The extents of tensors by name. specs: what `dynamic_shapes` says of some of them."""
    collector = _Collector()
    for name, tensor in tensors.items():
        collector.add(name, tensor.shape, specs.get(name))
    return collector.shapes()


def _specs_by_name(arguments, dynamic_shapes) -> dict:
    names = [*arguments]
    if not dynamic_shapes:
        return {}
    if isinstance(dynamic_shapes, dict):
        if dynamic_shapes.keys() - arguments.keys():
            is_container = len(arguments) == 1 and not pytree.tree_is_leaf(arguments[names[0]])
            if is_container and dynamic_shapes.keys() <= _children(arguments[names[0]]).keys():
                return {names[0]: dynamic_shapes}
            raise UserError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {names} of `inputs`, but here they are {[*dynamic_shapes]}."
            )
        return dynamic_shapes
    if not isinstance(dynamic_shapes, tuple | list):
        raise UserError(
            f"Expected `dynamic_shapes` to be a dict, list or tuple, but got {dynamic_shapes!r}"
        )
    if _is_of_each(arguments, dynamic_shapes):
        return {names[0]: dynamic_shapes}
    if len(dynamic_shapes) > len(names):
        raise UserError(
            f"`dynamic_shapes` has {len(dynamic_shapes)} entries, and there are {len(names)} "
            f"arguments: {names}"
        )
    return dict(zip(names, dynamic_shapes, strict=False))


def _is_of_each(arguments, dynamic_shapes) -> bool:
    """Whether a list is that of the arguments of `*args`, without a list around it."""
    (first, *others) = arguments.values()
    is_flat = not any(isinstance(shape, tuple | list) for shape in dynamic_shapes)
    fits = not others and isinstance(first, tuple) and len(first) == len(dynamic_shapes)
    return fits and (is_flat or len(dynamic_shapes) > 1)


def _collect(collector, name, value, spec):
    """Add the tensors of an argument."""
    if isinstance(value, Tensor):
        collector.add(name, value.shape, spec)
    elif not pytree.tree_is_leaf(value):
        children = _children(value)
        for key, child in children.items():
            _collect(collector, f"{name}_{key}", child, _part(name, spec, key, len(children)))
    elif spec is not None and not isinstance(spec, _DimHint):
        raise UserError(
            f"Cannot associate shape {spec} specified in `dynamic_shapes` to non-tensor type "
            f"{type(value).__name__} of {name!r} (expected None)"
        )


def _children(node) -> dict:
    kind = pytree.SUPPORTED_NODES[pytree._get_node_type(node)]
    children, _ = kind.flatten_fn(node)
    keys = [*node] if isinstance(node, dict) else range(len(children))
    return dict(zip(keys, children, strict=True))


def _part(name, spec, key, count):
    if spec is None:
        return None
    if isinstance(spec, dict):
        return spec.get(key)
    if isinstance(spec, tuple | list) and len(spec) == count:
        return spec[key]
    raise UserError(
        f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: {name!r} has "
        f"{count} parts, and {spec!r} was given for it"
    )


def tensor_names(mod, args, kwargs) -> list[str]:
    """The names of the leaves of the arguments, in order."""
    names: list[str] = []

    def collect(name, value):
        if pytree.tree_is_leaf(value):
            names.append(name)
            return
        for key, child in _children(value).items():
            collect(f"{name}_{key}", child)

    for name, value in named_arguments(mod, args, kwargs).items():
        collect(name, value)
    return names


__getattr__ = missing_in(__name__)
