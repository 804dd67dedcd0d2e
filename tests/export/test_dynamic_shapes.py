"""Sizes that vary: their ranges, and what depends on them."""

import math
import sys

import pytest
from helpers.exported_models import MODELS

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import fft, nn
from jaxgrad.export import Dim, ShapesCollection, dims, export


def module_of(forward):
    return type("Model", (nn.Module,), {"forward": lambda self, *args: forward(*args)})()


def program_of(forward, *args, shapes):
    return export(module_of(forward), args, dynamic_shapes=((shapes,),))


def test_dims():
    # as torch 2.13 shows them
    batch = Dim("batch", min=2, max=64)
    assert repr(Dim("b")) == "Dim('b', min=0)" and repr(2 * batch) == "2*batch"
    assert repr(batch) == "Dim('batch', max=64)" and repr(2 * batch + 3) == "2*batch + 3"
    assert (2 * batch + 1).min == 5 and repr(Dim.AUTO) == "DimHint(AUTO)"
    assert repr(Dim.AUTO(min=2, max=3)) == "DimHint(AUTO, min=2, max=3)"
    assert [dim.__name__ for dim in dims("h", "w")] == ["h", "w"]
    with pytest.raises(AssertionError, match="inconsistent min=5, max=3"):
        Dim("b", min=5, max=3)
    with pytest.raises(AssertionError, match="valid identifier"):  # as torch 2.13
        Dim("a b")


def test_a_range_and_what_is_outside_of_it():
    program = program_of(lambda x: x.sum(0), torch.ones(4, 3), shapes={0: Dim("n", min=2, max=8)})
    module = program.module()
    assert str(program.range_constraints) == "{'n': VR[2, 8]}"
    assert module(torch.ones(8, 3)).tolist() == [8.0] * 3
    for shape, message in (
        ((9, 3), r"Guard failed: args_0.size\(\)\[0\] <= 8, and it is 9: .* n in VR\[2, 8\]"),
        ((1, 3), r"Guard failed: args_0.size\(\)\[0\] >= 2, and it is 1"),
        ((4, 2), r"Guard failed: args_0.size\(\)\[1\] == 3, and it is 2"),
        ((4,), r"Guard failed: args_0.dim\(\) == 2, and it is 1"),
    ):
        with pytest.raises(AssertionError, match=message):
            module(torch.ones(*shape))


def test_dimensions_that_depend_on_each_other():
    n = Dim("n")
    model = module_of(lambda x, y: x.repeat_interleave(2) + y)
    module = export(model, (torch.ones(3), torch.ones(6)), dynamic_shapes=(({0: n}, {0: 2 * n}),))
    module = module.module()
    assert module(torch.ones(5), torch.ones(10)).shape == (10,)
    with pytest.raises(AssertionError, match=r"== 2\*n, and it is 8, while n is 5"):
        module(torch.ones(5), torch.ones(8))


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda x: x if x.shape[0] > 5 else x + 1, r"whether n > 5, at .*test_dynamic_shapes.py:"),
        (lambda x: x if x.shape[0] == 7 else x + 1, "whether n == 7"),
        (lambda x: x if x.shape[0] % 2 else x + 1, r"whether mod\(n, 2\) == 0"),
        (lambda x: x / len(x), "needs an int there .len.. gives an int"),
    ],
)
def test_code_that_goes_one_way(forward, message):
    with pytest.raises(RuntimeError, match=message):
        program_of(forward, torch.ones(4), shapes={0: Dim("n")})
    with pytest.raises(RuntimeError, match="Constraints violated"):
        program_of(forward, torch.ones(4), shapes={0: Dim.DYNAMIC})
    program = program_of(forward, torch.ones(4), shapes={0: Dim.AUTO})
    assert program.module()(torch.ones(4)).tolist() == forward(torch.ones(4)).tolist()


def test_automatic_dimensions():
    # torch 2.13: the first is VR[2, 5] there too
    program = program_of(
        lambda x: x if x.shape[0] > 5 else x + 1, torch.ones(4), shapes={0: Dim.AUTO}
    )
    assert str(program.range_constraints) == "{'s0': VR[2, 5]}"
    model = module_of(lambda x, y: x @ y)
    shapes = (({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO}),)
    module = export(model, (torch.ones(2, 3), torch.ones(3, 4)), dynamic_shapes=shapes).module()
    assert module(torch.ones(5, 6), torch.ones(6, 7)).shape == (5, 7)


