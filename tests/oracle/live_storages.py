"""Storages of random numbers: their bytes, the tensors that they give, and what is refused.

And the schemas of PyTorch's operators: the attributes of each, in PyTorch and in jaxgrad.
"""

import random

import pytest
import torch
from helpers import checks
from oracle.seed import SEED

import jaxgrad
from jaxgrad.ops.aten import _texts, schemas

DTYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float32"),
    *("float64", "complex64", "complex128"),
)


def answer(function, module):
    """What a function of a module gives, or the kind of its error."""
    try:
        value = function(module)
    except Exception as error:
        kinds = (NotImplementedError, IndexError, TypeError, RuntimeError)
        return next(kind.__name__ for kind in (*kinds, Exception) if isinstance(error, kind))
    return value if isinstance(value, list | tuple | int | str) else str(value.tolist())


def calls(draw):
    """Functions of the module for one random storage."""
    name, other = draw.choice(DTYPES), draw.choice(DTYPES)
    numbers = [draw.randint(0, 100) for _ in range(draw.randint(0, 6))]
    place, number = draw.randint(-7, 7), draw.randint(0, 1)
    start, stop = draw.randint(0, 6), draw.randint(0, 6)

    def storage(t, device="cpu"):
        return t.TypedStorage(numbers, dtype=getattr(t, name), device=device)

    def written(t, index):
        row = storage(t)
        row[index] = number
        return row.tolist(), row.untyped().tolist()

    def swapped(t):
        row = storage(t).untyped()
        row.byteswap(getattr(t, name))
        return row.tolist()

    return {
        "bytes": lambda t: storage(t).untyped().tolist(),
        "size": lambda t: (len(storage(t)), storage(t).nbytes(), storage(t).element_size()),
        "element": lambda t: [storage(t)[place]],
        "write": lambda t: written(t, place),
        "write to a slice": lambda t: written(t, slice(start, stop)),
        "swap": swapped,
        "tensor": lambda t: t.tensor(storage(t), dtype=getattr(t, other)),
        "as_tensor": lambda t: t.as_tensor(storage(t), dtype=getattr(t, other)),
        "tensor of bytes": lambda t: t.tensor(storage(t).untyped(), dtype=getattr(t, name)),
        "legacy": lambda t: t.LongTensor(storage(t)),
        "legacy of bytes": lambda t: t.LongTensor(storage(t).untyped()),
        "set": lambda t: t.zeros(0, dtype=getattr(t, other)).set_(storage(t)),
        "type": lambda t: [storage(t).type(), str(storage(t).dtype)],
        "meta": lambda t: (storage(t, "meta").nbytes(), storage(t, "meta").data_ptr()),
        "element of meta": lambda t: [storage(t, "meta")[place]],
        "copy of meta": lambda t: storage(t).copy_(storage(t, "meta")).tolist(),
    }


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("number", range(40))
def test_storages(number):
    for name, call in calls(random.Random(f"{SEED} storages {number}")).items():
        checks.count("storages")
        assert answer(call, jaxgrad) == answer(call, torch), (name, number)


def described(schema):
    arguments = [
        (
            *(a.name, str(a.type), a.has_default_value(), a.kwarg_only, a.N, a.is_out),
            a.alias_info and (a.alias_info.is_write, sorted(a.alias_info.before_set)),
        )
        for a in schema.arguments
    ]
    returns = [(result.name, str(result.type)) for result in schema.returns]
    return schema.name, schema.overload_name, schema.is_mutable, arguments, returns


def test_schemas():
    draw = random.Random(f"{SEED} schemas")
    for name in draw.sample(sorted(_texts()), 300):
        for overload in schemas(name):
            if overload not in getattr(getattr(torch.ops.aten, name, None), "overloads", list)():
                continue
            ours, theirs = (
                getattr(getattr(module.ops.aten, name), overload)._schema
                for module in (jaxgrad, torch)
            )
            checks.count("storages")
            assert described(ours) == described(theirs), name
