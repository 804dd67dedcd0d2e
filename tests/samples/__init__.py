"""Samples of the operators' arguments: one file a family, one line a sample.

    SAMPLES = [
        S("add", T(2, 3), T(3), alpha=2, complex=True),
        S("gather", T(3, 4), 1, Int(2, 4, high=3)),
        S("abs", T(values=[0.0]), kink=True),
        *each("sin cos tanh", T(2, 3), complex=True),
    ]

The name is a public one that torch and jaxgrad share ("add", "nn.functional.gelu",
"Tensor.expand"), or "ops.sigmoid_backward" for what torch has as torch.ops.aten.sigmoid_backward.
Arguments are given as they are, with these in the place of tensors and dtypes:

T(2, 3)            floats, differentiated; T() is 0-d, T(0, 3) empty. Between -2 and 2, or `low`
                   and `high`; no two are equal, and none is within 0.02 of a multiple of a half
T(values=[1, 2])   these values
T(3, real=True)    stays real where the others become complex
T(3, constant=True)  requires no gradient
Int(3, high=5)     integers from `low`, 0 if not given, to high - 1; `values`, `dtype`;
                   `unique=True`: no two are equal
Mask(3)            booleans; `values`
Dtype("float64")   torch.float64

Every sample runs in float64, and its value in float32 too. Options of a sample:

complex=True       it runs in complex128 too; complex="only": in complex128 instead
kink=True          the gradient is a convention there: compared with PyTorch's, and with no
                   finite differences
dynamic=True       the shape of the result depends on integer or boolean tensors, so that these
                   cannot be traced

The text of a call is the sample's name in test reports and in the recording of PyTorch's answers,
and the seed of its values: a new sample leaves the others as they are.
"""

import importlib
import pkgutil
import zlib
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import ClassVar

import numpy

CLEARANCE = 0.02  # distance from the usual kinks; finite differences take smaller steps


class Marker:
    """Stands for a tensor: `shape`, and options, of which those that differ from `USUAL` show."""

    USUAL: ClassVar = {"values": None}

    def __init__(self, *shape, **options):
        unknown = options.keys() - self.USUAL.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no option {unknown.pop()!r}")
        self.options = self.USUAL | options
        self.values = self.options["values"]
        self.shape = shape if self.values is None else numpy.shape(self.values)

    def __repr__(self):
        extents = [] if self.values is not None else map(str, self.shape)
        options = (f"{k}={v!r}" for k, v in self.options.items() if v != self.USUAL[k])
        return f"{type(self).__name__}({', '.join([*extents, *options])})"

    differentiated = False


class T(Marker):
    """Floats; see above."""

    USUAL: ClassVar = {"values": None, "low": -2.0, "high": 2.0, "real": False, "constant": False}

    @property
    def differentiated(self):
        return not self.options["constant"]

    def draw(self, random, complex):
        is_complex = complex and not self.options["real"]
        if self.values is not None:
            return numpy.array(self.values, numpy.complex128 if is_complex else numpy.float64)
        if is_complex:
            return numpy.asarray(self.real(random) + 1j * self.real(random))
        return self.real(random)

    def real(self, random):
        """One number out of each of as many cells of the range, at a distance from its ends."""
        low, high, count = self.options["low"], self.options["high"], int(numpy.prod(self.shape))
        cells = (random.permutation(count) + random.uniform(0.25, 0.75, count)) / max(count, 1)
        numbers = low + (high - low) * cells
        halves = numpy.round(2 * numbers) / 2
        offsets = numbers - halves
        away = halves + numpy.copysign(CLEARANCE, offsets)
        return numpy.where(abs(offsets) < CLEARANCE, away, numbers).reshape(self.shape)


class Int(Marker):
    """Integers; see above."""

    USUAL: ClassVar = {"values": None, "low": 0, "high": 10, "unique": False, "dtype": "int64"}

    def draw(self, random, complex):
        if self.values is not None:
            return numpy.array(self.values, self.options["dtype"])
        return self.numbers(random).reshape(self.shape).astype(self.options["dtype"])

    def numbers(self, random):
        low, high, count = self.options["low"], self.options["high"], int(numpy.prod(self.shape))
        if self.options["unique"]:
            return low + random.permutation(high - low)[:count]
        return random.randint(low, high, count)


