"""Blocks with symbols as plain data, which JSON can write, and templates of such data.

Only the types named here are written and read: numbers, text, dtypes, small arrays, extents
(extents.py), blocks, and the named tuples and enumerations that are parameters of `jax.lax`. A
template is always made of such data, even in the process that has traced it, and all of the data is
checked then. So a wrong file can give wrong numbers, but it cannot run code.

The data of a block: the forms of its inputs; its constants; its equations, each with its name, its
parameters, the numbers of its operands, and the forms of its results; and the numbers of its
results. The inputs have the numbers from 0 on, then come the constants, then the results of the
equations. A form is a list of the dtype's name and the extents, which are trees.
"""

from __future__ import annotations

import base64
import enum
import math
from typing import NamedTuple

import jax
import ml_dtypes
import numpy

from ...late import LateModule
from ..jax_internals import extent_of_carry
from .block import Block
from .equation import Equation, Form
from .extents import NUMBERS, SYMBOLS, checked, tree_of, value

export = LateModule("jax.export")

# the types of jax.lax that parameters have
NAMED = (
    "ConvDimensionNumbers",
    "DotAlgorithm",
    "GatherDimensionNumbers",
    "ScatterDimensionNumbers",
)
CHOICES = (
    "AccuracyMode",
    "DotAlgorithmPreset",
    "FftType",
    "GatherScatterMode",
    "Precision",
    "RandomAlgorithm",
    "RoundingMethod",
)

DTYPES = {
    numpy.dtype(kind).name: numpy.dtype(kind)
    for kind in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", ml_dtypes.bfloat16, "float32", "float64", "complex64", "complex128"),
    )
}

# parameters that say how XLA distributes, names or checks, and not what is computed
DROPPED = frozenset(
    (
        *("sharding", "out_sharding", "sharding_spec", "name", "debug_info", "effects"),
        *("donated_invars", "ctx_mesh", "keep_unused", "inline", "compiler_options_kvs"),
        "computation",  # of a reduction, whose jaxpr is another parameter
    )
)

# the algorithms of random bits; a rule reads their names alone
GENERATORS = ("threefry2x32",)


class Generator(NamedTuple):
    """Stands for an algorithm of random bits."""

    name: str


MOST_BYTES = 1 << 14  # of an array
MOST_DEPTH = 24


class NotStoredError(ValueError):
    """Something has no form as data, or data is that of nothing."""


# ---- writing


def data_of(block: Block) -> list:
    """The data of a block. Raises NotStoredError."""
    needed = block.needed()
    read = {i for _, operands, _ in needed for i in operands}.union(block.results)
    kept = [i for i in block.constants if i in read]
    order = [*range(len(block.inputs)), *kept, *[i for _, _, results in needed for i in results]]
    numbers = {old: new for new, old in enumerate(order)}
    forms = dict(enumerate(block.inputs))
    forms |= {i: Form(block.constants[i].shape, block.constants[i].dtype) for i in kept}
    equations = []
    for equation, operands, results in needed:
        _check_equation(equation, [forms[i] for i in operands])
        forms.update(zip(results, equation.outputs, strict=True))
        params = {name: plain(param) for name, param in _read_params(equation).items()}
        places, outputs = [numbers[i] for i in operands], [*map(_plain_form, equation.outputs)]
        equations.append([equation.name, params, places, outputs])
    if [forms[i] for i in block.results] != [*block.outputs]:
        raise NotStoredError("a result of another form")
    inputs = [*map(_plain_form, block.inputs)]
    constants = [plain(block.constants[i]) for i in kept]
    return [inputs, constants, equations, [numbers[i] for i in block.results]]


def _read_params(equation) -> dict:
    """The parameters that a rule may read, by the names of JAX 0.10."""
    params = {name: param for name, param in equation.params.items() if name not in DROPPED}
    if "ft_in" in params and (extent := extent_of_carry(params)) is not None:
        del params["ft_in"], params["ft_out"]
        params |= {"num_consts": extent[0], "num_carry": extent[1] - extent[0]}
    return params


def _check_equation(equation, forms):
    if [*equation.inputs] != forms:
        raise NotStoredError(f"{equation.name} of operands of other forms")


def _plain_form(form) -> list:
    if DTYPES.get(form.dtype.name) != form.dtype:
        raise NotStoredError(str(form.dtype))
    return [form.dtype.name, *map(tree_of, form.shape)]


