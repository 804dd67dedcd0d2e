"""The dtype of `out=`. Which functions of PyTorch 2.13 take another one than that of the result was
asked of PyTorch: the calls below refuse all but one of nine dtypes.
"""

import operator

import pytest

import jaxgrad as torch

MATRIX = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
VECTOR = torch.tensor([1.0, 2.0])
BATCH = torch.ones(2, 2, 2)
CUBE = torch.tensor([[1.0, 2.0, 3.0]])
PLACES = torch.tensor([[0, 1], [1, 0]])

EXACT = {
    "addbmm": (MATRIX, BATCH, BATCH),
    "argmax": (MATRIX, 0),
    "argmin": (MATRIX, 0),
    "addmm": (MATRIX, MATRIX, MATRIX),
    "addmv": (VECTOR, MATRIX, VECTOR),
    "baddbmm": (BATCH, BATCH, BATCH),
    "bmm": (BATCH, BATCH),
    "bucketize": (VECTOR, VECTOR),
    "dot": (VECTOR, VECTOR),
    "float_power": (MATRIX, 2),
    "cross": (CUBE, CUBE, 1),
    "gather": (MATRIX, 0, PLACES),
    "index_add": (MATRIX, 0, PLACES[0], MATRIX),
    "index_copy": (MATRIX, 0, PLACES[0], MATRIX),
    "index_reduce": (MATRIX, 0, PLACES[0], MATRIX, "prod"),
    "masked_select": (MATRIX, MATRIX > 1),
    "norm": (MATRIX, 2, 0),
    "scatter": (MATRIX, 1, PLACES, MATRIX),
    "scatter_add": (MATRIX, 1, PLACES, MATRIX),
    "scatter_reduce": (MATRIX, 1, PLACES, MATRIX, "sum"),
    "slice_scatter": (MATRIX, MATRIX),
    "take": (MATRIX, PLACES),
    "tensordot": (MATRIX, MATRIX, 1),
    "where": (MATRIX > 1, MATRIX, MATRIX),
    "index_select": (MATRIX, 0, PLACES[0]),
    "inner": (MATRIX, MATRIX),
    "log_softmax": (MATRIX, 0),
    "linalg.multi_dot": ([MATRIX, MATRIX],),
    "linalg.solve": (MATRIX, MATRIX),
    "linalg.vecdot": (MATRIX, MATRIX),
    "logcumsumexp": (MATRIX, 0),
    "matmul": (MATRIX, MATRIX),
    "multinomial": (MATRIX, 2),
    "mv": (MATRIX, VECTOR),
    "nanquantile": (MATRIX, 0),
    "quantile": (MATRIX, 0),
    "renorm": (MATRIX, 2, 0, 1.0),
    "searchsorted": (MATRIX, MATRIX),
    "softmax": (MATRIX, 0),
    "take_along_dim": (MATRIX, PLACES, 0),
    **dict.fromkeys(
        [
            "amax",
            "amin",
            "ceil",
            "conj_physical",
            "diag",
            "floor",
            "frac",
            "histc",
            "inverse",
            "isneginf",
            "isposinf",
            "linalg.det",
            "linalg.eigvalsh",
            "linalg.matrix_norm",
            "linalg.norm",
            "linalg.svdvals",
            "linalg.vector_norm",
            "msort",
            "nan_to_num",
            "neg",
            "round",
            "sgn",
            "sign",
            "signbit",
            "tril",
            "triu",
            "trunc",
        ],
        (MATRIX,),
    ),
}


def function_of(name):
    module = torch
    for part in name.split("."):
        module = getattr(module, part)
    return module


@pytest.mark.parametrize("name", EXACT)
def test_out_of_another_dtype_than_the_result(name):
    function, arguments = function_of(name), EXACT[name]
    result = function(*arguments)
    out = torch.empty(0, dtype=result.dtype)
    assert function(*arguments, out=out) is out
    for dtype in (torch.complex64, torch.float64):
        if dtype is not result.dtype:
            other = torch.empty(0, dtype=dtype)
            with pytest.raises(RuntimeError, match=r"xpected out tensor (to have )?dtype"):
                function(*arguments, out=other)
            assert other.shape == (0,)


@pytest.mark.parametrize("name", ["all", "any"])
def test_out_of_all_and_any(name):
    function = getattr(torch, name)
    for dtype in (torch.bool, torch.uint8):
        assert function(VECTOR, out=torch.empty((), dtype=dtype)).item() == 1
    for dtype in (torch.float32, torch.complex64, torch.int32):
        with pytest.raises(RuntimeError, match="only supports bool tensor for result, got"):
            function(VECTOR, out=torch.empty((), dtype=dtype))


def test_out_of_a_wider_dtype():
    assert torch.add(VECTOR, 1, out=torch.empty(0, dtype=torch.float64)).tolist() == [2.0, 3.0]


DECOMPOSED = ["inv_ex", "lu_factor", "lu_factor_ex", "lu", "qr", "slogdet", "ldl_factor", "eigh"]