def test_automatic_dimensions_that_a_table_bounds():
    table = torch.arange(6.0)
    program = program_of(lambda x: x + table[: x.shape[0]], torch.ones(4), shapes={0: Dim.AUTO})
    assert str(program.range_constraints) == "{'s0': VR[2, 6]}"  # torch 2.13 has this range
    assert program.module()(torch.ones(3)).tolist() == [1, 2, 3]
    with pytest.raises(AssertionError, match="<= 6, and it is 7"):
        program.module()(torch.ones(7))


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: F.pad(x, (0, (2 - x.shape[0] % 2) % 2)).view(x.shape[0] // 2, 2).sum(1),
        lambda x: x.view(-1, 2).sum(1),
        lambda x: x[::2] + x[1::2] if x.shape[0] % 2 == 0 else x,
    ],
)
def test_automatic_dimensions_that_are_multiples(forward):
    module = program_of(forward, torch.ones(4), shapes={0: Dim.AUTO}).module()
    assert module(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).tolist() == [3, 7, 11]
    with pytest.raises(AssertionError, match=r"size\(\)\[0\] == 2\*s0, and it is 5"):
        module(torch.ones(5))


def test_sizes_as_numbers_and_results():
    module = program_of(
        lambda x: (x / x.shape[0], x.shape[0] * 2, torch.arange(x.shape[0]), x[1:-1], x[-1]),
        torch.ones(4),
        shapes={0: Dim("n", min=3)},
    ).module()
    x = torch.tensor([5.0, 10.0, 15.0, 20.0, 25.0])
    mean, double, counts, inner, last = module(x)
    assert mean.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0] and double == 10
    assert counts.tolist() == [0, 1, 2, 3, 4] and inner.tolist() == [10.0, 15.0, 20.0]
    assert last.item() == 25


def test_a_size_that_may_be_one():
    # torch 2.13 gives a result without dimensions for 1; a program has one number of dimensions
    program = program_of(lambda x: x.squeeze(0) * 2, torch.ones(4), shapes={0: Dim("n")})
    assert str(program.range_constraints) == "{'n': VR[2, int_oo]}"
    with pytest.raises(AssertionError, match=r"size\(\)\[0\] >= 2, and it is 1"):
        program.module()(torch.ones(1))
    with pytest.raises(RuntimeError, match="whether n >= 2"):
        size = {0: Dim("n", max=8)}
        program_of(lambda x: x.squeeze(0) if x.shape[0] < 9 else x, torch.ones(1), shapes=size)


def test_shapes_that_do_not_fit():
    model, x = nn.Linear(2, 1), torch.ones(3, 2)
    for shapes, message in (
        ({"y": {0: Dim("n")}}, r"top-level keys must be the arg names \['input'\]"),
        ({"input": {5: Dim("n")}}, "has 2 dimensions, and none of number 5"),
        ({"input": (None,)}, "to have the same length"),
        ({"input": {0: Dim("n", max=2)}}, r"Constraints violated \(n\)"),
        ({"input": {0: Dim("n"), 1: Dim("n")}}, r"Constraints violated \(n\)"),
        ({"input": {1: Dim("n")}}, "n"),
    ):
        with pytest.raises(RuntimeError, match=message):
            export(model, (x,), dynamic_shapes=shapes)
    collection = ShapesCollection()
    collection[x] = {0: Dim("n")}
    program = export(model, (x,), dynamic_shapes=collection)
    assert [*program.range_constraints] == ["n"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_for_any_batch(name):
    make, arguments = MODELS[name]
    torch.manual_seed(0)
    model, example = make().eval(), arguments(3)
    shapes = tuple({0: Dim("batch")} for _ in example)
    module = export(model, example, dynamic_shapes=shapes).module()
    for count in (1, 4):
        args = arguments(count)
        results = module(*args)
        torch.testing.assert_close(results, model(*args), rtol=1e-4, atol=1e-5)
    loss(results).backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    loss(model(*args)).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-3, atol=1e-4)


