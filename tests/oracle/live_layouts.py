"""Strides, extents of 1 included, and memory formats against the installed PyTorch.

Images and volumes in random orders of dimensions, most of them channels last and with extents of 1;
samples of PyTorch's own table in random layouts; and all functions that have `memory_format`.

make oracle ARGUMENTS="layouts"     (`--seed N` repeats a run; `--all` compares all entries)
"""

import itertools
import random
import warnings

import numpy as np
import pytest
import torch
from helpers import checks
from oracle import op_db
from oracle.seed import SEED, drawn

import jaxgrad

CALLS = 4
ONE_OF = 24  # entries of PyTorch's table

# of an image `x` or a volume, kernels `k` and `kt`, and a row `m` of its channels
OF_BOTH = """
F.relu(x)
F.gelu(x)
F.logsigmoid(x)
F.hardtanh(x)
F.prelu(x, m)
F.rrelu(x)
F.dropout(x)
F.softmax(x, 1)
F.batch_norm(x, None, None, training=True)
F.group_norm(x, 1)
F.layer_norm(x, x.shape[1:])
F.interpolate(x, scale_factor=2)
F.pad(x, (1, 1))
F.pad(x, (0, 0, 1, 0))
F.binary_cross_entropy_with_logits(x, x, reduction="none")
F.smooth_l1_loss(x, x, reduction="none")
x + x
x + 1
x > 0
x % 2
x.fmod(2)
x ** 2
x * m.view(-1, *[1] * (x.ndim - 2))
m.view(-1, *[1] * (x.ndim - 2)) * x
torch.lerp(x, x, 0.5)
torch.where(x > 0, x, 0)
torch.nan_to_num(x)
x.masked_fill(x > 0, 0)
x.clamp(0)
x.to(torch.float64)
x.to("meta")
x.clone()
x.contiguous()
torch.zeros_like(x)
torch.cat([x, x], 1)
torch.stack([x, x], 1)
x.sum(1, keepdim=True)
x.mean((2, 3), keepdim=True)
x.flip(2)
x.roll(1, 2)
x.cumsum(1)
x.sort(1).values
x[:, [0]]
x.index_select(1, torch.tensor([0]))
x.gather(1, x.argsort(1))
x.repeat_interleave(2, 1)
x.flatten(1)
torch.kron(x, x)
torch.complex(x, x)
x @ x.mT
""".strip().split("\n")

OF_IMAGES = """
F.conv2d(x, k)
F.conv2d(x, k, padding=1)
F.conv_transpose2d(x, kt)
F.max_pool2d(x, 2, 1, 1)
F.avg_pool2d(x, 2, 1, 1)
F.adaptive_avg_pool2d(x, 1)
F.adaptive_avg_pool2d(x, (1, 2))
F.adaptive_max_pool2d(x, 2)
F.instance_norm(torch.cat([x, x], 2))
F.local_response_norm(x, 2)
F.interpolate(x, scale_factor=2, mode="bilinear")
F.interpolate(x, size=(1, 3), mode="area")
F.pad(x, (1, 1, 1, 1), "replicate")
F.pixel_shuffle(torch.cat([x] * 4, 1), 2)
F.channel_shuffle(x, 1)
F.dropout2d(x)
F.unfold(x, 1)
F.max_unpool2d(*F.max_pool2d(x, 1, return_indices=True), 1)
x.rot90(1, (2, 3))
""".strip().split("\n")

OF_VOLUMES = """
F.conv3d(x, k)
F.conv_transpose3d(x, kt)
F.max_pool3d(x, 1)
F.avg_pool3d(x, 1)
F.adaptive_avg_pool3d(x, 1)
F.instance_norm(torch.cat([x, x], 2))
F.interpolate(x, scale_factor=2, mode="trilinear")
F.pad(x, (1,) * 6, "replicate")
F.dropout3d(x)
""".strip().split("\n")


