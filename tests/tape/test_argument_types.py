"""The error of a call with an argument of a wrong type. PyTorch raises each TypeError."""

import pytest

import jaxgrad
from jaxgrad.nn import functional as F

X = jaxgrad.ones(3)
LEAF = jaxgrad.ones(2, requires_grad=True)

REFUSED = [
    (lambda: F.pad(None, (1, 1)), r"pad\(\): argument 'input' \(position 1\) must be Tensor, not"),
    (lambda: jaxgrad.diff(None), r"argument 'input' \(position 1\) must be Tensor, not NoneType"),
    (lambda: jaxgrad.diff(X, 1.5), r"diff\(\): argument 'n' \(position 2\) must be int, not float"),
    (lambda: jaxgrad.diff(X, 1, True), r"argument 'dim' \(position 3\) must be int, not bool"),
    (lambda: jaxgrad.diff(X, n="a"), r"diff\(\): argument 'n' must be int, not str"),
    (lambda: jaxgrad.combinations("a"), r"argument 'input' \(position 1\) must be Tensor, not str"),
    (lambda: F.grid_sample(2, X), r"argument 'input' \(position 1\) must be Tensor, not int"),
    (lambda: jaxgrad.resolve_conj(None), "argument 'input' .* must be Tensor, not NoneType"),
    (lambda: jaxgrad.resolve_neg(None), "argument 'input' .*must be Tensor, not NoneType"),
    (
        lambda: jaxgrad.cat([X, None]),
        "expected Tensor as element 1 in argument 0, but got NoneType",
    ),
    (lambda: F.dropout(jaxgrad.nn.ReLU()), r"dropout\(\): argument 'input' .* not ReLU"),
    (lambda: F.pad(iter([X]), (1, 1)), "argument 'input' .* must be Tensor, not list_iterator"),
    (lambda: F.poisson_nll_loss(X, {1}), r"argument 'target' \(position 2\) .* Tensor, not set"),
    (lambda: F.pairwise_distance([1.0], [2.0]), r"argument 'x1' \(position 1\) .* not list"),
    (
        lambda: jaxgrad.mm(None, None),
        r"mm\(\): argument 'input' \(position 1\) must be Tensor, not",
    ),
    # flags and numbers that the function would use as they are
    (
        lambda: jaxgrad.unique(X, sorted=1.5),
        r"unique\(\): argument 'sorted' must be bool, not float",
    ),
    (lambda: F.dropout(X, 0.5, 1), r"argument 'training' \(position 3\) must be bool, not int"),
    (lambda: jaxgrad.cov(X, correction=1.5), r"cov\(\): argument 'correction' must be int, not"),
    (lambda: F.softmax(1.5, 0), r"softmax\(\): argument 'input' \(position 1\) .* not float"),
    (lambda: F.celu(X, alpha="a"), "argument 'alpha' must be float, not str"),
    (lambda: jaxgrad.ones(3, requires_grad=2), "argument 'requires_grad' must be bool, not int"),
    (lambda: jaxgrad.tensor(1.0, requires_grad="a"), "'requires_grad' must be bool, not str"),
    (lambda: X.to(jaxgrad.float32, copy=2), "to.. received an invalid combination of arguments"),
    # text
    (lambda: jaxgrad.fft.fft(X, norm=2), r"fft\(\): argument 'norm' must be str, not int"),
    (lambda: jaxgrad.meshgrid(X, X, indexing=2), "argument 'indexing' must be str, not int"),
    (lambda: jaxgrad.quantile(X, 0.5, interpolation=2), "argument 'interpolation' must be str"),
    (lambda: F.pad(X, (1, 1), mode=None), r"argument 'mode' \(position 3\) must be str, not None"),
    (lambda: LEAF.sum().backward(create_graph="a"), "'create_graph' must be bool, not str"),
    (lambda: LEAF.sum().backward(retain_graph=1.5), "'retain_graph' must be bool, not float"),
    (lambda: jaxgrad.autograd.grad(LEAF.sum(), LEAF, create_graph=None), "'create_graph' must be"),
    # what lacks an attribute that the function reads
    (lambda: X.clone(memory_format=2), r"clone\(\): argument 'memory_format' must not be int"),
    (lambda: F.instance_norm(X[None, None], weight={}), "argument 'weight' .* not"),
    (lambda: jaxgrad.linalg.multi_dot([X, "a"]), "'tensors' must not hold objects of type str"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_the_error_names_the_argument(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_flags_that_python_reads_take_any_object():
    image = jaxgrad.ones(1, 1, 2, 2)
    assert len(F.max_pool2d(image, 2, return_indices=1)) == 2
    assert F.relu(X, inplace=0).tolist() == [1.0, 1.0, 1.0]
    assert jaxgrad.ones(2, requires_grad=None).requires_grad is False


def test_a_tensor_without_dimensions_is_an_int_for_each_dimension():
    row, two = jaxgrad.arange(4.0)[None], jaxgrad.tensor(2)
    assert F.max_pool1d(row, two).tolist() == [[1.0, 3.0]]
    weight = jaxgrad.ones(1, 1, 1)
    assert F.conv1d(row, weight, stride=two).tolist() == [[0.0, 2.0]]


def test_another_error_of_a_call_stays():
    with pytest.raises(IndexError, match="Dimension out of range"):
        jaxgrad.diff(X, 1, 5)


B, ZEROS = jaxgrad.ones(4, 3), jaxgrad.zeros(3)
WHOLE = jaxgrad.ones(2, 2, dtype=jaxgrad.int64)
WRONG = [
    (
        lambda: jaxgrad.addmm(WHOLE, WHOLE, WHOLE, beta=float("nan")),
        RuntimeError,
        "value cannot be converted to type int64_t without overflow",
    ),
    (
        lambda: jaxgrad.addcmul(WHOLE, WHOLE, WHOLE, value=1e30),
        RuntimeError,
        "value cannot be converted to type int64_t without overflow",
    ),
    (
        lambda: jaxgrad.mean(WHOLE, out=jaxgrad.empty(())),
        RuntimeError,
        r"mean\(\): could not infer output dtype",
    ),
    (
        lambda: jaxgrad.geqrf(B, out=(ZEROS,) * 2),
        RuntimeError,
        "one tensor for several results",
    ),
    (
        lambda: F.gaussian_nll_loss(ZEROS, ZEROS, jaxgrad.ones(3, dtype=jaxgrad.int64)),
        RuntimeError,
        "result type Float can't be cast to the desired output type",
    ),
    (lambda: jaxgrad.tensor(1.0).flip([0, 1]), IndexError, "Dimension out of range"),
    (lambda: jaxgrad.tensor(1.0).flip([0, 0]), RuntimeError, "dim 0 appears multiple times"),
    (lambda: jaxgrad.roll(jaxgrad.tensor(1.0), 1, 0), IndexError, "tensor has no dimensions"),
    (lambda: B.sum_to_size(), TypeError, "missing 1 required positional argument"),
    (lambda: jaxgrad.tril_indices(2, 2, nonsense=1), TypeError, "unexpected keyword argument"),
    (lambda: F.batch_norm(B, None, ZEROS, training=True), ValueError, "must either both be None"),
    (lambda: F.batch_norm(B, ZEROS[None], ZEROS), RuntimeError, "1 dim"),
    (lambda: jaxgrad.dist(B > 0, B > 0), RuntimeError, "Subtraction, the `-` operator, with"),
    (
        lambda: jaxgrad.native_group_norm(B[None], None, None, 1, 4, 2, 2, 1e-5),
        RuntimeError,
        r"Expected X.numel\(\) == N \* C \* HxW",
    ),
    (
        lambda: jaxgrad.native_group_norm(B[None], B, None, 1, 4, 3, 2, 1e-5),
        RuntimeError,
        "Expected weight to be a vector of size equal to the number of channels",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), WRONG)
def test_calls_that_pytorch_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()
