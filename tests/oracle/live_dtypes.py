"""complex32, quantized and nested tensors, ranges and conversions of random numbers, against the
installed PyTorch.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import importlib
import operator
import warnings

import numpy as np
import pytest
import torch
from helpers import checks
from oracle.seed import SEED

import jaxgrad

ROUNDS = range(10)
# the first one sets variables of the environment, which no test may
torch.nested.nested_tensor([torch.ones(1)], layout=torch.jagged).sum(1)


def generator(place):
    return np.random.default_rng([SEED, place])


def agree(function, tolerance, where):
    """Compare what a function of the library gives: arrays, tensors or numbers in a list."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = function(torch), function(jaxgrad)
    for expected, result in zip(theirs, ours, strict=True):
        if hasattr(expected, "dtype"):
            assert str(result.dtype) == str(expected.dtype), f"SEED={SEED} {where}"
            result, expected = result.tolist(), expected.tolist()
        np.testing.assert_allclose(
            np.array(result),
            np.array(expected),
            tolerance,
            tolerance,
            err_msg=f"SEED={SEED} {where}",
        )
        checks.count("dtypes")


def torch_of(tensor):
    """The library of a tensor."""
    return torch if isinstance(tensor, torch.Tensor) else jaxgrad


HALF = {
    "arithmetic": lambda z, w, h: [z + w, z * w, z - 2.5, z * (0.5 + 1j), -z, w * h],
    "parts": lambda z, w, h: [z.abs(), z.real, z.imag, z.conj().resolve_conj(), z.sgn()],
    "places": lambda z, w, h: [z.roll(1), z[1:], z.view(2, 3).t(), z.index_select(0, h.int() % 2)],
    "conversion": lambda z, w, h: [z.cfloat(), z.float(), z.half(), z == w, z.isnan()],
    "views": lambda z, w, h: [
        *(z.real.mul_(2), z[1::2].imag.add_(h[1]), z, z.view(h.dtype), z.view(2, 3).t().imag),
        *(torch_of(z).view_as_real(w)[1:3].neg_(), w.conj().imag.copy_(z.real), w),
        *(h.view(z.dtype).mul_(1j), h, w.view(torch_of(z).int32)),
    ],
    "number": lambda z, w, h: [h * 2j, h + (0.25 + 1j), z.sum(dtype=z.cfloat().dtype)],
}


@pytest.mark.parametrize("place", ROUNDS)
@pytest.mark.parametrize("name", HALF)
def test_half_complex(name, place):
    parts = generator(place).normal(size=(5, 6)) * 4

    def run(library):
        z, w = (
            library.tensor(a + 1j * b).to(library.complex32) for a, b in (parts[:2], parts[2:4])
        )
        return HALF[name](z, w, library.tensor(abs(parts[4])).half())

    agree(run, 2e-3, name)


@pytest.mark.parametrize("place", ROUNDS)
@pytest.mark.parametrize("name", ["quint8", "qint8", "qint32"])
def test_quantized(name, place):
    random = generator(place)
    numbers = (random.normal(size=(3, 5)) * random.choice([1, 10, 100])).astype("float32")
    scales, zeros = random.uniform(0.001, 2, 3), random.integers(0, 100, 3)

    def run(library):
        x, dtype = library.tensor(numbers), getattr(library, name)
        q = library.quantize_per_tensor(x, scales[0], int(zeros[0]), dtype)
        c = library.quantize_per_channel(x, library.tensor(scales), library.tensor(zeros), 0, dtype)
        return [q.int_repr(), q.dequantize(), c.int_repr(), c.dequantize(), q[1].int_repr()]

    agree(run, 1e-6, name)


@pytest.mark.parametrize("place", ROUNDS)
def test_quantized_products(place):
    """Dynamic products have float32 results, which show each integer of input and weight."""
    random = generator(place)
    rows, width, count = (int(number) for number in random.integers(1, 9, 3))
    x, w = random.normal(size=(rows, width)), random.normal(size=(count, width))

    def run(library):
        torch.backends.quantized.engine = "fbgemm"
        kernels, single = library.ops.quantized, library.float32
        weight = library.tensor(w, dtype=single)
        packed = kernels.linear_prepack(
            library.quantize_per_tensor(weight, 0.03, 0, library.qint8), library.ones(count)
        )
        numbers = library.tensor(x, dtype=single)
        reduced = kernels.linear_dynamic(numbers, packed, True)
        return [reduced, kernels.linear_relu_dynamic(numbers, packed, False)]

    agree(run, 1e-5, "quantized products")


