"""Record the results and errors of some 310 calls of PyTorch's factories.

make record PARTS=factories

A case names a function, or after a dot a method of its first argument. A value that JSON lacks is
a list that begins with its type: ["dtype", "int8"], ["complex", 0.0, 1.0] or ["tensor", "int8",
[1, 2]]. Of an error the words are recorded that jaxgrad's message must contain too.
"""

import math
import warnings

import numpy as np
import torch
from helpers.answers import beside, save

nan, inf = math.nan, math.inf
f16, bf16, f32, f64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
u8, i8, i32, i64, boolean = torch.uint8, torch.int8, torch.int32, torch.int64, torch.bool
c64, c128 = torch.complex64, torch.complex128
OVERFLOW = "without overflow"
NEGATIVE = {
    "zeros": "Dimension size must be non-negative",
    "ones": "Trying to create tensor with negative dimension -1",
}
GRADIENTS = "Only Tensors of floating point and complex dtype can require gradients"


def case(name, *args, words=None, **kwargs):
    return name, args, kwargs, words


def cases_of_constants():
    for name in ("zeros", "ones"):
        for size in ((2,), ((),), ([2],), (2, 3), ((0, 3),), (torch.tensor(2), 3), (np.int64(2),)):
            yield case(name, *size)
        yield case(name, size=(2, 1), dtype=i32)
        for dtype in (u8, f16, bf16, f64, boolean, c64, c128, torch.uint64):
            yield case(name, 2, dtype=dtype)
        yield case(name, 2, requires_grad=True)
        yield case(name, 2, dtype=i64, requires_grad=True, words=GRADIENTS)
        yield case(name, -1, words=NEGATIVE[name])
        for size in (2.0, "a", True, None):
            yield case(name, size, words=f"must be tuple of ints, not {type(size).__name__}")
        yield case(name, [2], 3, words="takes 1 positional argument but 2 were given")
        yield case(name, words='missing 1 required positional arguments: "size"')
        yield case(name, 2, spam=1, words="got an unexpected keyword argument 'spam'")
    for value in (1, 1.5, True, 1j, -3, nan, inf, np.float64(2), np.int8(3), torch.tensor(3)):
        yield case("full", (2,), value)
    yield case("full", (2,), torch.tensor(3.0, dtype=f64))
    for value, dtype in (
        (1.5, i32),
        (-1, u8),
        (2, boolean),
        (0.0, boolean),
        (1e300, f16),
        (1, c64),
    ):
        yield case("full", [], value, dtype=dtype)
    for value, dtype in (
        (300, u8),
        (1j, f32),
        (1e300, None),
        (nan, i64),
        (2**63, None),
        (-129, i8),
    ):
        yield case("full", (2,), value, dtype=dtype, words=OVERFLOW)
    yield case("full", 2, 1, words="must be tuple of ints, not int")
    yield case("full", (2,), "a", words="must be Number, not str")
    yield case("full", (2,), torch.tensor([1, 2]), words="must be Number, not Tensor")


def cases_of_ranges():
    for bounds in (
        *((5,), (5.0,), (1, 5), (1, 5, 2), (1, 2.5, 0.5), (5, 1, -2), (0,), (0, 1, 0.1), (True,)),
        *((torch.tensor(3),), (torch.tensor(3.0),), (-1.5, 7, 1.25), (2, 2), (0, 10, 3), (0, 9, 3)),
        *((0, -10, -3), (0, -9, -3), (1, 0, -0.1), (2**40, 2**40 + 3)),
    ):
        yield case("arange", *bounds)
    yield case("arange", end=4)
    yield case("arange", 1, end=4, step=2)
    yield case("arange", start=1, end=4)
    yield case("arange", 3.0, requires_grad=True)
    for bounds, dtype in (
        *(((3,), f64), ((0.5, 3.7), i64), ((0, 1, 0.1), f16), ((-3, 3), u8), ((1, 3, 0.5), i32)),
        *(((300,), u8), ((0.9, 3.2), f32), ((5,), bf16)),
    ):
        yield case("arange", *bounds, dtype=dtype)
    for bounds in ((5, 1), (1, 5, -1), (0.0, 1, -0.5)):
        yield case("arange", *bounds, words="upper bound and lower bound inconsistent with step")
    yield case("arange", 0, 1, 0, words="step must be nonzero")
    yield case("arange", inf, words="unsupported range: 0 -> inf")
    yield case("arange", nan, words="unsupported range: 0 -> nan")
    yield case("arange", 1j, words="cannot be converted to type double without overflow")
    yield case("arange", words="received an invalid combination of arguments")
    yield case("arange", "a", words="must be Number, not str")
    yield case("arange", 3, requires_grad=True, words=GRADIENTS)
    yield case("arange", 3, dtype=boolean, words="not implemented for 'Bool'")
    yield case("arange", 3, dtype=c64, words="not implemented for 'ComplexFloat'")


