"""Calls of old programs, and with arguments of wrong types, a call a line: values, the kinds of
errors, and the beginnings of warnings are PyTorch's.

make oracle ARGUMENTS=old_calls

`old_calls.txt` has the calls, in which t is the library and the other names are those of `SETUP`.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import jaxgrad

CALLS = (Path(__file__).parent / "old_calls.txt").read_text().splitlines()
SETUP = """
F = t.nn.functional
a, b, x = t.ones(2, 2), t.full((2, 2), 2.0), t.arange(4.0).reshape(2, 2)
v, w, i = t.ones(2), t.arange(2.0), t.tensor([0, 1])
B, big, o = t.ones(3, 2, 2), t.arange(24.0), t.empty
"""

# docs/conventions.md, or the comment, says why
BETTER_HERE = {
    *("t.symeig(x)", "t.eig(x)", "x.eig()", "x.symeig()"),
    # these calls are right here
    *('t.Tensor([1],device="meta")', "t.zeros(2,dtype=np.float32)"),
    # a type without a GPU: the RuntimeError of every call for one; the type itself has no device
    *("t.cuda.FloatTensor(2)", "t.cuda.LongTensor([1])", 'v.type("torch.cuda.FloatTensor")'),
    # NumPy has at most 64 dimensions
    *("t.ones([1]*65)", "t.ones(1).expand([1]*65)", "t.ones(1).reshape([1]*65)"),
    *("t.zeros([1]*65).ndim", "t.ones([1]*65).sum()"),
    # the error comes before the first file is read
    *("t.serialization.add_safe_globals([1])", 't.serialization.add_safe_globals(["a"])'),
    # XLA has no such options
    't.compile(lambda x: x, options={"foo":1})',
    't.compile(lambda x: x, options={"max_autotune":"yes"})',
    't.compile(lambda x: x, options={"triton.cudagraphs":3})',
    # an error of a clearer kind, and at once
    *("t.compile(lambda x: x, options=3)", "t.compile(lambda x: x, backend=3)"),
    "t.UntypedStorage(2.5)",
}
# those that warn of other things
WARN_OTHERWISE = {
    # PyTorch's import of its compiler, once
    't.compile(lambda x: x, options={"max_autotune":True})',
    # text is no dtype: only the error differs
    't.tensor(v,dtype="float32")',
    'v["a"]',
    # once for a process, by a flag of Python
    *(call for call in CALLS if "Storage" in call or "storage" in call),
}


def shown(value):
    """A result as numbers and text that both libraries share."""
    if isinstance(value, torch.Tensor | jaxgrad.Tensor):
        facts = str(value.dtype), tuple(value.shape), value.requires_grad, str(value.device)
        if value.device.type == "meta":
            return facts
        return *facts, [complex(number) for number in value.detach().flatten().tolist()]
    if isinstance(value, list | tuple):
        return [shown(part) for part in value]
    if callable(value) or "object at" in repr(value):
        return ""
    return str(value).replace("jaxgrad.frontend.storages", "torch.storage")


def outcome(library, call):
    names = {"t": library, "np": np}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library.manual_seed(0)
        library.set_warn_always(True)
        exec(SETUP, names)
        try:
            result, error = shown(eval(call, names)), None
        except Exception as raised:
            result, error = None, raised
        finally:
            library.set_warn_always(False)
            library.set_default_dtype(library.float32)
            library.serialization.clear_safe_globals()
    return result, error, {(warning.category, str(warning.message)[:25]) for warning in caught}


def same(ours, theirs):
    if isinstance(theirs, str) or not isinstance(theirs, list | tuple):
        return ours == theirs or (isinstance(theirs, complex) and abs(ours - theirs) < 1e-4)
    return len(ours) == len(theirs) and all(map(same, ours, theirs))


@pytest.mark.parametrize("call", [call for call in CALLS if call not in BETTER_HERE])
def test_old_call(call):
    theirs, expected, wanted = outcome(torch, call)
    ours, actual, warned = outcome(jaxgrad, call)
    if expected is not None:
        bases = type(expected).__mro__
        kind = next(base for base in bases if base.__module__ in ("builtins", "_pickle"))
        assert isinstance(actual, kind), (expected, actual)
    else:
        assert actual is None, actual
        assert same(ours, theirs), (ours, theirs)
    if call not in WARN_OTHERWISE:
        assert warned == wanted