def strides_of(draw, shape):
    """Strides without gaps, in a random order of the dimensions, often channels last."""
    rank = len(shape)
    last = [0, *range(2, rank), 1][:rank]
    orders = [*range(rank)], last, last, last, draw.sample(range(rank), rank)
    order = draw.choice(orders if rank > 1 else orders[:1])
    strides, step = [0] * rank, 1
    for dim in order[::-1]:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def operands_of(draw, dimensions):
    sizes = [draw.choice([1, 1, 3, 4]) for _ in range(dimensions)]
    shape = draw.randint(1, 2), draw.choice([1, 3]), *sizes
    ones = [1] * dimensions
    shapes = {
        "x": shape,
        "k": (2, shape[1], *ones),
        "kt": (shape[1], 2, *ones[1:], 2),
        "m": (shape[1],),
    }
    return {name: (size, strides_of(draw, size)) for name, size in shapes.items()}


def compare(expression, draw, dimensions):
    layouts = operands_of(draw, dimensions)
    numbers = np.random.default_rng(SEED)
    arrays = {
        name: numbers.uniform(0.1, 0.9, size).astype("f4") for name, (size, _) in layouts.items()
    }
    results = []
    for module in (torch, jaxgrad):
        scope = {"torch": module, "F": module.nn.functional}
        for name, (size, strides) in layouts.items():
            tensor = module.empty_strided(size, strides)
            scope[name] = tensor.copy_(module.from_numpy(arrays[name].copy()))
        try:
            result = eval(expression, scope)
            results.append((tuple(result.shape), tuple(result.stride())))
        except (RuntimeError, ValueError) as error:  # a window that does not fit
            results.append(type(error).__name__)
    if "dropout" in expression:  # of extents of 1 they follow from how zeros are put in
        results = [
            [(n, s if n > 1 else None) for n, s in zip(*result, strict=True)] for result in results
        ]
    assert results[1] == results[0], f"SEED={SEED} {layouts}"
    checks.count("strides of images and volumes")


@pytest.mark.parametrize(
    ("expression", "dimensions"),
    [
        *itertools.product([*OF_BOTH, *OF_IMAGES], [2]),
        *itertools.product([*OF_BOTH, *OF_VOLUMES], [3]),
    ],
)
def test_strides_of_images_and_volumes(expression, dimensions):
    draw = random.Random(f"{SEED} {expression} {dimensions}")
    for _ in range(CALLS):
        compare(expression, draw, dimensions)


# functions of a tensor, a format as a keyword, and the module
FORMATS = {
    **{
        name: lambda t, x, f, name=name: getattr(x, name)(**f)
        for name in ("clone", "contiguous", "cpu", "double", "half", "int", "bool", "cfloat")
    },
    **{
        name: lambda t, x, f, name=name: getattr(t, name)(x, dtype=t.float64, **f)
        for name in ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like")
    },
    "full_like": lambda t, x, f: t.full_like(x, 3, **f),
    "randint_like": lambda t, x, f: t.randint_like(x, 3, **f),
    "to": lambda t, x, f: x.to(**f),
    "to dtype": lambda t, x, f: x.to(t.float64, **f),
    "to copy": lambda t, x, f: x.to(t.float32, copy=True, **f),
    "to device": lambda t, x, f: x.to("cpu", t.int32, **f),
    "to meta": lambda t, x, f: x.to("meta", **f),
    "to other": lambda t, x, f: x.to(t.zeros(1, dtype=t.float64), **f),
    "_to_copy": lambda t, x, f: t.ops.aten._to_copy(x, **f),
    "clone.out": lambda t, x, f: t.ops.aten.clone.out(x, out=t.empty(0), **f),
    "_foreach_clone": lambda t, x, f: t._foreach_clone([x], **f)[0],
    "empty": lambda t, x, f: t.empty(x.shape, **f),
    "empty out": lambda t, x, f: t.empty(x.shape, out=t.empty(0), **f),
    "resize_": lambda t, x, f: x.resize_([size + 1 for size in x.shape], **f),
    "resize_ nothing": lambda t, x, f: t.zeros(0).resize_(x.shape, **f),
    "resize_as_": lambda t, x, f: t.zeros(0).resize_as_(x, **f),
    "aten.resize": lambda t, x, f: t.ops.aten.resize(x, [s + 1 for s in x.shape], **f),
    "is_contiguous": lambda t, x, f: x.is_contiguous(**f),
    "dim_order": lambda t, x, f: x.dim_order(ambiguity_check=[*f.values()] or True),
    "module": lambda t, x, f: with_parameter(t, x).to(t.float64, **f).weight,
}
SHAPES = (
    *((), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1)),
    *((2, 3, 4, 5, 6), (1, 2, 3, 4, 2), (2, 1, 3, 4, 2), (2, 3, 1, 1, 1), (2,) * 6),
)


