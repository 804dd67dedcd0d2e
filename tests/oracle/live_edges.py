"""Values of PyTorch's operators at the edges of what they take: tensors without elements, with one
element, without dimensions, and negative dimensions, in every dtype that PyTorch computes with.

make oracle ARGUMENTS="edges"     (`--seed N` repeats a run; `--all` compares all entries,
ENTRIES="addmm,std" these)

The inputs are cut out of the samples of `op_db`. What PyTorch refuses is not compared: jaxgrad
computes more. ACCEPTED lists what PyTorch computes and jaxgrad refuses or gives otherwise.
"""

import random

import pytest
import torch
from helpers import checks
from oracle import live_op_db
from oracle.seed import SEED

SAMPLES = 2  # of a dtype
DIMENSIONS = "dim", "dim0", "dim1", "dims", "axis"
ACCEPTED = {
    "PyTorch does not look at the matrices where there are none": (
        *("cholesky", "linalg.pinv.hermitian", "linalg.matrix_rank.hermitian"),
    ),
    "indices and sizes that do not fit raise, where PyTorch looks at some of them": (
        *("repeat_interleave", "take_along_dim", "nn.functional.pad.circular"),
        *("nn.functional.pad.replicate_negative", "nn.functional.conv_transpose1d"),
        *("nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d"),
        *("nn.functional.scaled_dot_product_attention",),
    ),
    "a dimension that is named twice raises, where PyTorch counts it once": (
        *("masked.prod", "masked.cumprod", "masked.cumsum", "masked.softmax"),
        *("masked.log_softmax", "masked.softmin", "masked.normalize", "masked.median"),
    ),
    "PyTorch gives memory that it has not written": ("median", "nanmedian"),
    "elements that are read twice or not at all have no history": (
        *("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"),
    ),
    "coordinates in half precision are rounded to another pixel": (
        *("nn.functional.grid_sample", "grid_sampler_2d", "grid_sampler_3d"),
    ),
}


def first_elements(tensor):
    return tensor[tuple(slice(0, 1) for _ in tensor.shape)]


def one_element(tensor):
    single = first_elements(tensor)
    return single.reshape(()) if single.numel() == 1 else single


CUTS = {
    "no rows": lambda tensor: tensor[:0] if tensor.ndim else tensor,
    "no columns": lambda tensor: tensor[..., :0] if tensor.ndim else tensor,
    "one element": first_elements,
    "no dimensions": one_element,
    "negative dimensions": lambda tensor: tensor,
}


def mapped(function, value):
    if isinstance(value, torch.Tensor):
        return function(value.detach())
    if isinstance(value, dict):
        return {name: mapped(function, item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mapped(function, item) for item in value)
    return value


def turned(value, ndim):
    """A dimension counted from the other end."""
    if type(value) is int and ndim:
        return value - ndim if value >= 0 else value + ndim
    if type(value) in (list, tuple):
        return type(value)(turned(item, ndim) for item in value)
    return value


def edge_of(sample, cut):
    sample.input, sample.args, sample.kwargs = (
        mapped(CUTS[cut], value) for value in (sample.input, tuple(sample.args), sample.kwargs)
    )
    if cut == "negative dimensions":
        ndim = getattr(sample.input, "ndim", 0)
        named = {
            name: turned(sample.kwargs[name], ndim) for name in DIMENSIONS if name in sample.kwargs
        }
        sample.kwargs = sample.kwargs | named
    return sample


def is_taken(entry, sample):
    """Whether PyTorch computes a sample: what it raises for edges are errors of all kinds."""
    try:
        live_op_db.CHECKS["value"](torch, live_op_db.Call(entry, sample))
    except Exception:
        return False
    return True


def is_accepted(entry):
    differs = any(entry.full_name in names for names in ACCEPTED.values())
    return differs or live_op_db.is_accepted(entry, "value")


@pytest.mark.parametrize("entry", live_op_db.CHOSEN, ids=lambda entry: entry.full_name)
@pytest.mark.filterwarnings("ignore")
def test_edges(entry):
    if is_accepted(entry) or "partial_views" in entry.full_name:
        return
    draw = random.Random(f"{SEED} {entry.full_name}")
    for name in live_op_db.DTYPES:
        dtype = getattr(torch, name)
        if dtype not in entry.supported_dtypes("cpu") or live_op_db.is_accepted(
            entry, "value", dtype
        ):
            continue
        samples = live_op_db.samples_of(entry, dtype, "value")
        for place, sample in draw.sample(samples, min(SAMPLES, len(samples))):
            cut = draw.choice([*CUTS])
            sample = edge_of(sample, cut)
            if not is_taken(entry, sample):
                continue
            try:
                if live_op_db.compare("value", entry, sample):
                    checks.count(f"edges: {cut}")
            except Exception as error:
                error.add_note(f"--seed {SEED}: {dtype}, sample {place}, {cut}")
                raise