@pytest.mark.parametrize("place", ROUNDS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "floordiv", "mod"])
def test_arrays_of_numpy(name, place):
    random = generator(place)
    kinds = random.choice(["uint8", "int32", "int64", "float16", "float32", "float64"], 2)
    left, right = (random.integers(1, 5, 4).astype(kind) for kind in kinds)

    def run(library):
        x = library.tensor(left.tolist(), dtype=getattr(library, kinds[0]))
        return [getattr(operator, name)(x, right)]

    agree(run, 2e-3, f"{name} {kinds}")


@pytest.mark.parametrize("place", ROUNDS)
def test_learned_scales(place):
    numbers = generator(place).normal(size=(2, 6)).astype("float32") * 3

    def run(library):
        x = library.tensor(numbers, requires_grad=True)
        scale = library.tensor([0.15, 0.4], requires_grad=True)
        start = library.tensor([2.0, 5.0], requires_grad=True)
        y = library._fake_quantize_learnable_per_channel_affine(x, scale, start, 0, 0, 15, 0.5)
        (y * x.detach().sin()).sum().backward()
        return [y, x.grad, scale.grad, start.grad]

    agree(run, 1e-4, "learned scales")


@pytest.mark.parametrize("place", ROUNDS)
def test_recorded_ranges(place):
    """Two calls with switches, of a whole tensor or of rows, symmetric or not; and the masks."""
    random = generator(place)
    numbers = (random.normal(size=(2, 3, 4)) * 10 ** random.uniform(-2, 2)).astype("float32")
    rows, symmetric = random.integers(0, 2, 2).astype(bool).tolist()
    low, high = [(0, 255), (-128, 127), (-127, 127), (0, 15), (-10, 10)][random.integers(5)]
    observes, rounds = random.integers(0, 2, (2, 2)).tolist()

    def run(library):
        count, inf = (3 if rows else 1), float("inf")
        bounds = library.full((count,), inf), library.full((count,), -inf)
        written = *bounds, library.ones(count), library.zeros(count, dtype=library.int32)
        results = []
        for part, *switches in zip(numbers, observes, rounds, strict=True):
            x = library.tensor(part, requires_grad=True)
            value, mask = library._fused_moving_avg_obs_fq_helper(
                *(x, *map(library.tensor, [[1] if on else [0] for on in switches]), *written),
                *(0.1, low, high, 0, rows, symmetric),
            )
            (value * x.detach().sin()).sum().backward()
            results += [value.detach(), mask, x.grad]
        return [*results, *written]

    agree(run, 1e-5, f"recorded ranges {low} {high} {rows} {symmetric} {observes} {rounds}")


NESTED = {
    "reductions": lambda F, x: [x.sum(1), x.mean(1), x.amax(1), x.sum(-1).values()],
    "softmax": lambda F, x: [x.softmax(1).values(), x.softmax(-1).values()],
    "padding": lambda F, x: [x.to_padded_tensor(-1.0), (x * x).to_padded_tensor(0.0)],
    "layers": lambda F, x: [F.layer_norm(x, (4,)).values(), F.gelu(x).values()],
    "attention": lambda F, x: [attention(F, x).values()],
}


def attention(F, x):
    heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
    result = F.scaled_dot_product_attention(heads, heads * 0.5, heads + 1)
    return result.transpose(1, 2).flatten(-2)


@pytest.mark.parametrize("place", ROUNDS)
@pytest.mark.parametrize("name", NESTED)
def test_nested(name, place):
    random = generator(place)
    parts = [random.normal(size=(n, 4)).astype("float32") for n in random.integers(1, 6, 3)]

    def run(library):
        leaves = [library.tensor(part, requires_grad=True) for part in parts]
        x = library.nested.as_nested_tensor(leaves, layout=library.jagged)
        results = NESTED[name](library.nn.functional, x)
        # of reductions PyTorch has no derivative, and a wrong one of softmax along the lengths
        if name in ("reductions", "softmax"):
            return [result.detach() for result in results]
        sum((result * result).sum() for result in results).backward()
        return [*(result.detach() for result in results), *(leaf.grad for leaf in leaves)]

    agree(run, 1e-4, name)


