"""Arguments of wrong types, sizes and ranges: the errors are those that PyTorch raises."""

import pytest

import jaxgrad
import jaxgrad.nn.functional as F

X, HALF = jaxgrad.ones(2, 3), jaxgrad.tensor(1.5)
NAN = float("nan")
LINE, KERNEL = jaxgrad.ones(1, 1, 5), jaxgrad.ones(1, 1, 2)

# of a call, the class of PyTorch's error and the words in it
TYPES = {
    "a number for a tensor beside a list": lambda: jaxgrad.flip(1.5, (0,)),
    "a number for one to permute": lambda: jaxgrad.permute(1.5, ()),
    "a float tensor for an int": lambda: jaxgrad.cov(X, correction=HALF),
    "a bool tensor for an int": lambda: jaxgrad.cov(X, correction=jaxgrad.tensor(True)),
    "a vector for an int": lambda: jaxgrad.cov(X, correction=jaxgrad.ones(1).long()),
    "a float tensor for one of two": lambda: jaxgrad.triu_indices(2, HALF),
    "a float tensor for a keyword": lambda: jaxgrad.bincount(X[0].long(), minlength=HALF),
    "a float tensor as the end of random numbers": lambda: jaxgrad.randint(HALF, (2,)),
    "floats for dimensions": lambda: jaxgrad.fft.ifftn(X, dim=[1.5]),
    "a bool for a dimension": lambda: jaxgrad.fft.ifftn(X, dim=(True,)),
    "texts for sizes": lambda: jaxgrad.fft.ifft2(X, s=["a"]),
}
VALUES = {
    "rtol": lambda: jaxgrad.isclose(X, X, rtol=NAN),
    "atol": lambda: jaxgrad.allclose(X, X, atol=NAN),
    "cdist only supports non-negative p values": lambda: jaxgrad.cdist(X, X, NAN),
    "pdist only supports non-negative p values": lambda: F.pdist(X, NAN),
    "normal expects std >= 0.0, but found std nan": lambda: jaxgrad.normal(0.0, NAN, (2,)),
    "renorm: expected maxnorm to be >= 0 but got nan": lambda: jaxgrad.renorm(X, 2, 0, NAN),
    "huber_loss does not support non-positive": lambda: F.huber_loss(X, X, delta=NAN),
    "dropout probability has to be between 0 and 1": lambda: F.dropout(X, NAN),
    "eps must be non-negative": lambda: F.cosine_similarity(X, X, eps=-1.0),
    "Tensor: invalid storage offset -1": lambda: jaxgrad.as_strided_scatter(
        X, jaxgrad.ones(2), (2,), (1,), -1
    ),
    "stride": lambda: F.conv1d(LINE, KERNEL, stride=(1, 1), padding="same"),
    "dilation": lambda: F.conv1d(LINE, KERNEL, dilation=(1, 1), padding="same"),
    "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 "
    "'output'; but [3] does not equal [2, 3]": lambda: jaxgrad.ops._softmax_backward_data(
        X[0], X, 0, jaxgrad.float32
    ),
    "'output_size' should contain one int": lambda: F.adaptive_avg_pool1d(LINE, ()),
    "Trying to create tensor with negative dimension": lambda: F.adaptive_max_pool1d(LINE, -1),
    "pad should be at most half of effective kernel size": lambda: F.max_pool1d(
        LINE, 2, padding=4, return_indices=True
    ),
    "narrow(): length must be non-negative.": lambda: X.narrow(0, 0, -1),
    "Index tensor must have the same number of dimensions as self tensor": lambda: X.scatter(
        0, jaxgrad.zeros(2).long(), X
    ),
    "Index tensor must have the same number of dimensions as src tensor": lambda: X.scatter(
        0, jaxgrad.zeros(2, 2).long(), X[None]
    ),
    "source tensor shape must match self tensor shape, excluding the specified dimension. "
    "Got self.shape = [2, 3] source.shape = [2]": lambda: X.index_add(
        0, jaxgrad.tensor([0, 1]), X[:, 0]
    ),
    "_chunk_cat expects dim < ndim for all input tensors": lambda: jaxgrad._chunk_cat(
        [X, X[0]], 1, 2
    ),
    "_chunk_cat expects non-negative dim when input tensors have different ndims": (
        lambda: jaxgrad._chunk_cat([X, X[0]], -1, 2)
    ),
    "inconsistent weight size, expected 3 but got [2]": lambda: F.multi_margin_loss(
        X, X[:, 0], weight=X[:, 0]
    ),
    "dtype Float does not match dtype of out parameter (Double)": lambda: jaxgrad.normal(
        0.0, 1.0, (2,), dtype=jaxgrad.float32, out=jaxgrad.ones(2, dtype=jaxgrad.float64)
    ),
    "tensor.sspaddmm(...) can only be called on sparse tensors": lambda: X.smm(X),
}
OUTS = {
    "result": lambda out: jaxgrad.linalg.svd(X, out=(out, jaxgrad.ones(2), jaxgrad.ones(3, 3))),
    "of old": lambda out: jaxgrad.svd(X, out=(jaxgrad.ones(2, 2), out, jaxgrad.ones(3, 2))),
}
JOINED = "cat", "stack", "hstack", "vstack", "dstack", "column_stack"


@pytest.mark.parametrize("call", TYPES.values(), ids=TYPES)
def test_a_wrong_type_raises_type_error(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(("words", "call"), VALUES.items(), ids=VALUES)
def test_a_wrong_value_raises_runtime_error(words, call):
    with pytest.raises(RuntimeError) as error:
        call()
    assert words in str(error.value)


@pytest.mark.parametrize("call", OUTS.values(), ids=OUTS)
def test_out_of_another_dtype_is_refused(call):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got doub"):
        call(jaxgrad.ones(2, dtype=jaxgrad.float64))


@pytest.mark.parametrize("name", JOINED)
def test_integers_as_out_of_joined_floats_raise_type_error(name):
    with pytest.raises(TypeError, match="input types can't be cast to the desired output type Lo"):
        getattr(jaxgrad, name)([X, X], out=jaxgrad.empty(0, dtype=jaxgrad.int64))


def test_tensors_of_an_integer_are_ints():
    correction = jaxgrad.cov(jaxgrad.tensor([1.0, 3.0]), correction=jaxgrad.tensor(0))
    assert correction.item() == 1.0
    assert jaxgrad.tril_indices(2, jaxgrad.tensor(1)).tolist() == [[0, 1], [0, 0]]


def test_one_dilation_serves_all_dimensions_of_a_convolution_of_the_same_size():
    image, weight = jaxgrad.arange(9.0).reshape(1, 1, 3, 3), jaxgrad.ones(1, 1, 3, 3)
    result = F.conv2d(image, weight, dilation=(1,), padding="same")
    assert result[0, 0].tolist() == [[8.0, 15.0, 12.0], [21.0, 36.0, 27.0], [20.0, 33.0, 24.0]]


def test_trapezoid_with_places_of_fewer_dimensions():
    values = jaxgrad.tensor([[[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]]])
    places = jaxgrad.tensor([[0.0, 1.0, 3.0], [0.0, 2.0, 4.0]])
    assert jaxgrad.trapezoid(values, places).tolist() == [[7.5, 2.0]]
