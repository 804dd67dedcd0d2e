"""Wrong calls of PyTorch's operators, drawn by a seed, and which of them PyTorch raises for.

python -m oracle.wrong_calls SEED FIRST PART PARTS COUNT     (in tests/; the process of `outcomes`)

A sample of an operator gets one wrong argument: a value of another type for what its schema or its
sample has, a tensor of another dtype or shape, one argument too many or too few, or a wrong `out`.
Some wrong calls end PyTorch's process, so it answers in a process of its own.
"""

import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy
import torch
from oracle import op_db

COUNT = 8  # calls of an operator
# wrong numbers, which are few enough that each run asks all
ALWAYS = "nan", "-1.5", "tensor of floats"
LARGEST = 2000  # elements of a sample
DTYPES = torch.float32, torch.int64, torch.bool, torch.complex64
# `dtype` and its like are ints in schemas
BY_NAME = {"dtype": "dtype", "out_dtype": "dtype", "layout": "layout", "device": "device"}
OUTSIDE = "memory_format", "generator", "pin_memory", "out", "self", "input"


class Twisted:
    """A tensor that a library makes, changed by a function of the library and the tensor."""

    def __init__(self, tensor, change):
        self.tensor, self.change = tensor, change


class Name:
    """A member of a library."""

    def __init__(self, name):
        self.name = name


class Call(NamedTuple):
    operator: str
    change: str  # "argument:kind"
    function: object
    args: list
    kwargs: dict


def to(dtype):
    return lambda library, tensor: tensor.to(getattr(library, dtype))


def one(value):
    return Twisted(torch.tensor(value), lambda library, tensor: tensor)


CHANGES = {
    **{dtype: to(dtype) for dtype in ("int64", "bool", "complex64", "float64", "float16")},
    "on meta": lambda library, tensor: tensor.to("meta"),
    "one more dimension": lambda library, tensor: tensor.unsqueeze(0),
    "one dimension less": lambda library, tensor: tensor.select(0, 0),
    "one row more": lambda library, tensor: library.cat([tensor, tensor[:1]], 0),
    "no row": lambda library, tensor: tensor[:0],
}
OUTS = {
    **{dtype: to(dtype) for dtype in ("int64", "bool", "complex128", "float16", "float64")},
    "on meta": CHANGES["on meta"],
    "another shape": lambda library, tensor: tensor.new_zeros((7,)),
    "a leaf": lambda library, tensor: tensor.clone().requires_grad_(),
    "expanded": lambda library, tensor: tensor.new_zeros(()).expand(tensor.shape),
    "text": lambda library, tensor: "a",
}


def wrong_of_type(kind):
    """Wrong values for a type of a schema, by name."""
    optional = kind.startswith("Optional[")
    kind = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    none = {} if optional else {"None": None}
    text = {"text": "a"}
    if kind == "bool":
        return none | text | {"2": 2, "1.5": 1.5, "tensor": one(True), "list": [True]}
    if kind == "int":
        return none | text | {"1.5": 1.5, "bool": True, "list": [1], "2**70": 2**70, "1j": 1j}
    if kind in ("float", "number"):
        numbers = {"nan": float("nan"), "-1.5": -1.5, "1j": 1j}
        return none | text | numbers | {"list": [1.5], "bool": True}
    if kind in ("List[int]", "List[int"):
        return none | text | {"1.5": 1.5, "list of floats": [1.5], "list of texts": ["a"]}
    if kind == "dtype":
        return text | {"2": 2, "1.5": 1.5}
    if kind == "str":
        return none | text | {"2": 2}
    if kind == "Tensor":
        return none | text | {"1.5": 1.5, "list": [1.0], "dict": {}}
    return text