def loss(results):
    results = results if isinstance(results, tuple) else (results,)
    return sum(part.square().mean() for part in results if part.is_floating_point())


IMAGES = [
    lambda x: F.max_pool2d(x, 2),
    lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    lambda x: F.max_pool2d(x, 2, 1, 1, dilation=2),
    lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
    lambda x: F.avg_pool2d(x, 3, 2, 1),
    lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    lambda x: F.adaptive_avg_pool2d(F.max_pool2d(x, 2), 1),
    lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    lambda x: F.adaptive_max_pool2d(x, (3, 2)),
    lambda x: F.adaptive_max_pool2d(x, 1, return_indices=True)[1],
    lambda x: F.interpolate(x, scale_factor=2.0),
    lambda x: F.interpolate(x, scale_factor=0.5, mode="nearest-exact"),
    lambda x: F.interpolate(F.max_pool2d(x, 2), size=x.shape[2:], mode="bilinear"),
    lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic", align_corners=True),
    lambda x: F.unfold(x, 3, padding=1),
]


@pytest.mark.slow
def test_height_and_width_vary():
    class All(nn.Module):
        def forward(self, x):
            return [function(x) for function in IMAGES]

    torch.manual_seed(0)
    height, width = Dim("height", min=4), Dim("width", min=4)
    shapes = ({0: Dim("n"), 2: height, 3: width},)
    program = export(All(), (torch.randn(2, 1, 8, 8),), dynamic_shapes=shapes)
    for size in ((1, 1, 7, 12), (3, 1, 12, 5)):
        x = torch.randn(size, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        results, expected = program.module()(x), All()(y)
        for number, pair in enumerate(zip(results, expected, strict=True)):
            torch.testing.assert_close(*pair, msg=lambda text, n=number: f"{n}: {text}")
        for tensors in (results, expected):
            sum((t * t).sum() for t in tensors if t.is_floating_point()).backward()
        torch.testing.assert_close(x.grad, y.grad)


def test_bags_of_any_number():
    torch.manual_seed(0)
    layer = nn.EmbeddingBag(10, 3, mode="mean", padding_idx=0)
    indices = torch.tensor([[1, 2], [0, 3], [4, 4]])
    program = export(layer, (indices,), dynamic_shapes={"input": {0: Dim("n")}})
    weight = layer.weight
    expected = torch.stack([(weight[1] + weight[2]) / 2, weight[3]])
    torch.testing.assert_close(program.module()(indices[:2]), expected)


def test_layers_of_functions_have_the_names_of_their_inputs():
    program = export(
        nn.MaxPool2d(2), (torch.ones(1, 1, 4, 4),), dynamic_shapes={"input": {0: Dim("n")}}
    )
    assert program.module()(torch.ones(3, 1, 4, 4)).shape == (3, 1, 2, 2)
    assert program.graph_signature.user_inputs == ("input",)


TABLE = torch.arange(40.0)


def spectrum(x, mode):
    return torch.stft(x, 2, 1, window=torch.ones(2), return_complex=True, pad_mode=mode)[1].real


def rows_of_grid(n, align_corners):
    return F.affine_grid(torch.eye(2, 3)[None], (1, 1, n, 2), align_corners)[0, :, 0, 1]


# by what is computed of x and its size n, the numbers for n = 3 and n = 4 and x = 1, 2, ..., n
USES_OF_SIZES = {
    "tensor(n)": (lambda x, n: torch.tensor(n), 3, 4),
    "tensor([0, n - 1])": (lambda x, n: torch.tensor([0, n - 1]), [0, 2], [0, 3]),
    "tensor(n, dtype)": (lambda x, n: torch.tensor(n, dtype=torch.float32).sqrt() ** 2, 3.0, 4.0),
    "full": (lambda x, n: torch.full((2,), n), [3, 3], [4, 4]),
    "scalar_tensor": (lambda x, n: torch.scalar_tensor(n), 3.0, 4.0),
    "eye": (lambda x, n: torch.eye(n).sum(0), [1.0] * 3, [1.0] * 4),
    "repeat_interleave": (lambda x, n: x[:1].repeat_interleave(n), [1.0] * 3, [1.0] * 4),
    "an index": (lambda x, n: x[n - 1], 3.0, 4.0),
    "indices": (lambda x, n: torch.stack([x[n - 2], x[-1]]), [2.0, 3.0], [3.0, 4.0]),
    "a write": (lambda x, n: x.clone().index_fill_(0, torch.tensor([n - 1]), 0)[-1], 0.0, 0.0),
    "rows of a constant": (lambda x, n: TABLE[:n] + x, [1.0, 3.0, 5.0], [1.0, 3.0, 5.0, 7.0]),
    "pad": (lambda x, n: F.pad(x, (0, 5 - n)), [1.0, 2.0, 3.0, 0, 0], [1.0, 2.0, 3.0, 4.0, 0]),
    "circular": (
        lambda x, n: F.pad(x[None], (1, 1), mode="circular")[0],
        [3.0, 1.0, 2.0, 3.0, 1.0],
        [4.0, 1.0, 2.0, 3.0, 4.0, 1.0],
    ),
    "searchsorted": (lambda x, n: torch.searchsorted(x, torch.tensor([9.0])), [3], [4]),
    "diff": (lambda x, n: x.diff(), [1.0] * 2, [1.0] * 3),
    "sizes on the left": (lambda x, n: n - x, [2.0, 1.0, 0.0], [3.0, 2.0, 1.0, 0.0]),
    "sym_max": (lambda x, n: x[:1] * torch.sym_max(n, 2), [3.0], [4.0]),
    "sym_min": (lambda x, n: x[:1] * torch.sym_min(n, 3), [3.0], [3.0]),
    "sym_float": (lambda x, n: x[:1] * torch.sym_float(n), [3.0], [4.0]),
    "sym_sqrt": (lambda x, n: x[:1] * torch.sym_sqrt(n) ** 2, [3.0], [4.0]),
    "sym_int": (lambda x, n: x[: torch.sym_int(n) - 1].sum(), 3.0, 6.0),
    "SymInt": (lambda x, n: x[: int(isinstance(n, int | torch.SymInt))], [1.0], [1.0]),
    "windows": (
        lambda x, n: F.pad(x, (0, -n % 4)).view((n + -n % 4) // 4, 4).sum(1),
        [6.0],
        [10.0],
    ),
    "more windows": (
        lambda x, n: F.pad(x, (0, (4 - n % 4) % 4)).view(-1, 4).sum(1),
        [6.0],
        [10.0],
    ),
    "divmod": (
        lambda x, n: torch.tensor([*divmod(n, 2), n % 4, -n % 3]),
        [1, 1, 3, 0],
        [2, 0, 0, 2],
    ),
    "reflected": (lambda x, n: spectrum(x, "reflect"), [1.0, -1, -1, 1], [1.0, -1, -1, -1, 1]),
    "replicated": (lambda x, n: spectrum(x, "replicate"), [0.0, -1, -1, 0], [0.0, -1, -1, -1, 0]),
    "circulated": (lambda x, n: spectrum(x, "circular"), [2.0, -1, -1, 2], [3.0, -1, -1, -1, 3]),
    "affine_grid": (
        lambda x, n: rows_of_grid(n, False),
        [-2 / 3, 0.0, 2 / 3],
        [-0.75, -0.25, 0.25, 0.75],
    ),
    "corners": (lambda x, n: rows_of_grid(n, True), [-1.0, 0.0, 1.0], [-1.0, -1 / 3, 1 / 3, 1.0]),
    "convolution": (
        lambda x, n: F.conv1d(x.expand(1, 4, n), torch.ones(4, 4, 1))[0, 0],
        [4.0, 8.0, 12.0],
        [4.0, 8.0, 12.0, 16.0],
    ),
    "fft": (lambda x, n: fft.fft(x).imag, [0.0, 0.75**0.5, -(0.75**0.5)], [0.0, 2.0, 0.0, -2.0]),
    "ifft": (
        lambda x, n: fft.ifft(fft.fft(x).flip(0)).real,
        [1.0, -1.5, -1.0],
        [1.0, 0.0, -3.0, 0.0],
    ),
    "rfft": (
        lambda x, n: torch.view_as_real(fft.rfft(x, norm="ortho")).flatten(),
        [3.4641016, 0.0, -0.8660254, 0.5],
        [5.0, 0.0, -1.0, 1.0, -1.0, 0.0],
    ),
    "irfft": (
        lambda x, n: fft.irfft(fft.rfft(x) * 1j, n=n),
        [-0.5773503, 1.1547005, -0.5773503],
        [-1.0, 1.0, 1.0, -1.0],
    ),
    "fft2": (
        lambda x, n: fft.fft2(torch.outer(x, x)).real[1],
        [-9.0, 1.5, 3.0],
        [-20.0, 0.0, 4.0, 8.0],
    ),
}


def test_code_computes_with_sizes():
    def forward(x):
        return {name: use(x, x.shape[0]) for name, (use, *_) in USES_OF_SIZES.items()}

    module = program_of(forward, torch.ones(5), shapes={0: Dim("n", min=2, max=5)}).module()
    for place, size in enumerate((3, 4), 1):
        results = module(torch.arange(1.0, size + 1))
        for name, row in USES_OF_SIZES.items():
            expected = torch.tensor(row[place])
            assert results[name].dtype == expected.dtype, name
            torch.testing.assert_close(results[name], expected, rtol=2e-6, atol=2e-6)


def test_products_of_sizes():
    # JAX alone does not see that b * (t - 1) is no less than 0, and t * t no less than t
    def forward(x, y):
        rows = F.linear(x[:, 1:], torch.ones(2, 3))
        return rows, (x @ x.mT + (x @ x.mT).mT.relu()).sum(-1), y.mT + y.mT.mT.mT

    b, t = Dim("b", min=2, max=64), Dim("t", min=2, max=64)
    x, y = torch.ones(4, 3, 3), torch.ones(4, 3)
    program = export(module_of(forward), (x, y), dynamic_shapes=(({0: b, 1: t}, {0: b, 1: t}),))
    x = torch.arange(12.0).reshape(2, 2, 3)
    results = program.module()(x, torch.ones(2, 2))
    # what torch 2.13 gives
    assert results[0].tolist() == [[[12.0, 12.0]], [[30.0, 30.0]]]
    assert results[1].tolist() == [[38.0, 128.0], [722.0, 1028.0]]
    assert results[2].tolist() == [[2.0, 2.0]] * 2


@pytest.mark.parametrize("use", [round, int, math.ceil])
def test_numbers_of_sizes_that_must_be_ints(use):
    with pytest.raises(
        RuntimeError, match=r"Constraints violated .n.*needs an int there, at .*use"
    ):
        program_of(lambda x: x[: use(x.shape[0] / 2)], torch.ones(4), shapes={0: Dim("n")})


N, M = Dim("n", min=2, max=16), Dim("m", min=2, max=16)
SPECIALIZED = r"You marked n as dynamic but your code specialized it to be a constant \(4\)"
EQUAL = r"values of m = y.size\(\)\[\d\] and n = x.size\(\)\[\d\] must always be equal"
# the words of torch 2.13, with the fix that it suggests
VIOLATED = {
    "contracted": (lambda x, y: x @ y, ({1: N}, None), SPECIALIZED, "n = 4"),
    "added": (lambda x, y: x + y, ({0: N}, None), SPECIALIZED, "n = 4"),
    "viewed": (lambda x, y: x.view(4, 4) + y, ({0: N}, None), SPECIALIZED, "n = 4"),
    "layer": (lambda x, y: F.layer_norm(x, (4,)) + y, ({1: N}, None), SPECIALIZED, "n = 4"),
    "number": (lambda x, y: x * int(x.shape[0]) + y, ({0: N}, {0: N}), SPECIALIZED, "n = 4"),
    "test": (lambda x, y: x if x.shape[0] == 4 else y, ({0: N}, {0: N}), SPECIALIZED, "n = 4"),
    "rows": (lambda x, y: x + y, ({0: N}, {0: M}), EQUAL, "m = n"),
    "inner": (lambda x, y: x @ y, ({1: N}, {0: M}), EQUAL, "m = n"),
    "joined": (lambda x, y: torch.cat([x, y], 1), ({0: N}, {0: M}), EQUAL, "m = n"),
    "loss": (lambda x, y: F.cross_entropy(x, y[:, 0].long()), ({0: N}, {0: M}), EQUAL, "m = n"),
    "eights": (
        lambda x, y: x.view(-1, 8).sum() + y,
        ({0: N}, None),
        "Not all values of n in the specified range",
        r"_n = Dim\('_n'\); n = 2\*_n",
    ),
}


@pytest.mark.parametrize("name", VIOLATED)
def test_violated_constraints_name_the_size_and_the_fix(name):
    forward, shapes, words, fix = VIOLATED[name]
    model = type("Model", (nn.Module,), {"forward": lambda self, x, y: forward(x, y)})()
    message = rf"(?s)Constraints violated.*{words}.*test_dynamic_shapes.py:.*fixes:\n  {fix}"
    with pytest.raises(torch._dynamo.exc.UserError, match=message):
        export(model, (torch.ones(4, 4), torch.zeros(4, 4)), dynamic_shapes=shapes)


def test_a_profiler_sees_the_code_that_is_exported():
    seen = set()

    def shifted(x):
        return x[:, 1:] + x.shape[0]

    sys.setprofile(lambda frame, event, result: seen.add(frame.f_code.co_name))
    try:
        export(shifted, (torch.ones(3, 4),), dynamic_shapes=({0: Dim("batch")},))
    finally:
        sys.setprofile(None)
    assert "shifted" in seen


def test_an_error_of_the_example_stays_as_it_is():
    with pytest.raises(RuntimeError, match="mat1 and mat2") as raised:
        program_of(lambda x: x @ torch.ones(5, 2), torch.ones(4, 4), shapes={0: N})
    assert not isinstance(raised.value, torch._dynamo.exc.UserError)


def test_examples_outside_of_a_range():
    # torch 2.13 raises ConstraintViolationError with these words
    kind = torch.fx.experimental.symbolic_shapes.ConstraintViolationError
    for dim, words in (
        (Dim("k", min=5), "4 not in range .5, int_oo"),
        (Dim("k", max=3), "4 not in"),
    ):
        with pytest.raises(kind, match=words):
            program_of(lambda x: x, torch.ones(4, 4), shapes={0: dim})
    n = Dim("n")
    with pytest.raises(kind, match="is not equal to"):
        export(
            module_of(torch.add), (torch.ones(4), torch.ones(3)), dynamic_shapes=(({0: n}, {0: n}),)
        )
    # two more elements on both sides are reflections of three
    signal = module_of(lambda x: torch.stft(x, 4, window=torch.ones(4), return_complex=True))
    with pytest.raises(RuntimeError, match=r"fixes:\n  n = Dim\('n', min=3\)"):
        export(signal, (torch.ones(4),), dynamic_shapes=(({0: Dim("n", min=1)},),))
    with pytest.raises(RuntimeError, match="top-level keys must be the arg names"):
        export(module_of(torch.sin), (torch.ones(4),), dynamic_shapes={"z": {0: n}})


@pytest.mark.parametrize(
    ("layer", "shape", "kept"),
    [  # torch 2.13 lets the same sizes vary
        (nn.Linear(3, 2), (3, 3), {0}),
        (nn.Conv2d(3, 4, 3), (3, 3, 8, 8), {0, 2, 3}),
        (nn.GroupNorm(2, 4), (4, 4, 6), {0, 2}),
    ],
)
def test_a_size_that_equals_another_one_by_chance(layer, shape, kept):
    shapes = (dict.fromkeys(range(len(shape)), Dim.AUTO),)
    program = export(layer, (torch.ones(shape),), dynamic_shapes=shapes)
    (known,) = program._signature.inputs
    assert {
        number for number, extent in enumerate(known.extents) if extent != shape[number]
    } == kept
    other = torch.ones([size + (number in kept) for number, size in enumerate(shape)])
    torch.testing.assert_close(program.module()(other), layer(other))