@pytest.mark.parametrize("name", DECOMPOSED)
def test_out_of_a_decomposition(name):
    function = getattr(torch.linalg, name)
    exact = [torch.empty(0, dtype=result.dtype) for result in function(MATRIX)]
    assert function(MATRIX, out=exact)[0] is exact[0]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        function(MATRIX, out=[torch.empty(0, dtype=torch.float64), *exact[1:]])


@pytest.mark.parametrize("out", [[torch.empty(2)], (torch.empty(2),)], ids=["list", "tuple"])
def test_out_of_one_result_is_a_tensor(out):
    """PyTorch raises TypeError for add and msort."""
    for call in (lambda: torch.add(VECTOR, 1, out=out), lambda: torch.msort(VECTOR, out=out)):
        with pytest.raises(TypeError, match="argument 'out' must be Tensor, not"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.linalg.cholesky(torch.eye(2), out=out),
        lambda out: torch.matrix_power(torch.eye(2), 3, out=out),
        lambda out: torch.chain_matmul(torch.eye(2), torch.eye(2), out=out),
    ],
)
@pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")
def test_out_of_products_and_factors(call):
    exact = torch.empty(0)
    assert call(exact) is exact and exact.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(RuntimeError, match=r"[eE]xpected out tensor to have dtype"):
        call(torch.empty(0, dtype=torch.float64))


def test_out_of_abs():
    """Of real numbers it has their dtype, of complex numbers theirs or a real one."""
    for dtype in (torch.float64, torch.float16, torch.complex64):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float"):
            torch.abs(VECTOR, out=torch.empty(0, dtype=dtype))
    numbers = torch.tensor([3 + 4j])
    for dtype in (torch.float32, torch.float64, torch.complex64):
        assert torch.abs(numbers, out=torch.empty(0, dtype=dtype)).tolist() == [5]


@pytest.mark.parametrize("name", ["isneginf", "isposinf"])
def test_out_of_a_condition_is_bool(name):
    with pytest.raises(RuntimeError, match="does not support non-boolean outputs"):
        getattr(torch, name)(VECTOR, out=torch.empty(2))


PAIRS = ["cummax", "cummin", "max", "min", "median", "nanmedian", "sort", "mode"]


@pytest.mark.parametrize("name", PAIRS)
def test_out_of_a_pair(name):
    function = getattr(torch, name)
    exact = torch.empty(0), torch.empty(0, dtype=torch.int64)
    assert function(MATRIX, 0, out=exact)[0] is exact[0]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        function(MATRIX, 0, out=(torch.empty(0, dtype=torch.float64), exact[1]))


def test_out_of_the_larger_of_two():
    assert torch.max(VECTOR, 1 - VECTOR, out=torch.empty(2, dtype=torch.float64)).tolist() == [1, 2]


def test_out_of_bool_for_uint8():
    bytes_ = torch.tensor([1, 0], dtype=torch.uint8)
    out = torch.empty((), dtype=torch.bool)
    assert torch.all(bytes_, out=out).item() is False
    assert torch.any(bytes_, out=out).item() is True


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_nothing_to_stack(name):
    with pytest.raises(RuntimeError, match="expects a non-empty TensorList"):
        getattr(torch, name)([])


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nansum", "cumsum", "cumprod"])
def test_out_decides_in_which_dtype_sums_are_computed(name):
    import jaxgrad as torch

    x = torch.tensor([0.5, 1.5, 2.5])
    function = getattr(torch, name)
    out = torch.empty(0, dtype=torch.float64)
    assert function(x, 0, out=out).tolist() == function(x.double(), 0).tolist()
    if name not in ("mean", "nansum"):
        out = torch.empty(0, dtype=torch.int64)
        # 0, 1 and 2, as the integers that `x` has
        expected = {"sum": 3, "prod": 0, "cumsum": [0, 1, 3], "cumprod": [0, 0, 0]}
        assert function(x, 0, out=out).tolist() == expected[name]
    with pytest.raises(RuntimeError, match=r"to have dtype float, but got double"):
        function(x, 0, dtype=torch.float32, out=torch.empty(0, dtype=torch.float64))


def test_out_that_cannot_hold_the_result_is_refused_in_all_words_of_pytorch():
    words = "can't be cast to the desired output type Int", "but got result with dtype Int"
    for word in (*words, "Expected out tensor to have dtype float, but got int instead"):
        with pytest.raises(RuntimeError, match=word):
            torch.linalg.inv(torch.eye(3), out=torch.empty(3, 3, dtype=torch.int32))


@pytest.mark.parametrize("name", ["sin", "cummax", "linalg.inv", "addmm"])
def test_out_of_dense_arguments_is_not_sparse(name):
    arguments = {"cummax": (torch.eye(3), 0), "addmm": [torch.eye(3)] * 3}.get(name, [torch.eye(3)])
    sparse = torch.eye(3).to_sparse()
    out = (sparse, torch.empty(0, dtype=torch.int64)) if name == "cummax" else sparse
    with pytest.raises(NotImplementedError, match=r"out= of layout torch\.sparse_coo"):
        operator.attrgetter(name)(torch)(*arguments, out=out)
