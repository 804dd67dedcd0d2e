"""Records PyTorch's dtypes, their promotion and its conversion of numbers.

make record PARTS=promotion
"""

import warnings

import torch
from helpers import answers

DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]
NUMBERS = {"bool": True, "int": 2, "float": 1.5, "complex": 1.5 + 2j}
OPERANDS = [*NUMBERS, *(f"{name}[{ndim}]" for ndim in (0, 1) for name in DTYPES)]


def equal(left, right):
    return torch.as_tensor(left == right)  # torch.eq takes no number on the left


FUNCTIONS = {
    "result_type": torch.result_type,
    "add": torch.add,
    "mul": torch.mul,
    "true_divide": torch.true_divide,
    "eq": equal,
}
CONVERTED = [
    *(True, False, 0, 1, -1, 3, 127, 128, 255, 256, 300, -128, -129, -255, -256, -300, 65535),
    *(-65536, 2**24 + 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**63 - 1, -(2**63), 2**63),
    *(2**64 - 1, 2**64, -(2**63) - 1),
    *(
        0.0,
        -0.5,
        -1.0,
        -1 + 0j,
        0.1,
        1.5,
        -1.5,
        127.5,
        255.5,
        300.0,
        65519.0,
        65520.0,
        1e10,
        1e30,
        -1e39,
        1e300,
    ),
    *(float("nan"), float("inf"), -float("inf"), 1j, 1 + 0j, 300 + 0j, 1e300j, 0.1 - 2.5j),
    *(complex(1, float("nan")), complex(float("inf"), 0)),
]


def operand(name):
    if name in NUMBERS:
        return NUMBERS[name]
    dtype, ndim = name.rstrip("]").split("[")
    return torch.ones((1,) * int(ndim), dtype=getattr(torch, dtype))


def attempt(function, *arguments):
    """The result, or None where PyTorch raises."""
    try:
        return function(*arguments)
    except (RuntimeError, TypeError, OverflowError):
        return None


def dtype_name(result):
    dtype = getattr(result, "dtype", result)
    return None if dtype is None else str(dtype).removeprefix("torch.")


def matrix(function, names, make):
    rows = {}
    for left in names:
        results = (attempt(function, make(left), make(right)) for right in names)
        rows[left] = " ".join(str(dtype_name(result)) for result in results)
    return rows


def under_default(name):
    torch.set_default_dtype(getattr(torch, name))
    recorded = {function: matrix(FUNCTIONS[function], OPERANDS, operand) for function in FUNCTIONS}
    tensors = OPERANDS[len(NUMBERS) :]
    recorded["sin"] = {
        tensor: str(dtype_name(attempt(torch.sin, operand(tensor)))) for tensor in tensors
    }
    torch.set_default_dtype(torch.float32)
    return recorded


def torch_dtype(name):
    return getattr(torch, name)


def attributes(name):
    dtype = torch_dtype(name)
    names = ("is_floating_point", "is_complex", "is_signed", "itemsize")
    recorded = {attribute: getattr(dtype, attribute) for attribute in names}
    recorded["to_real"] = dtype_name(dtype.to_real())
    recorded["to_complex"] = dtype_name(attempt(dtype.to_complex))
    for limits in (torch.finfo, torch.iinfo):
        info = attempt(limits, dtype)
        words = [word for word in dir(limits) if not word.startswith("_")]
        values = info and {word: getattr(info, word) for word in words}
        recorded[limits.__name__] = info and {"repr": repr(info), **values}
    return recorded


def full(number, dtype):
    """The element that `full` makes of a number, or how it refuses."""
    try:
        return repr(torch.full((), number, dtype=dtype).item())
    except (RuntimeError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"


def beside(number, dtype):
    """The dtype and the element that an operator makes of a number beside a tensor."""
    zeros = torch.zeros(1, dtype=dtype)
    chosen = attempt(torch.where, torch.tensor([True]), number, zeros)
    if chosen is None:  # it asks that the number fits; a sum does not, but makes nan of inf * 1j
        chosen = attempt(torch.add, zeros, number)
    silent = chosen is None or (chosen.isnan().any() and number == number)
    return None if silent else f"{dtype_name(chosen)} {chosen.item()!r}"


def conversions(number):
    dtypes = {name: torch_dtype(name) for name in DTYPES}
    return {name: [full(number, dtypes[name]), beside(number, dtypes[name])] for name in dtypes}


def main():
    warnings.simplefilter("ignore")  # complex32 is experimental
    recorded = {
        "torch": torch.__version__,
        "operands": OPERANDS,
        "attributes": {name: attributes(name) for name in DTYPES},
        "promote_types": matrix(torch.promote_types, DTYPES, torch_dtype),
        "can_cast": matrix(torch.can_cast, DTYPES, torch_dtype),
        "defaults": {name: under_default(name) for name in ("float32", "float64")},
        "conversions": {repr(number): conversions(number) for number in CONVERTED},
    }
    answers.save(answers.beside("core/test_promotion.py"), recorded)


if __name__ == "__main__":
    main()
