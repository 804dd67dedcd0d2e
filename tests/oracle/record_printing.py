"""Records how PyTorch prints some 270 tensors, with their values.

make record PARTS=printing

A case has `values` (flat, complex numbers as pairs), or for large tensors `range` and `scale` (0,
scale, 2 scale ...), then `dtype`, `shape`, and the settings that are not PyTorch's default.
"""

import math
import random

import torch
from helpers.answers import beside, save

inf, nan = math.inf, math.nan
FLOATS = [
    *([0.0], [1.0], [-1.5], [0.1, 0.25], [1.0, 2.0, 3.0], [1.0, -2.0], [0.0, -0.0], [1e-5, 1.0]),
    *([1e-4, 0.5], [9.99e-5], [1.0, 1000.0], [1.0, 1001.0], [0.5, 500.0], [0.5, 501.0], [1e8]),
    *([1.1e8], [123456.0, 654321.5], [1e-10, 1e10], [0.00012, 0.1], [99999.5, 100.25], [2.0**-30]),
    *([nan], [inf, -inf], [nan, 0.0], [nan, 1.0, -inf], [0.5, nan, -inf], [1e-9, -inf, nan]),
    *([-1e-3, 1e-3], [3.14159265, -2.71828182, 1.41421356], [1e30, 1e-30], [33.33333, 66.66666]),
    *([0.99999, 0.999999], [1e7, 12345678.0], [-0.00005, 0.0], [5e-324], [1e300]),
]
INTEGERS = [[0], [1, -1], [100, 7, -12], [2**31 - 1, 0], [-(2**31)]]
COMPLEX = [
    *([0j], [1 + 2j], [1.5 - 2j, 3 + 0.25j], [complex(nan, inf)], [complex(0.5, -inf), 1e-6j]),
    *([complex(1, -0.0), complex(-0.0, 0.0)], [1e10 + 1e-10j, 1 + 1j], [0.5j, 100 - 1j]),
]
SHAPES = [
    (),
    (1,),
    (12,),
    (30,),
    (2, 3),
    (3, 1),
    (1, 1, 1),
    (2, 2, 3),
    (2, 1, 2, 2),
    (1, 25),
    (4, 40),
]
EMPTY = [(0,), (0, 3), (2, 0), (1, 0, 4)]
LARGE = [
    (1001,),
    (1000,),
    (40, 40),
    (1, 1200),
    (1200, 1),
    (6, 200),
    (7, 200),
    (8, 9, 20),
    (3, 7, 2, 50),
]
OPTIONS = [
    *({"precision": 0}, {"precision": 1}, {"precision": 10}, {"sci_mode": True}),
    *({"sci_mode": False}, {"profile": "short"}, {"profile": "full"}, {"linewidth": 20}),
    *({"linewidth": 0}, {"linewidth": 200}, {"threshold": 5}, {"threshold": 0, "edgeitems": 1}),
    *({"threshold": 5, "edgeitems": 0}, {"profile": "short", "threshold": 10, "precision": 6}),
]
INTEGER_TYPES = "uint8 int8 int16 int32 int64 uint16 uint32 uint64"


def case(dtype, shape, values=None, **rest):
    return {"dtype": dtype, "shape": list(shape)} | ({"values": values} if values else {}) | rest


def pairs(values):
    return [[value.real, value.imag] for value in values]


def normal(count, scale=1.0):
    return [random.gauss(0, scale) for _ in range(count)]


def cases_of_values():
    for values in FLOATS:
        yield case("float64", [len(values)], values)
        if 1e300 not in values:
            yield case("float32", [len(values)], values)
    for values in INTEGERS:
        yield case("int64", [len(values)], values)
    for values in COMPLEX:
        yield case("complex64", [len(values)], pairs(values))
        yield case("complex128", [len(values)], pairs(values), default="float64")


def cases_of_dtypes():
    for dtype in INTEGER_TYPES.split():
        yield case(dtype, [4], [0, 1, 20, 127])
    for dtype in ("float16", "bfloat16"):
        yield case(dtype, [2, 3], [0.1, -2.5, 3.0, 300.0, 0.001, 7.75])
        yield case(dtype, [3], [1.0, 2.0, inf], default=dtype)
    yield case("bool", [2, 2], [1, 0, 0, 1])
    yield case("bool", [], [1])
    yield case("float32", [2], [0.5, 1.0], default="float64")
    yield case("float64", [2], [0.5, 1.0], default="float64")


def cases_of_shapes():
    for shape in SHAPES:
        yield case("float32", shape, normal(math.prod(shape)))
        yield case("complex64", shape, pairs(map(complex, *[normal(math.prod(shape))] * 2)))
    for shape in EMPTY:
        for dtype in ("float32", "int64", "bool", "complex64"):
            yield case(dtype, shape)
    for shape in LARGE:
        yield case("int64", shape, range=math.prod(shape), scale=1)
        yield case("float32", shape, range=math.prod(shape), scale=0.5)
    yield case("complex64", [1500], range=1500, scale=0.25)


def cases_of_options():
    for options in OPTIONS:
        yield case("float32", [2, 7], normal(14, 30.0), options=options)
        yield case("float64", [3], [1e-7, 1.0, nan], options=options)
        yield case("float32", [4], [0.0, 1.0, 20.0, -inf], options=options)
        yield case("int64", [2, 3, 4], range=24, scale=1, options=options)
        yield case("complex64", [2], pairs([1.5 + 2j, -1e-7j]), options=options)


def cases_of_gradients():
    for length in (1, 2, 5, 6, 7, 8, 20):
        yield case("float32", [length], normal(length), requires_grad=True)
        yield case("float64", [length], normal(length), requires_grad=True)
        yield case("float32", [length], normal(length), grad_fn="MulBackward0")
        yield case("float64", [length], normal(length), grad_fn="AddBackward0")
    yield case("float32", [], [4.0], grad_fn="MulBackward0")
    yield case("float16", [2, 2], [0.5, 1.0, 2.0, 3.0], requires_grad=True)
    yield case("float64", [0, 3], requires_grad=True)


def tensor_of(recorded):
    dtype, shape = getattr(torch, recorded["dtype"]), recorded["shape"]
    if "range" in recorded:
        values = torch.arange(recorded["range"], dtype=torch.float64) * recorded["scale"]
        return values.to(dtype).reshape(shape)
    values = recorded.get("values", [])
    if dtype.is_complex:
        values = [complex(*pair) for pair in values]
    tensor = torch.tensor(values, dtype=dtype).reshape(shape)
    tensor.requires_grad_("requires_grad" in recorded or "grad_fn" in recorded)
    functions = {"MulBackward0": lambda: tensor * 1, "AddBackward0": lambda: tensor + 0}
    return functions.get(recorded.get("grad_fn"), lambda: tensor)()


def with_text(recorded):
    torch.set_default_dtype(getattr(torch, recorded.get("default", "float32")))
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**recorded.get("options", {}))
    text = repr(tensor_of(recorded))
    torch.set_default_dtype(torch.float32)
    return recorded | {"text": text}


def main():
    random.seed(0)
    families = (
        cases_of_values,
        cases_of_dtypes,
        cases_of_shapes,
        cases_of_options,
        cases_of_gradients,
    )
    cases = [with_text(case) for family in families for case in family()]
    save(beside("frontend/test_printing.py"), cases)


if __name__ == "__main__":
    main()