def wrong_for(value):
    """Wrong values for an argument of a sample, by name."""
    if isinstance(value, torch.Tensor):
        changes = {
            name: Twisted(value.detach(), change)
            for name, change in CHANGES.items()
            if (value.ndim and all(value.shape)) or not name.endswith(("less", "more", "row"))
        }
        return wrong_of_type("Tensor") | changes
    if isinstance(value, bool):
        return wrong_of_type("bool")
    if isinstance(value, int):
        more = {"100": 100, "-100": -100, "tensor": one(1), "tensor of floats": one(1.5)}
        return wrong_of_type("int") | more
    if isinstance(value, float):
        return wrong_of_type("float")
    if isinstance(value, str):
        return wrong_of_type("str") | {"nonsense": "nonsense"}
    if isinstance(value, torch.dtype):
        return wrong_of_type("dtype") | {"int64": Name("int64"), "complex64": Name("complex64")}
    if isinstance(value, list | tuple) and value:
        kind, rest = tuple if isinstance(value, tuple) else list, [*value[1:]]
        if all(type(item) is int for item in value):
            return wrong_of_type("List[int]") | {
                **{"out of range": kind([100, *rest]), "repeated": kind([value[0]] * 2)},
                **{
                    "longer": kind([*value, value[-1]]),
                    "shorter": kind(value[:-1]),
                    "int": value[0],
                },
                **{"None in it": kind([None, *rest]), "bool in it": kind([True, *rest])},
            }
        if all(isinstance(item, torch.Tensor) for item in value):
            first = wrong_for(value[0])
            inner = {f"first {name}": kind([item, *rest]) for name, item in first.items()}
            return inner | {"empty": kind(), "alone": value[0], "text": "a", "None": None}
    return {}


def _schemas(entry):
    name = getattr(entry, "aten_name", None) or entry.name
    return torch._C._jit_get_schemas_for_operator(f"aten::{name}")


def _left_out(entry, args, kwargs):
    """The arguments of schemas that a sample leaves out, with their types."""
    for schema in _schemas(entry):
        names = [argument.name for argument in schema.arguments]
        if len(args) > len(names) or not set(kwargs) <= set(names):
            continue
        for argument in schema.arguments[len(args) :]:
            if argument.name not in kwargs and argument.name not in OUTSIDE:
                yield argument.name, BY_NAME.get(argument.name, str(argument.type))


def _wrong(entry, args, kwargs):
    """The wrong calls of a sample: what is wrong, and the arguments."""
    for place, value in enumerate(args):
        for kind, wrong in wrong_for(value).items():
            yield f"{place}:{kind}", [*args[:place], wrong, *args[place + 1 :]], kwargs
        yield f"only {place}:", args[:place], kwargs
    for name, value in kwargs.items():
        for kind, wrong in wrong_for(value).items():
            yield f"{name}:{kind}", args, kwargs | {name: wrong}
    for name, type_ in _left_out(entry, args, kwargs):
        for kind, wrong in wrong_of_type(type_).items():
            yield f"{name}:{kind}", args, kwargs | {name: wrong}
    yield "unknown:", args, kwargs | {"nonsense": 1}
    yield "many:", [*args, *[1] * 15], kwargs


def _wrong_outs(entry, args, kwargs):
    if not entry.supports_out:
        return
    try:
        result = entry.op(*args, **kwargs)
    except Exception:
        return
    is_one = isinstance(result, torch.Tensor)
    if not is_one and not isinstance(result, list | tuple):
        return
    results = [result] if is_one else list(result)
    if not all(isinstance(item, torch.Tensor) for item in results):
        return
    results = [item.detach().clone() for item in results]
    for place, item in enumerate(results):
        for kind, change in OUTS.items():
            if kind == "a leaf" and not (item.is_floating_point() or item.is_complex()):
                continue
            outs = [*results]
            outs[place] = Twisted(item, change)
            yield f"out{place}:{kind}", args, kwargs | {"out": outs[0] if is_one else tuple(outs)}
    if not is_one:
        same = torch.zeros(0) + 0
        yield "out:same", args, kwargs | {"out": Repeated(same, len(results))}
        yield "out:fewer", args, kwargs | {"out": tuple(results[:-1])}
        yield "out:one", args, kwargs | {"out": results[0]}
    else:
        yield "out:tuple", args, kwargs | {"out": (results[0],)}