def cases_of_spaces():
    for bounds in (
        *((0, 1, 5), (0, 1, 1), (0, 1, 0), (3, -3, 4), (0, 1j, 3), (-1e-3, 1e3, 17), (0.1, 0.7, 2)),
        *((torch.tensor(0.0), 1, 3), (0.3, 0.3, 4), (1, 2, 6)),
    ):
        yield case("linspace", *bounds)
    for bounds, dtype in (
        *(
            ((0, 10, 5), i64),
            ((0, 1, 3), f16),
            ((0, 7, 4), i32),
            ((-1, 1, 4), i64),
            ((0, 1, 7), f64),
        ),
        *(((0, 1, 3), c128), ((5, -5, 6), i8)),
    ):
        yield case("linspace", *bounds, dtype=dtype)
    yield case("linspace", start=0, end=1, steps=3)
    yield case("linspace", 0, 1, -1, words="number of steps must be non-negative")
    yield case("linspace", 0, 1, 3, dtype=boolean, words="not implemented for 'Bool'")
    yield case("linspace", 0, 1j, 3, dtype=f32, words="can't be safely cast to passed dtype")
    yield case("linspace", torch.ones(2), 1, 3, words="only supports 0-dimensional start and end")
    yield case("logspace", 0, 2, 3)
    yield case("logspace", -1, 1, 5, 2.0)
    yield case("logspace", 0, 1, 4, dtype=f64)
    for arguments in ((2,), (2, 3), (3, 2), (0,), (2, 0)):
        yield case("eye", *arguments)
    yield case("eye", n=2, m=1)
    for dtype in (boolean, c64, i8):
        yield case("eye", 2, dtype=dtype)
    yield case("eye", -1, words="n must be greater or equal to 0, got -1")
    yield case("eye", 2, -1, words="m must be greater or equal to 0, got -1")
    yield case("eye", 2.0, words="must be int, not float")


def cases_of_likeness():
    whole, half = torch.ones(2, 1, dtype=i32), torch.ones(2, dtype=f16)
    for name in ("zeros_like", "ones_like"):
        yield case(name, whole)
        yield case(name, half)
        yield case(name, input=half, dtype=c64, requires_grad=True)
        yield case(name, [1], words="must be Tensor, not list")
        yield case(name, whole, requires_grad=True, words=GRADIENTS)
    yield case("full_like", whole, 1.5)
    yield case("full_like", half, 3, requires_grad=True)
    yield case("full_like", torch.ones(2, dtype=u8), -1)
    yield case("full_like", torch.ones(2, dtype=boolean), 2)
    yield case("full_like", torch.ones(2, dtype=i8), 300, words=OVERFLOW)
    yield case("full_like", half, 1j, words=OVERFLOW)
    yield case(".new_zeros", half, 2)
    yield case(".new_ones", whole, (2, 3))
    yield case(".new_ones", whole, 2, dtype=f64, requires_grad=True)
    yield case(".new_full", half, (2,), 3)
    yield case(".new_full", whole, (2,), 3.5)
    yield case(".new_tensor", half, [1, 2])
    yield case(".new_tensor", whole, [1.5, 2])
    yield case(".new_tensor", half, 1, dtype=i8)
    yield case(".new_zeros", whole, (2,), requires_grad=True, words=GRADIENTS)