@pytest.mark.parametrize("place", ROUNDS)
def test_ranges_and_conversions(place):
    random = generator(place)
    start, end = random.uniform(-9, 9, 2)
    steps, numbers = int(random.integers(1, 7)), random.normal(size=20) * 300

    def run(library):
        results = [library.linspace(start, end, steps, dtype=library.int64)]
        results += [library.logspace(start / 9, end / 9, steps, base=3, dtype=library.float64)]
        results += [library.logspace(abs(start / 3), 3, steps, dtype=library.int32)]
        narrow = library.tensor(numbers).to(library.int8)
        names = ("float8_e4m3fn", "float8_e5m2", "uint16", "complex64", "bfloat16", "bool")
        results += [narrow.to(getattr(library, name)).to(library.float32) for name in names]
        return [*results, narrow.abs(), library.ldexp(library.ones(20), narrow.to(library.int8))]

    agree(run, 1e-6, "ranges")


OBSERVERS = {
    "MinMaxObserver": ("per_tensor_affine", "per_tensor_symmetric"),
    "MovingAverageMinMaxObserver": ("per_tensor_affine", "per_tensor_symmetric"),
    "PerChannelMinMaxObserver": ("per_channel_affine", "per_channel_affine_float_qparams"),
    "MovingAveragePerChannelMinMaxObserver": ("per_channel_affine", "per_channel_symmetric"),
}


@pytest.mark.parametrize("name", OBSERVERS)
def test_observers(name):
    """Ranges, scales and zero points; what `FakeQuantize` gives, and its gradient."""
    random = np.random.default_rng([SEED, *name.encode()])
    for number in range(8):
        inputs = (random.standard_normal((3, 2, 3, 2)) * 3).astype("float32")
        scheme, dtype = OBSERVERS[name][number % 2], ("qint8", "quint8")[number // 2 % 2]
        limits = {"quant_min": 0, "quant_max": int(random.integers(3, 100))} if number > 3 else {}

        def outcomes(library, inputs=inputs, scheme=scheme, dtype=dtype, limits=limits):
            module = importlib.import_module(f"{library.__name__}.ao.quantization")
            options = {"dtype": getattr(library, dtype), "qscheme": getattr(library, scheme)}
            rounded = module.FakeQuantize(getattr(module, name), **limits, **options)
            x = library.tensor(inputs[2], requires_grad=True)
            for values in inputs[:2]:
                rounded(library.tensor(values))
            y = rounded(x)
            (y * y).sum().backward()
            source = rounded.activation_post_process
            parts = source.min_val, source.max_val, rounded.scale, rounded.zero_point, y, x.grad
            return [part.detach().numpy() for part in parts]

        where = f"SEED={SEED} {name} {number}"
        for ours, theirs in zip(outcomes(jaxgrad), outcomes(torch), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
            np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6, err_msg=where)
            checks.count("dtypes")


MOVES = {
    "bits8": ("t", "contiguous", "flip", "roll", "part", "joined", "repeated", "taken"),
    "bits16": ("t", "contiguous", "flip", "roll", "part", "joined", "repeated", "taken"),
    "float4_e2m1fn_x2": ("t", "contiguous", "flip", "roll", "part", "joined", "repeated", "taken"),
    "uint4": ("t", "flip", "roll", "part", "joined", "taken"),
    "int3": ("t", "flip", "roll", "part", "joined", "taken"),
}


@pytest.mark.parametrize("place", ROUNDS)
@pytest.mark.parametrize("name", MOVES)
def test_bits(name, place):
    numbers = generator(place).integers(0, 256, (4, 6)).astype(np.uint8)
    where = int(generator(place).integers(0, 4))

    def moved(library):
        bits = library.from_numpy(numbers.copy()).view(getattr(library, name))
        results = {
            "t": lambda: bits.t(),
            "contiguous": lambda: bits.t().contiguous().clone(),
            "flip": lambda: bits.flip(0),
            "roll": lambda: bits.roll(where, 0),
            "part": lambda: bits[where:, ::2],
            "joined": lambda: library.cat([bits[where:], bits[:where], bits]),
            "repeated": lambda: bits.repeat(2, 1),
            "taken": lambda: bits.index_select(0, library.tensor([where, 0])),
        }
        moves = [results[one]() for one in MOVES[name]]
        kind = library.uint8 if moves[0].element_size() == 1 else library.int16
        shown = [one.view(kind) for one in moves]
        return shown + [library.tensor([*one.stride()]) for one in moves]

    agree(moved, 0, f"{name} {place}")