def with_parameter(t, x):
    module = t.nn.Module()
    module.weight = t.nn.Parameter(x.detach())
    return module


def laid_out(t, shape, kind, draw):
    if kind == "expanded":
        return t.ones((1,) * len(shape)).expand(shape)
    if kind == "gaps":
        return t.ones((*shape, 2))[..., 0]
    return t.empty_strided(shape, strides_of(draw, shape)).fill_(1)


def outcome(t, name, shape, kind, chosen, seed):
    options = {} if chosen is None else {"memory_format": getattr(t, chosen)}
    try:
        result = FORMATS[name](t, laid_out(t, shape, kind, random.Random(seed)), options)
    except Exception as error:
        return type(error).__name__
    if isinstance(result, bool | tuple):
        return result
    return tuple(result.shape), result.stride(), str(result.dtype), result.device.type


@pytest.mark.parametrize("name", FORMATS)
def test_memory_formats(name):
    draw = random.Random(f"{SEED} {name}")
    formats = "contiguous_format", "preserve_format", "channels_last", "channels_last_3d", None
    for shape, chosen in itertools.product(SHAPES, formats):
        kind, seed = draw.choice(["dense", "dense", "gaps", "expanded"]), draw.random()
        call = name, shape, kind, chosen, seed
        assert outcome(jaxgrad, *call) == outcome(torch, *call), (SEED, call)
        checks.count("memory formats")


# their results without elements, or with one element in a row, are laid out otherwise
OTHERWISE = frozenset(("cholesky", "nn.functional.rms_norm"))
DTYPES = torch.float32, torch.int64
ENTRIES = {  # those with samples of one of these
    entry.full_name: entry
    for entry in op_db.operators()
    if not entry.supported_dtypes("cpu").isdisjoint(DTYPES)
}


def relaid(draw, value):
    """A value with tensors in random layouts, for both libraries."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise NotImplementedError
        strides = strides_of(draw, value.shape) if value.numel() else value.stride()
        dtype = getattr(jaxgrad, str(value.dtype).removeprefix("torch."))
        theirs = torch.empty_strided(value.shape, strides, dtype=value.dtype).copy_(value)
        ours = jaxgrad.empty_strided(tuple(value.shape), strides, dtype=dtype)
        return theirs, ours.copy_(jaxgrad.from_numpy(op_db.numbers(value).copy()).to(dtype))
    if type(value) in (list, tuple):
        pairs = [relaid(draw, item) for item in value]
        return tuple(type(value)(pair[i] for pair in pairs) for i in range(2))
    if isinstance(value, dict):
        pairs = {name: relaid(draw, item) for name, item in value.items()}
        return tuple({name: pair[i] for name, pair in pairs.items()} for i in range(2))
    return value, op_db.converted(value)


def lengths(tensors):
    """Shapes and strides; those of extents of 1 and of no elements reach nothing."""
    return [
        (
            tuple(t.shape),
            [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1 and t.numel()],
        )
        for t in tensors
    ]


@pytest.mark.parametrize("name", drawn(sorted(ENTRIES.keys() - OTHERWISE), ONE_OF))
def test_strides_of_operators(name):
    entry, draw = ENTRIES[name], random.Random(f"{SEED} {name}")
    dtype = next(dtype for dtype in DTYPES if dtype in entry.supported_dtypes("cpu"))
    samples = list(entry.sample_inputs("cpu", dtype, requires_grad=False))
    function = op_db.function_of(entry.op)
    for sample in draw.sample(samples, min(CALLS, len(samples))):
        results = []
        try:
            calls = relaid(draw, [sample.input, list(sample.args), dict(sample.kwargs)])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for run, (first, args, kwargs) in zip((entry.op, function), calls, strict=True):
                    results.append(run(first, *args, **kwargs))
        except (NotImplementedError, RuntimeError):
            continue  # errors are compared in live_op_db.py
        kinds = zip(results, (torch.Tensor, jaxgrad.Tensor), (torch, jaxgrad), strict=True)
        expected, actual = (
            lengths([t for t in op_db.tensors(result, kind) if t.layout == library.strided])
            for result, kind, library in kinds
        )
        assert actual == expected, f"SEED={SEED} {calls[0]}"
        checks.count("strides of operators")