def plain(item):
    """A parameter as data. Raises NotStoredError."""
    kind = type(item)
    if item is None or kind in (bool, int, str):
        return item
    if isinstance(item, enum.Enum):
        if kind.__name__ in CHOICES and getattr(jax.lax, kind.__name__, None) is kind:
            return {"choice": [kind.__name__, item.name]}
    elif isinstance(item, Block):
        return {"block": data_of(item)}
    elif isinstance(item, numpy.ndarray | numpy.generic):
        return _plain_array(numpy.asarray(item))
    elif kind is tuple:
        return [*map(plain, item)]
    elif kind is list:
        return {"list": [*map(plain, item)]}
    elif isinstance(item, tuple):
        if kind.__name__ in NAMED and getattr(jax.lax, kind.__name__, None) is kind:
            return {"named": [kind.__name__, *map(plain, item)]}
        if all(type(part) is int for part in item):  # rules read them by their positions
            return [*item]
    elif kind in (float, complex):
        return {kind.__name__: repr(item)}
    elif isinstance(item, numpy.dtype) or (kind is type and issubclass(item, numpy.generic)):
        name = numpy.dtype(item).name
        if DTYPES.get(name) == item:
            return {"dtype": name}
    elif kind.__name__ == "PRNGImpl" and item.name in GENERATORS:
        return {"generator": item.name}
    elif export.is_symbolic_dim(item):
        return {"extent": tree_of(item)}
    raise NotStoredError(f"a parameter of the type {kind.__name__}")


def _plain_array(array) -> dict:
    if array.nbytes > MOST_BYTES or DTYPES.get(array.dtype.name) != array.dtype:
        raise NotStoredError(f"an array of {array.nbytes} bytes of {array.dtype}")
    text = base64.b64encode(numpy.ascontiguousarray(array).tobytes()).decode()
    return {"array": [array.dtype.name, [*array.shape], text]}


# ---- reading


class Varying:
    """A value that depends on the extents of the symbols: a function of them."""

    __slots__ = ("fill",)

    def __init__(self, fill):
        self.fill = fill


def filled(item, extents):
    """A parameter or a form for extents."""
    return item.fill(extents) if type(item) is Varying else item


def _require(condition, what):
    if not condition:
        raise NotStoredError(f"no data of a template: {str(what)[:80]}")


def together(items, make):
    """`make` of a list of items, some of which may vary."""
    if any(type(item) is Varying for item in items):
        return Varying(lambda extents: make([filled(item, extents) for item in items]))
    return make(items)


def form(data):
    """A form, or a `Varying` of it."""
    _require(type(data) is list and 0 < len(data) <= 65, data)
    dtype, trees = _dtype(data[0], 0), data[1:]
    shape = _shape([tree for tree in trees if type(tree) is int])
    if len(shape) == len(trees):
        return Form(shape, dtype)
    trees = [*map(checked, trees)]
    return Varying(lambda extents: Form(_shape([value(tree, extents) for tree in trees]), dtype))


def _shape(extents) -> tuple:
    _require(all(0 <= extent < 2**63 for extent in extents), extents)
    return tuple(extents)


def param(data, depth=MOST_DEPTH):
    """The parameter of some data, or a `Varying` of it."""
    _require(depth > 0, "nested too deeply")
    if data is None or type(data) in (bool, int, str):
        return data
    if type(data) is list:
        return together([param(part, depth - 1) for part in data], tuple)
    _require(type(data) is dict and len(data) == 1, data)
    ((kind, content),) = data.items()
    _require(kind in _READERS, kind)
    return _READERS[kind](content, depth - 1)


def _items(content, depth):
    _require(type(content) is list, content)
    return [param(part, depth) for part in content]


def _named(content, depth):
    _require(type(content) is list and content and content[0] in NAMED, content)
    kind = getattr(jax.lax, content[0])
    _require(len(kind._fields) == len(content) - 1, content)
    return together(_items(content[1:], depth), lambda items: kind(*items))


def _choice(content, _depth):
    _require(type(content) is list and len(content) == 2 and content[0] in CHOICES, content)
    kind = getattr(jax.lax, content[0])
    _require(type(content[1]) is str and content[1] in kind.__members__, content)
    return kind[content[1]]


def _dtype(content, _depth):
    _require(type(content) is str and content in DTYPES, content)
    return DTYPES[content]


def array(content, _depth=0):
    """A small array."""
    _require(type(content) is list and len(content) == 3 and type(content[2]) is str, content)
    kind, shape, text = content
    _require(type(shape) is list and all(type(extent) is int for extent in shape), content)
    shape, dtype = _shape(shape), _dtype(kind, 0)
    _require(math.prod(shape) * dtype.itemsize <= MOST_BYTES, shape)
    buffer = base64.b64decode(text, validate=True)
    _require(len(buffer) == math.prod(shape) * dtype.itemsize, shape)
    return numpy.frombuffer(buffer, dtype).reshape(shape)


