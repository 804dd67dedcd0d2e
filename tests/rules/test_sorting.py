"""Sorting, ranks, search, histograms and segments: errors, dtypes and edge cases as in PyTorch; and
the derivatives that PyTorch does not have, against closed forms."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    ("torch.sort(tensor([1j]))", RuntimeError, "ort"),
    ("torch.topk(tensor([1.0]), 2)", RuntimeError, "selected index k out of range"),
    ("torch.topk(tensor([True]), 1)", RuntimeError, "topk"),
    (
        "torch.kthvalue(tensor([1.0]), 0)",
        RuntimeError,
        "kthvalue(): selected number k out of range for dimension 0",
    ),
    (
        "torch.kthvalue(zeros(0), 1)",
        IndexError,
        "kthvalue(): Expected reduction dim 0 to have non-zero size",
    ),
    (
        "torch.median(zeros(0, 3), 0)",
        IndexError,
        "median(): Expected reduction dim 0 to have non-zero size",
    ),
    ("torch.median(tensor([True]))", NotImplementedError, "not implemented for 'Bool'"),
    (
        "torch.mode(zeros(0))",
        IndexError,
        "mode(): Expected reduction dim 0 to have non-zero size",
    ),
    (
        "torch.aminmax(zeros(0))",
        RuntimeError,
        "aminmax(): cannot compute aminmax over an empty dimension",
    ),
    ("torch.logcumsumexp(tensor([1]), 0)", NotImplementedError, "not implemented for 'Long'"),
    ("torch.cumprod(tensor([True]), 0, dtype=torch.bool)", NotImplementedError, "for 'Bool'"),
    ("torch.nansum(tensor([1j]))", RuntimeError, "does not support complex inputs"),
    ("torch.nanmean(tensor([1]))", RuntimeError, "nanmean(): expected input to have floating"),
    ("torch.quantile(zeros(2), 1.5)", RuntimeError, "q must be in the range [0, 1] but got 1.5"),
    (
        "torch.quantile(zeros(2), tensor([nan]))",
        RuntimeError,
        "quantile() q values must be in the range [0, 1]",
    ),
    (
        "torch.nanquantile(tensor([1]), 0.5)",
        RuntimeError,
        "input tensor must be either float or double dtype",
    ),
    ("torch.quantile(zeros(0), 0.5)", RuntimeError, "quantile() input tensor must be non-empty"),
    ("torch.quantile(zeros(2, 2), 0.5, 2)", IndexError, "Dimension out of range"),
    (
        "torch.searchsorted(zeros(2, 3), zeros(3))",
        RuntimeError,
        "boundaries tensor should be 1 dimension or the first N-1 dimensions",
    ),
    (
        "torch.searchsorted(zeros(3), zeros(3), side='left', right=True)",
        RuntimeError,
        "side and right can't be set to opposites",
    ),
    (
        "torch.searchsorted(zeros(2), zeros(3), sorter=tensor([0, 2]))",
        RuntimeError,
        "sorter index out of range",
    ),
    ("torch.bucketize(zeros(2), zeros(2, 2))", RuntimeError, "must be 1 dimension, but got dim(2)"),
    ("torch.histc(zeros(2), 3, 2, 1)", RuntimeError, "max must be larger than min"),
    ("torch.histc(tensor([1]), 3)", NotImplementedError, "not implemented for 'Long'"),
    ("torch.histogram(tensor([1.0, nan]), 3)", RuntimeError, "is not finite"),
    ("torch.histogram(zeros(2), 0)", RuntimeError, "bins must be > 0, but got 0"),
    (
        "torch.histogramdd(zeros(2, 2), [2])",
        RuntimeError,
        "The size of bins must be equal to the innermost dimension of the input",
    ),
    ("torch.bincount(tensor([-1]))", RuntimeError, "only supports 1-d non-negative integral"),
    ("torch.bincount(tensor([1.0]))", NotImplementedError, "not implemented for 'Float'"),
    ("torch.unique(tensor([1j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("torch.unique(zeros(0, 3), dim=1)", RuntimeError, "There are 0 sized dimensions"),
    (
        "torch.segment_reduce(zeros(4), 'sum', lengths=tensor([1, 1]))",
        RuntimeError,
        "Expected all rows of lengths along axis to sum to",
    ),
    ("torch.segment_reduce(zeros(4), 'sum')", RuntimeError, "lengths or offsets must be defined"),
    ("torch.diff(tensor(1.0))", RuntimeError, "diff expects input to be at least one-dimensional"),
    (
        "torch.trapezoid(zeros(2, 3), zeros(2))",
        RuntimeError,
        "There must be one `x` value for each sample point",
    ),
    ("torch.masked.mean(tensor([1]))", ValueError, "mean(): Could not infer output dtype"),
    (
        "torch.masked.sum(zeros(2), mask=zeros(2, 2))",
        IndexError,
        "_input_mask expected broadcastable mask",
    ),
]

ANSWERS = [
    # NaN is the greatest number; equal elements keep their order in both directions
    ("torch.sort(tensor([nan, 1.0, -inf, inf])).indices", "int64", [2, 1, 3, 0]),
    ("torch.sort(tensor([2, 1, 2]), stable=True, descending=True).indices", "int64", [0, 2, 1]),
    ("torch.sort(tensor([2.0, 1.0], dtype=torch.bfloat16)).values", "bfloat16", [1.0, 2.0]),
    ("torch.topk(tensor([nan, 1.0, inf]), 2, largest=False).indices", "int64", [1, 2]),
    ("torch.topk(tensor([-128, 127], dtype=torch.int8), 2, largest=False)[1]", "int64", [0, 1]),
    ("torch.topk(tensor([1.0, 3.0], dtype=torch.float16), 1).values", "float16", [3.0]),
    ("torch.median(zeros(0))", "float32", numpy.nan),
    ("torch.median(tensor([1.0, nan, 2.0]), 0).indices", "int64", 1),
    ("torch.nanmedian(tensor([nan, nan]), 0).indices", "int64", 0),
    ("torch.median(tensor([3, 1, 2, 4]))", "int64", 2),
    ("torch.mode(tensor([1, 2, 2, 1])).indices", "int64", 3),
    ("torch.cummax(tensor([1.0, nan, 3.0]), 0).values", "float32", [1.0, numpy.nan, numpy.nan]),
    ("torch.cumprod(tensor([100, 3], dtype=torch.uint8), 0)", "int64", [100, 300]),
    ("torch.nansum(tensor([True, True]))", "int64", 2),
    # searching, in the common dtype
    ("torch.searchsorted(tensor([1, 3, 5]), tensor([3.5]))", "int64", [2]),
    ("torch.searchsorted(tensor([1.0, nan]), tensor([nan]))", "int64", [2]),
    ("torch.bucketize(2.5, tensor([1, 2, 3]))", "int64", 2),
    # distinct elements
    ("torch.unique(tensor([nan, 1.0, nan]))", "float32", [1.0, numpy.nan, numpy.nan]),
    ("torch.unique(tensor([0.0, -0.0]), return_counts=True)[1]", "int64", [2]),
    ("torch.unique(tensor([2.0, 1.0], dtype=torch.bfloat16))", "bfloat16", [1.0, 2.0]),
    ("torch.unique(zeros(0, 3), dim=0)", "float32", numpy.zeros((0, 3))),
    ("torch.unique(tensor(1.0), return_inverse=True)[1]", "int64", 0),
    (
        "torch.unique_consecutive(tensor([nan, nan, 1.0, 1.0]), return_counts=True)[1]",
        "int64",
        [1, 1, 2],
    ),
    # histograms
    ("torch.histc(tensor([1.0, 2.0, 3.0], dtype=torch.float16), 3)", "float16", [1.0, 1.0, 1.0]),
    (
        "torch.histogramdd(tensor([[0.0, 1.0], [1.0, 0.0]]), [2, 2]).bin_edges[0]",
        "float32",
        [0.0, 0.5, 1.0],
    ),
    (
        "torch.histogramdd(tensor([[0.0, 1.0], [2.0, 0.0]]), 2, range=[0.0, 1.0, 0.0, 1.0])[0]",
        "float32",
        [[0.0, 1.0], [0.0, 0.0]],
    ),
    ("torch.histogramdd(zeros(5, 0), 2).hist", "float32", 0.0),
    ("torch.histogramdd(zeros(2, 3, 0), [], density=True).hist", "float32", numpy.nan),
    ("torch.bincount(tensor([0, 2]), tensor([1, 2]))", "float64", [1.0, 0.0, 2.0]),
    ("torch.bincount(tensor([1], dtype=torch.uint8), minlength=3)", "int64", [0, 1, 0]),
    # segments
    (
        "torch.segment_reduce(tensor([1.0, nan, 2.0]), 'max', lengths=tensor([2, 1]))",
        "float32",
        [numpy.nan, 2.0],
    ),
    (
        "torch.segment_reduce(tensor([1.0, 2.0]), 'mean', lengths=tensor([0, 2]))",
        "float32",
        [numpy.nan, 1.5],
    ),
    # masks
    ("torch.masked.amax(tensor([1, 2]), mask=tensor([False, False]))", "int64", -(2**63)),
    ("torch.masked.sum(tensor([1.0, nan]), mask=tensor([True, False]))", "float32", 1.0),
    ("torch.masked.argmin(tensor([1.0, 2.0]), mask=tensor([False, True]))", "float32", 1.0),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_a_nan_is_no_mode_of_others():
    """Every NaN is a value of its own; PyTorch sorts by an order that NaN breaks."""
    assert jaxgrad.mode(jaxgrad.tensor([numpy.nan, numpy.nan, 1.0])).indices.item() == 2
    count("answers")


def gradient(function, values):
    x = jaxgrad.tensor(values, dtype=jaxgrad.float64, requires_grad=True)
    function(x).backward()
    return x.grad.tolist()


WEIGHTS = jaxgrad.tensor([1.0, 10.0, 100.0], dtype=jaxgrad.float64)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        # of equal elements the first gets the gradient
        (lambda x: (x.unique() * WEIGHTS[:2]).sum(), [2.0, 1.0, 2.0], [10.0, 1.0, 0.0]),
        (lambda x: (jaxgrad._unique(x)[0] * WEIGHTS[:2]).sum(), [2.0, 1.0, 2.0], [10.0, 1.0, 0.0]),
        (
            lambda x: (x.unique_consecutive() * WEIGHTS).sum(),
            [2.0, 1.0, 1.0, 2.0],
            [1.0, 10.0, 0.0, 100.0],
        ),
        (lambda x: x[:, None].unique(dim=0).sum(), [2.0, 1.0, 2.0], [1.0, 1.0, 0.0]),
        # weights
        (
            lambda w: (jaxgrad.bincount(jaxgrad.tensor([2, 0, 2]), w) * WEIGHTS).sum(),
            [1.0, 2.0, 3.0],
            [100.0, 1.0, 100.0],
        ),
        (
            lambda w: (WEIGHTS.histogram(2, weight=w).hist * WEIGHTS[:2]).sum(),
            [1.0, 2.0, 3.0],
            [1.0, 1.0, 10.0],
        ),
        # the edges of a histogram follow the extrema, its counts are constant
        (lambda x: (x.histogram(2).bin_edges * WEIGHTS).sum(), [1.0, 2.0, 5.0], [6.0, 0.0, 105.0]),
        (lambda x: x.histogram(2).hist.sum(), [1.0, 2.0, 5.0], [0.0, 0.0, 0.0]),
        # the density 1 / (5 - 1) * 2 of a bin
        (lambda x: x.histogram(2, density=True).hist[1], [1.0, 2.0, 5.0], [1 / 24, 0.0, -1 / 24]),
        # zeros
        (lambda x: (x.cumprod(0) * WEIGHTS).sum(), [2.0, 0.0, 3.0], [1.0, 620.0, 0.0]),
        (lambda x: (x.cumprod(0) * WEIGHTS).sum(), [0.0, 0.0, 3.0], [1.0, 0.0, 0.0]),
        # infinities: an element that was first is its own running value
        (lambda x: x.logcumsumexp(0)[1:].sum(), [-numpy.inf, 0.0, -numpy.inf], [0.0, 2.0, 0.0]),
        # ties share, each end its own
        (lambda x: x.aminmax().min + 10 * x.aminmax().max, [1.0, 1.0, 2.0], [0.5, 0.5, 10.0]),
        (lambda x: x.median(), [1.0, 1.0, 2.0], [0.5, 0.5, 0.0]),
        # PyTorch shares positive gradients alone
        (
            lambda x: -jaxgrad.segment_reduce(x, "max", lengths=jaxgrad.tensor([3]))[0],
            [1.0, 1.0, 0.0],
            [-0.5, -0.5, 0.0],
        ),
        # elements that are masked out, and rows without elements
        (
            lambda x: jaxgrad.masked.std(x, mask=jaxgrad.tensor([True, True, False])),
            [3.0, 3.0, 9.0],
            [0.0, 0.0, 0.0],
        ),
        (
            lambda x: jaxgrad.masked.var(x, 0, mask=jaxgrad.zeros(2) > 0).nan_to_num(),
            [3.0, 5.0],
            [0.0, 0.0],
        ),
    ],
)
def test_gradients_in_closed_form(function, values, expected):
    numpy.testing.assert_allclose(gradient(function, values), expected, 1e-12, 1e-14)
    count("closed forms")


@pytest.mark.slow
def test_the_gradient_of_the_number_of_a_quantile():
    q = jaxgrad.tensor(0.3, requires_grad=True)
    jaxgrad.quantile(jaxgrad.tensor([0.0, 1.0, 5.0]), q).backward()
    assert q.grad.item() == 2.0  # two gaps of 1 and 4, the first one
    count("closed forms")


def test_the_sum_of_a_long_segment_in_half_precision():
    x = jaxgrad.ones(3000, dtype=jaxgrad.float16, requires_grad=True)
    total = jaxgrad.segment_reduce(x, "sum", lengths=jaxgrad.tensor([3000]))
    assert total.item() == 3000.0
    count("answers")


@pytest.mark.parametrize("call", [ops.sort, lambda x: ops.topk(x, 3)])
def test_a_sort_moves_elements_and_no_matrix(call):
    program = jax.make_jaxpr(jax.grad(lambda x: (call(x)[0] ** 2).sum()))(jnp.ones(5))
    names = {*primitives(program)}
    assert "scatter-add" in names and "dot_general" not in names
    shapes = [v.aval.shape for e in program.eqns for v in e.outvars]
    assert (5, 5) not in shapes and (5, 3) not in shapes
    count("programs")


@pytest.mark.parametrize(
    "function",
    [lambda x: x.unique(), lambda x: x.unique_consecutive(), lambda x: x.bincount()],
    ids=["unique", "unique_consecutive", "bincount"],
)
def test_a_size_that_depends_on_values_is_refused_in_a_trace(function):
    with pytest.raises(RuntimeError, match="being traced"):
        jaxgrad.jit(lambda x: function(x + 1))(jaxgrad.tensor([1, 2]))
    count("errors")


def test_nodes_of_distinct_elements_have_pytorchs_names():
    x = jaxgrad.ones(2, 2, requires_grad=True)
    results = [x.unique(), x.unique(dim=1), x.unique_consecutive(), jaxgrad._unique(x)[0]]
    names = ["Unique2", "UniqueDim", "UniqueConsecutive", "Unique"]
    assert [result.grad_fn.name() for result in results] == [f"{name}Backward0" for name in names]
    assert jaxgrad._unique2(x)[0].grad_fn.name() == "Unique2Backward0"
    count("node names")


def test_quantiles_are_computed_in_float32_under_autocast():
    with jaxgrad.autocast("cpu", dtype=jaxgrad.bfloat16):
        quantile = jaxgrad.quantile(jaxgrad.tensor([1.0, 2.0, 4.0], dtype=jaxgrad.bfloat16), 0.4)
    assert quantile.dtype == jaxgrad.float32
    numpy.testing.assert_allclose(quantile.item(), 1.8, 1e-6)
    count("answers")


def test_named_results_and_out():
    values, indices = jaxgrad.zeros(2), jaxgrad.zeros(2, dtype=jaxgrad.int64)
    jaxgrad.sort(jaxgrad.tensor([2.0, 1.0]), out=(values, indices))
    assert values.tolist() == [1.0, 2.0] and indices.tolist() == [1, 0]
    out = jaxgrad.zeros(())
    assert jaxgrad.quantile(jaxgrad.tensor([1.0, 3.0]), 0.5, out=out) is out
    assert out.item() == 2.0
    assert jaxgrad.tensor([1, 2], dtype=jaxgrad.int8).cumprod_(0).dtype == jaxgrad.int8
    assert jaxgrad.tensor([2.0, 1.0]).aminmax()._fields == ("min", "max")
    assert not hasattr(jaxgrad.Tensor, "bucketize") and not hasattr(jaxgrad.Tensor, "var_mean")
    count("answers")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "uint8", "int64"])
@pytest.mark.parametrize(("shape", "dim"), [((300,), 0), ((2, 130), 1), ((129, 2, 2), 0)])
def test_long_dimensions_are_ordered_as_by_numpy(dtype, shape, dim):
    random = numpy.random.default_rng(0)
    if jaxgrad.tensor(0, dtype=getattr(jaxgrad, dtype)).is_floating_point():
        array = random.normal(size=shape).round(1)  # with ties
        for step, value in ((29, numpy.nan), (31, -0.0), (37, numpy.inf), (41, -numpy.inf)):
            array.reshape(-1)[step // 2 :: step] = value
        known = array[~numpy.isnan(array)]
        x = jaxgrad.tensor(array, dtype=getattr(jaxgrad, dtype))
        middle = numpy.sort(known)[(known.size - 1) // 2]
        assert x.median().isnan() and x.nanmedian() == jaxgrad.tensor(middle, dtype=x.dtype)
        array = x.double().numpy()
    else:
        limits = numpy.iinfo(dtype)
        array = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        array.reshape(-1)[::5] = array.reshape(-1)[0]
        x = jaxgrad.tensor(array)
        middle = numpy.sort(array, axis=None)[(array.size - 1) // 2]
        assert x.median() == middle
    places = numpy.argsort(array, axis=dim, kind="stable")
    for k in (1, 2, shape[dim] // 2, shape[dim]):
        values, indices = x.kthvalue(k, dim)
        expected = numpy.take(places, [k - 1], dim)
        assert (indices.numpy() == expected.squeeze(dim)).all()
        values = values.double().numpy() if x.is_floating_point() else values.numpy()
        wanted = numpy.take_along_axis(array, expected, dim).squeeze(dim)
        numpy.testing.assert_array_equal(values, wanted)