class Repeated:
    """A tuple that has one tensor several times."""

    def __init__(self, tensor, count):
        self.tensor, self.count = tensor, count


def _sample(entry, seed):
    """The sample with the most arguments of the first ones, with elements if one has; or None."""
    dtypes = [*(one for one in DTYPES if one in entry.dtypes), *sorted(entry.dtypes, key=str)]
    if not dtypes:
        return None
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)
    samples = []
    try:
        for sample in entry.sample_inputs("cpu", dtypes[0], requires_grad=False):
            samples.append(sample)
            if len(samples) == 12:
                break
    except Exception:
        pass  # some entries need a device, or a library

    def rank(sample):
        values = op_db.tensors([sample.input, *sample.args, sample.kwargs], torch.Tensor)
        count = sum(value.numel() for value in values)
        full = count < LARGEST and all(value.numel() for value in values)
        return full, len(sample.args) + len(sample.kwargs), -count

    return max(samples, key=rank, default=None)


def calls(seed, part=0, parts=1, count=COUNT):
    """The wrong calls of a seed; those of one of several parts of the operators."""
    for entry in list(op_db.operators())[part::parts]:
        sample = _sample(entry, seed)
        if sample is None:
            continue
        args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
        wrong = [*_wrong(entry, args, kwargs)]
        outs = [*_wrong_outs(entry, args, kwargs)]
        draw = random.Random(f"{seed} {entry.full_name}")
        drawn = draw.sample(wrong, min(count, len(wrong)))
        names = {name for name, *_ in drawn}
        drawn += [call for call in wrong if call[0].endswith(ALWAYS) and call[0] not in names]
        drawn += draw.sample(outs, min(count // 4, len(outs)))
        for change, some, named in drawn:
            yield Call(entry.full_name, change, entry.op, some, named)


def built(library, value):
    """The arguments of a call for a library, with tensors of its own."""
    if isinstance(value, Twisted):
        return value.change(library, built(library, value.tensor))
    if isinstance(value, Repeated):
        return (built(library, value.tensor),) * value.count
    if isinstance(value, Name):
        return getattr(library, value.name)
    if isinstance(value, dict):
        return {name: built(library, item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(built(library, item) for item in value)
    return op_db.cloned(value) if library is torch else op_db.converted(value)


def outcome(library, call):
    """The error that a call raises, or None."""
    library.manual_seed(0)
    with warnings.catch_warnings(action="ignore"):
        function = call.function if library is torch else op_db.function_of(call.function)
        args, kwargs = built(library, call.args), built(library, call.kwargs)
        try:
            function(*args, **kwargs)
        except Exception as error:
            return error
    return None


def kind(error):
    """The first class of Python's library that an error is of."""
    return next(one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins")


def outcomes(seed, part=0, parts=1, count=COUNT):
    """What PyTorch does in each call: the kind and the text of its error; "" for none, and "crash"
    if its process ended.
    """
    lines = []
    while True:
        command = (sys.executable, "-m", "oracle.wrong_calls")
        numbers = map(str, (seed, len(lines), part, parts, count))
        ended = subprocess.run(
            [*command, *numbers],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        read = [line for line in ended.stdout.splitlines() if line.startswith("=")]
        lines += [line[1:] for line in read]
        if ended.returncode == 0:
            return lines
        if ended.returncode > 0:
            raise RuntimeError(f"the calls end with status {ended.returncode}")
        lines.append("crash")


def _answer(seed, first, part, parts, count):
    for number, call in enumerate(calls(seed, part, parts, count)):
        if number < first:
            continue
        try:
            error = outcome(torch, call)
            text = f"{kind(error)}: {str(error)[:150]!r}" if error is not None else ""
        except Exception:
            text = "crash"  # the arguments cannot be made
        print(f"={text}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    _answer(*map(int, sys.argv[1:]))