def _generator(content, _depth):
    _require(content in GENERATORS, content)
    return Generator(content)


def _number(kind):
    def read(content, _depth):
        _require(type(content) is str and len(content) < 100, content)
        return kind(content)

    return read


def _block(content, depth):
    inner = BlockReader(content, depth)
    return Varying(_kept(inner, _symbols_in(content))) if inner.varies else inner(())


def _kept(reader, symbols):
    """The function of a reader, which keeps the last block for the same extents of the symbols that
    it has: the body of a loop does not vary with the length, and to prepare it takes the longest.
    """
    last = None, None

    def block_for(extents):
        nonlocal last
        key, block = last
        values = tuple([extents[i] for i in symbols])
        if key != values:
            block = reader(extents)
            last = values, block
        return block

    return block_for


def _symbols_in(data) -> list[int]:
    """The numbers of the symbols in some data."""
    waiting, names = [data], set()
    while waiting:
        part = waiting.pop()
        if type(part) is str:
            names.add(part)
        elif type(part) is list:
            waiting += part
        elif type(part) is dict:
            waiting += part.values()
    return sorted(NUMBERS[name] for name in names.intersection(NUMBERS))


def _extent(content, _depth):
    tree = checked(content)
    return Varying(lambda extents: value(tree, extents))


_READERS = {
    "list": lambda content, depth: together(_items(content, depth), list),
    "named": _named,
    "choice": _choice,
    "dtype": _dtype,
    "array": array,
    "block": _block,
    "extent": _extent,
    "generator": _generator,
    "float": _number(float),
    "complex": _number(complex),
}


class BlockReader:
    """The data of a block, looked at, and the function that makes a block for extents. Raises
    NotStoredError, a ValueError.
    """

    def __init__(self, data, depth=MOST_DEPTH):
        _require(type(data) is list and len(data) == 4, data)
        _require(all(type(part) is list for part in data), data)
        inputs, constants, equations, results = data
        # most values have a form that another one has too: `forms` has different ones, and `places`
        # the number of that of each value
        self.forms, self.numbers, self.places = [], {}, []
        self.inputs = len(inputs)
        self.add(inputs)
        arrays = [self.constant(constant) for constant in constants]
        self.constants = dict(enumerate(arrays, self.inputs))
        # an array has its form in its data, and NumPy takes long to name a dtype
        named = zip(constants, arrays, strict=True)
        self.add([[data["array"][0], *array.shape] for data, array in named])
        self.equations = [self.equation(equation, depth - 1) for equation in equations]
        self.results = self.checked_places(results)
        parts = [params for _, params, _, _ in self.equations]
        self.varies = any(type(part) is Varying for part in (*self.forms, *parts))

    @staticmethod
    def constant(data):
        _require(type(data) is dict and [*data] == ["array"], data)
        return array(data["array"])

    def add(self, forms):
        """Add the forms of further values."""
        for data in forms:
            text = repr(data)
            number = self.numbers.get(text)
            if number is None:
                number = self.numbers[text] = len(self.forms)
                self.forms.append(form(data))
            self.places.append(number)

    def checked_places(self, numbers) -> list[int]:
        count = len(self.places)
        _require(type(numbers) is list, numbers)
        _require(all(type(i) is int and 0 <= i < count for i in numbers), numbers)
        return numbers

    def equation(self, data, depth):
        _require(type(data) is list and len(data) == 4, data)
        name, params, operands, outputs = data
        _require(type(name) is str and type(params) is dict and type(outputs) is list, data)
        names, operands = [*params], self.checked_places(operands)
        params = together(
            [param(content, depth) for content in params.values()],
            lambda items: dict(zip(names, items, strict=True)),
        )
        begin = len(self.places)
        self.add(outputs)
        return name, params, operands, range(begin, len(self.places))

    def __call__(self, extents) -> Block:
        padded = (*extents, *(2,) * (SYMBOLS - len(extents)))
        different = [filled(form, padded) for form in self.forms]
        forms = [different[number] for number in self.places]
        equations = []
        for name, params, operands, results in self.equations:
            inputs, outputs = (
                tuple([forms[i] for i in operands]),
                tuple([forms[i] for i in results]),
            )
            equation = Equation(name, filled(params, padded), inputs, outputs)
            equations.append((equation, operands, results))
        inputs, outputs = forms[: self.inputs], [forms[i] for i in self.results]
        return Block.of_parts(inputs, outputs, equations, self.constants, self.results)
