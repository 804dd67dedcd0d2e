"""Tests that are pieces of PyTorch code: jaxgrad must give the answers that PyTorch gave once.

    @as_torch("tensor(6.0)")
    def test_of_something(torch):
        x = torch.tensor(3.0, requires_grad=True)
        (x * x).backward()
        return x.grad

`torch` is jaxgrad, and what the body returns is compared with what PyTorch returned: tensors with
dtype, shape and `requires_grad`, those on the device meta with their strides in place of their
values, and lists, tuples and dicts of them; `error` and `warned` catch what is raised.

Write `@as_torch`: `make record PARTS=autograd` asks PyTorch and writes the answer into the test, or
into test_views.answers.txt beside test_views.py if it is long (answers.py says how to read it).
"""

import contextlib
import functools
import inspect
import math
import warnings

import jaxgrad
from helpers import answers, checks


def as_torch(answer=None, *, precision=1e-14, prepare=lambda value: value, family="autograd"):
    """Makes a test of a function of `torch`, its body: what that returns must be PyTorch's answer.

    answer: the text of it; without one, as `@as_torch`, it is in the file beside the test.
    precision: relative, of numbers of 64 bits.
    prepare: is called with both described values before they are compared.
    family: of the checks.
    """
    options = {"precision": precision, "prepare": prepare, "family": family}
    if callable(answer):
        return make_test(answer, None, **options)
    return functools.partial(make_test, answer=answer, **options)


def make_test(body, answer, precision, prepare, family):
    def expected():
        """What PyTorch returned, described."""
        return answers.read(answer) if answer is not None else long_answer(body)

    def test():
        theirs, ours = prepare(expected()), prepare(described(body(jaxgrad)))
        differences(theirs, ours, body.__name__, precision)
        checks.count(family)

    test.__name__, test.__doc__, test.body = body.__name__, body.__doc__, body
    test.expected, test.precision = expected, precision
    return test


def long_answer(body):
    """The answer in the file beside a test. Raises LookupError if it is not recorded."""
    path = answers.beside(inspect.getfile(inspect.unwrap(body)), "txt")
    text = answers.sections(path).get(body.__name__)
    if text is None:
        raise LookupError(f"{body.__name__} is not recorded: run make record PARTS=autograd")
    return answers.read(text)


def leaf(torch, *values, **options):
    """A tensor that requires grad, of one number without dimensions."""
    return torch.tensor(values[0] if len(values) == 1 else values, requires_grad=True, **options)


def strict(torch):
    """A context in which jaxgrad checks versions of saved tensors, as PyTorch always does."""
    return getattr(torch.autograd.graph, "strict_versions", contextlib.nullcontext)()


def parameters(function):
    """Names and defaults of a function."""
    arguments = inspect.signature(function).parameters.values()
    return [(p.name, "required" if p.default is p.empty else p.default) for p in arguments]


def error(function, *args, words=None):
    """The error that a call raises: its type, and what it says up to the end of the first sentence.

    words: what alone must be the same, where our sentence is another.
    """
    try:
        function(*args)
    except Exception as raised:
        return {"error": type(raised).__name__, "says": str(raised), "words": words}
    return answers.NO_ERROR | {"words": words}


def warned(function, *args):
    """The warnings that a call gives, and its result."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        result = function(*args)
    messages = [
        {"error": w.category.__name__, "says": str(w.message), "words": None} for w in records
    ]
    return {"warnings": messages, "result": result}


def described(value):
    """A value as nested lists and dicts of numbers and strings, which answers.py writes."""
    if hasattr(value, "requires_grad") and hasattr(value, "detach"):
        is_meta = value.device.type == "meta"
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "requires_grad": value.requires_grad,
            **(
                {"strides": list(value.stride())}
                if is_meta
                else {"values": described(value.detach().tolist())}
            ),
        }
    if isinstance(value, dict):
        return {str(name): described(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    if isinstance(value, complex):
        return {"real": value.real, "imag": value.imag}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a test returned {value!r}, which is not to be compared")


def differences(theirs, ours, where, precision=1e-14):
    """Fails where two described values differ."""
    assert type(theirs) is type(ours), f"{where}: {ours!r} for {theirs!r}"
    if isinstance(theirs, float):
        same = math.isclose(theirs, ours, rel_tol=precision) or (theirs != theirs and ours != ours)
        assert same, f"{where}: {ours} for {theirs}"
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours), f"{where}: {ours!r} for {theirs!r}"
        for position, pair in enumerate(zip(theirs, ours, strict=True)):
            differences(*pair, f"{where}[{position}]", precision)
    elif isinstance(theirs, dict) and "says" in theirs:
        same_message(theirs, ours, where)
    elif isinstance(theirs, dict):
        assert theirs.keys() == ours.keys(), f"{where}: {ours!r} for {theirs!r}"
        precision = answers.PRECISION.get(theirs.get("dtype"), precision)
        for name in theirs:
            differences(theirs[name], ours[name], f"{where}.{name}", precision)
    else:
        assert theirs == ours, f"{where}: {ours!r} for {theirs!r}"


def same_message(theirs, ours, where):
    words = ours["words"] or theirs["says"].split(". ")[0].removesuffix(".")
    assert theirs["error"] == ours["error"], f"{where}: {ours} for {theirs}"
    assert words in theirs["says"], f"{where}: PyTorch says {theirs['says']!r}, not {words!r}"
    assert words in ours["says"], f"{where}: {ours['says']!r} lacks {words!r}"