def cases_of_data():
    one, whole = torch.tensor(1.0), torch.tensor(1, dtype=i8)
    for data in (
        *(
            [1, 2.5],
            [True, 2],
            [True],
            [],
            [[], []],
            [[[]]],
            [1, 1j],
            [[1, 2], [3, 4.0]],
            (1, 2),
            5,
        ),
        *(1.5, True, 2j, 1e300, -(2**63), [one, 2], [torch.tensor(1), 2.5], [whole], [whole, 2]),
        *([one.double(), one.half()], [torch.tensor([1]), 2], np.float64(1.5), np.int8(3), nan),
        *(
            [np.float64(1.5)],
            [np.float32(1.5), 2],
            [np.int8(3)],
            [np.bool_(True)],
            [np.complex64(1)],
        ),
        *(np.ones(2, "float16"), np.arange(6).reshape(2, 3), np.zeros((0, 2), "complex64"), [nan]),
        *(np.array(2.5), np.arange(4, dtype="uint16"), [np.arange(2), np.ones(2, int)], inf),
        *([[1, 2], (3, 4)], [[[1.0]]], 2**31, np.bool_(True), np.ones((2, 0), bool)),
    ):
        yield case("tensor", data)
        yield case("as_tensor", data)
    for data, dtype in (
        *(
            (1.5, boolean),
            (-1, u8),
            ([1.5, -1.5], i32),
            (1e300, f16),
            (1, c64),
            (2**63, torch.uint64),
        ),
        *(([True], f32), (np.array([1.5, -2.5]), i64), (np.array([1, 300]), i8), ([0, 2], boolean)),
        *((np.array([nan]), boolean), (255, u8), (0.1, f64), (0.1, bf16), ([1, 2], c128)),
    ):
        yield case("tensor", data, dtype=dtype)
    for data in ([1.0], [1j], np.ones(2)):
        yield case("tensor", data, requires_grad=True)
    yield case("tensor", [1], dtype=f16, requires_grad=True)
    yield case("from_numpy", np.arange(3, dtype="int16"))
    yield from refusals_of_data()


def refusals_of_data():
    yield case("tensor", 1, requires_grad=True, words=GRADIENTS)
    yield case("tensor", [[1, 2], [3]], words="expected sequence of length 2 at dim 1 (got 1)")
    yield case("tensor", [[1], []], words="expected sequence of length 1 at dim 1 (got 0)")
    yield case("tensor", [[1, 2], 3], words="not a sequence")
    yield case("tensor", [1, [2, 3]], words="'list' object")
    yield case(
        "tensor", [torch.ones(2)], words="only one element tensors can be converted to Python"
    )
    yield case("tensor", "a", words="invalid data type 'str'")
    yield case("tensor", ["a"], words="too many dimensions 'str'")
    yield case("tensor", None, words="Could not infer dtype of NoneType")
    yield case("tensor", [1.0, None], words="Could not infer dtype of NoneType")
    yield case("tensor", {"a": 1}, words="Could not infer dtype of dict")
    for data in (2**63, 2**64, [2**63, 1], -(2**63) - 1, [2**63, -1]):
        yield case("tensor", data, words="Overflow when unpacking long")
    for data, dtype in ((300, u8), (nan, i64), ([1, inf], i32), (2**31, i32), (-300, u8)):
        yield case("tensor", data, dtype=dtype, words=OVERFLOW)
    yield case("tensor", 1j, dtype=f32, words="must be real number, not complex")
    yield case("tensor", 1, dtype="float", words="argument 'dtype' must be torch.dtype, not str")
    yield case("tensor", np.array(["a"]), words="can't convert n")
    yield case("tensor", [1], device="spam", words="device type at start of device string: spam")
    yield case("from_numpy", [1], words="expected np.ndarray (got list)")


def encoded(value):
    if isinstance(value, torch.dtype):
        return ["dtype", str(value).removeprefix("torch.")]
    if isinstance(value, torch.Tensor):
        return ["tensor", str(value.dtype).removeprefix("torch."), value.tolist()]
    if isinstance(value, np.ndarray):
        return ["numpy", str(value.dtype), list(value.shape), encoded(value.ravel().tolist())]
    if isinstance(value, np.generic):
        return ["numpy number", str(value.dtype), encoded(value.item())]
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [encoded(item) for item in value]]
    return value


def recorded(name, args, kwargs, words):
    kwargs = {key: value for key, value in kwargs.items() if value is not None}
    entry = {"name": name, "args": [encoded(value) for value in args]}
    entry["kwargs"] = {key: encoded(value) for key, value in kwargs.items()}
    if name.startswith("."):
        function, args = getattr(args[0], name[1:]), args[1:]
    else:
        function = getattr(torch, name)
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        assert words is not None and words in str(error), (name, args, kwargs, error)
        return entry | {"error": type(error).__name__, "words": words}
    assert words is None, (name, args, kwargs, result)
    values = encoded(result.detach().flatten().tolist())[1]
    return entry | {
        "dtype": str(result.dtype).removeprefix("torch."),
        "shape": list(result.shape),
        "requires_grad": result.requires_grad,
        "values": values,
    }


def main():
    warnings.simplefilter("ignore")
    families = (
        cases_of_constants,
        cases_of_ranges,
        cases_of_spaces,
        cases_of_likeness,
        cases_of_data,
    )
    calls = [recorded(*case) for family in families for case in family()]
    save(beside("frontend/test_factories.py"), calls, 1e-6)


if __name__ == "__main__":
    main()