class Mask(Marker):
    """Booleans; see above."""

    def draw(self, random, complex):
        if self.values is not None:
            return numpy.array(self.values, bool)
        return numpy.asarray(random.uniform(size=self.shape) < 0.5)


@dataclass(frozen=True)
class Dtype:
    """A dtype by its name."""

    name: str

    def __repr__(self):
        return f"Dtype({self.name!r})"


def replace(tree, function):
    """Arguments with `function` of each leaf in its place, in order."""
    if isinstance(tree, list | tuple):
        return type(tree)(replace(item, function) for item in tree)
    if isinstance(tree, dict):
        return {key: replace(value, function) for key, value in tree.items()}
    return function(tree)


@dataclass(frozen=True)
class Sample:
    """Arguments of an operator."""

    name: str
    args: tuple
    kwargs: dict = field(default_factory=dict)
    complex: bool | str = False
    kink: bool = False
    dynamic: bool = False

    @cached_property
    def id(self):
        args = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        return f"{self.name}({', '.join(args)})"

    def __repr__(self):
        return self.id

    @property
    def operator(self):
        """The last part of the name: "gelu" of "nn.functional.gelu"."""
        return self.name.rpartition(".")[2]

    @cached_property
    def markers(self):
        """The markers among the arguments, in order."""
        found = []
        replace((self.args, self.kwargs), found.append)
        return tuple(item for item in found if isinstance(item, Marker))

    @property
    def fields(self):
        """Over which numbers it runs: "real", "complex"."""
        if not any(isinstance(marker, T) for marker in self.markers):
            return ("real",)
        return {False: ("real",), True: ("real", "complex"), "only": ("complex",)}[self.complex]

    @property
    def differentiated(self):
        """For each tensor whether a gradient of it is asked for."""
        return tuple(marker.differentiated for marker in self.markers)

    def draw(self, field="real", seed=0):
        """A numpy array for each tensor; another seed gives other values."""
        return [
            marker.draw(self.random(f"{position} {seed}"), field == "complex")
            for position, marker in enumerate(self.markers)
        ]

    def random(self, purpose):
        # RandomState's streams never change, as those of numpy's newer generators may
        return numpy.random.RandomState(zlib.crc32(f"{self.id} {purpose}".encode()))

    def direction(self, purpose, shape, dtype):
        """Random numbers of that shape and floating dtype; others for another purpose."""
        random, dtype = self.random(purpose), numpy.dtype(dtype)
        numbers = random.uniform(-1, 1, shape)
        if dtype.kind == "c":
            numbers = numbers + 1j * random.uniform(-1, 1, shape)
        return numpy.asarray(numbers, dtype)

    def call(self, module, tensors):
        """The operator of `module`, torch or jaxgrad, with `tensors` for arguments."""
        supply = iter(tensors)

        def fill(leaf):
            if isinstance(leaf, Marker):
                return next(supply)
            return getattr(module, leaf.name) if isinstance(leaf, Dtype) else leaf

        args, kwargs = replace((self.args, self.kwargs), fill)
        return find(module, self.name)(*args, **kwargs)


def _in_place(name):
    return lambda self, *args, **kwargs: getattr(self.clone(), name)(*args, **kwargs)


def _as_strided_scatter(self, src, *args, **kwargs):
    written = self.clone()
    written.as_strided(*args, **kwargs).copy_(src)
    return written


# Operators whose derivatives PyTorch has right for the in-place variant only.
STAND_INS = {
    "as_strided_scatter": _as_strided_scatter,
    "ops.copy": _in_place("copy_"),
    "ops._fill_diagonal": _in_place("fill_diagonal_"),
}


def find(module, name):
    """What `name` means in torch or jaxgrad."""
    if module.__name__ == "torch" and name in STAND_INS:
        return STAND_INS[name]
    if module.__name__ == "torch" and name.startswith("ops."):
        name = f"ops.aten.{name.removeprefix('ops.')}"
    return reduce(getattr, name.split("."), module)


def S(name, *args, complex=False, kink=False, dynamic=False, **kwargs):
    """A sample: an operator's name and its arguments; for the options see above."""
    return Sample(name, args, kwargs, complex, kink, dynamic)


def each(names, *args, **kwargs):
    """The same sample of several operators, whose names are separated by blanks."""
    return [S(name, *args, **kwargs) for name in names.split()]


def families():
    """The samples of each family, by the name of its file."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}").SAMPLES for name in names}
