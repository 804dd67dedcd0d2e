"""Wrong calls of every operator: what PyTorch refuses is refused here too, and nothing else is.

make oracle ARGUMENTS=errors     (`--seed N` repeats a run)

A call is that of a sample with one change: a dimension out of range, a string or None in the place
of a tensor, a tensor with one dimension more, an unknown keyword. PyTorch crashes at some tensors
without elements, so there are none.
"""

import random
import warnings

import numpy
import pytest
import torch
from helpers import recorded
from oracle.seed import SEED
from samples import STAND_INS, Dtype, Marker, find, replace

import jaxgrad

CHANGES_OF_A_SAMPLE = 4

# by the operator, the changes after which it is right that one of the two refuses the call alone
DIFFERENT = {
    # special methods answer NotImplemented in PyTorch, and Python raises
    "Tensor.__radd__ Tensor.__rpow__ Tensor.__lshift__ Tensor.__rshift__ Tensor.__rlshift__ "
    "Tensor.__rrshift__ Tensor.__matmul__": {"unknown keyword", "0 is None", "0 is a text"},
    # PyTorch reads memory in an order that the shapes do not say
    "native_batch_norm native_group_norm _weight_norm": {"0 has a dimension more"},
    "rnn_tanh rnn_relu": {"0 has a dimension more", "1 has a dimension more"},
    "lstm_cell gru_cell": {"4 has a dimension more", "5 has a dimension more"},
    # numbers that stand for no mode
    "cosine_embedding_loss": {"4 is 100", "4 is -100"},
    "poisson_nll_loss": {"5 is 100", "5 is -100"},
    "grid_sampler_2d grid_sampler_3d": {"2 is 100", "2 is -100", "3 is 100", "3 is -100"},
    # None is the default
    "trapz cumulative_trapezoid": {"1 is None"},
}
ALLOWED = {name: changes for names, changes in DIFFERENT.items() for name in names.split()}


def one_sample_of_each_operator():
    chosen = {}
    for _, sample in recorded.SAMPLES:
        is_plain = sample.through is None and "ops." not in sample.name
        is_drawn = not any(marker.options.get("form") for marker in sample.markers)
        if is_plain and is_drawn and sample.name not in STAND_INS:
            chosen.setdefault(sample.name, sample)
    return list(chosen.values())


def arguments_of(sample):
    """The arguments, with an array of NumPy for each tensor."""
    supply = iter(sample.draw(sample.fields[0]))
    return replace(
        (list(sample.args), sample.kwargs),
        lambda leaf: next(supply) if isinstance(leaf, Marker) else leaf,
    )


def changes_of(args, kwargs):
    """The names of the changes that a call may get, and the calls."""
    for place, value in enumerate(args):

        def with_value(new, place=place):
            return [*args[:place], new, *args[place + 1 :]], kwargs

        if isinstance(value, numpy.ndarray):
            yield f"{place} is None", *with_value(None)
            yield f"{place} is a text", *with_value("a")
            yield f"{place} has a dimension more", *with_value(value[None])
        elif type(value) is int:
            yield f"{place} is 100", *with_value(100)
            yield f"{place} is -100", *with_value(-100)
            yield f"{place} is a text", *with_value("a")
            yield f"{place} is 1.5", *with_value(1.5)
    yield "unknown keyword", args, kwargs | {"nonsense": 1}


def call(library, name, args, kwargs, **options):
    """The result for arguments with arrays of NumPy in the place of tensors."""

    def fill(leaf):
        if isinstance(leaf, numpy.ndarray):
            return library.tensor(leaf.copy())
        return getattr(library, leaf.name) if isinstance(leaf, Dtype) else leaf

    args, kwargs = replace((args, kwargs), fill)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return find(library, name)(*args, **kwargs, **options)


def outcome(*arguments, **options):
    """The classes of an error; None for a result."""
    try:
        call(*arguments, **options)
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__]
    return None


@pytest.mark.parametrize("sample", one_sample_of_each_operator(), ids=str)
def test_wrong_calls(sample):
    chosen = random.Random(f"{SEED} {sample}")
    calls = list(changes_of(*arguments_of(sample)))
    for change, args, kwargs in chosen.sample(calls, min(CHANGES_OF_A_SAMPLE, len(calls))):
        theirs = outcome(torch, sample.name, args, kwargs)
        ours = outcome(jaxgrad, sample.name, args, kwargs)
        is_same = (theirs is None) == (ours is None)
        is_allowed = change in ALLOWED.get(sample.name, ())
        assert is_same or is_allowed, f"SEED={SEED} {change}: {theirs} {ours}"


# what `out=` gets: tensors of the result's dtypes or another, of its shapes, of another or none
OUTS = {
    "the results' own": ((), None),
    "float16": ((), "float16"),
    "complex128": ((), "complex128"),
    "bool": ((), "bool"),
    "another shape": (7, None),
    "empty": (0, None),
    "in a list": ((), None),
}

# by the operator, what only one of the two takes for `out=`
OTHER_OUTS = {
    # PyTorch refuses them by the kind of the other arguments
    "abs clamp clamp_min clamp_max lerp matrix_power linalg.matrix_power nanmean": {
        "float16",
        "complex128",
    },
    # PyTorch takes such a dtype by `dtype=` alone
    "nansum": {"float16", "complex128", "bool"},
    # PyTorch converts the numbers first
    "lu cumsum cumprod": {"bool", "float16", "complex128"},
    # statistics have no out= here
    "native_batch_norm": set(OUTS),
    # the imaginary parts are 0
    "fft.irfft fft.hfft fft.irfftn fft.hfftn fft.irfft2 fft.hfft2": {"complex128"},
}
ALLOWED_OUTS = {name: outs for names, outs in OTHER_OUTS.items() for name in names.split()}


def takes_out(sample):
    """The arguments of a sample and the results, for an operator that has `out=` in PyTorch."""
    args, kwargs = arguments_of(sample)
    results = call(torch, sample.name, args, kwargs)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    kinds = [(tuple(r.shape), str(r.dtype).removeprefix("torch.")) for r in results]
    own = outs_of(torch, kinds, "the results' own")
    accepts = outcome(torch, sample.name, args, kwargs, out=own) is None
    return (args, kwargs, kinds) if accepts else None


def outs_of(library, kinds, what):
    extent, dtype = OUTS[what]
    outs = [
        library.empty(shape if extent == () else extent, dtype=getattr(library, dtype or kind))
        for shape, kind in kinds
    ]
    if what == "in a list":
        return outs
    return outs[0] if len(outs) == 1 else tuple(outs)


@pytest.mark.parametrize("sample", one_sample_of_each_operator(), ids=str)
def test_outs(sample):
    if sample.name.startswith("Tensor.") or not all(map(is_tensor, results_of(sample))):
        return
    taken = takes_out(sample)
    for what in OUTS if taken is not None else ():
        args, kwargs, kinds = taken
        theirs, ours = (
            outcome(library, sample.name, args, kwargs, out=outs_of(library, kinds, what))
            for library in (torch, jaxgrad)
        )
        is_allowed = what in ALLOWED_OUTS.get(sample.name, ())
        assert (theirs is None) == (ours is None) or is_allowed, f"{what}: {theirs} {ours}"


def results_of(sample):
    results = call(torch, sample.name, *arguments_of(sample))
    return results if isinstance(results, tuple) else [results]


def is_tensor(value):
    return isinstance(value, torch.Tensor)
