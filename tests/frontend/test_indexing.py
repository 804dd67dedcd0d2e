"""`x[...]`, masked_select and nonzero against numpy, which agrees with PyTorch on these indices."""

import math
import re
import warnings

import numpy
import pytest

import jaxgrad
from jaxgrad import ops

ALL = slice(None)
MASK = numpy.array([[True, False, True], [False, True, True]])

INDICES = {
    (2, 3): [
        0,
        -1,
        numpy.int64(1),
        ALL,
        slice(1, None),
        slice(-2, 9),
        slice(2, 1),
        slice(None, None, 2),
        None,
        ...,
        (),
        (0, 1),
        (1, ALL),
        (ALL, -1),
        (..., 0),
        (None, 0, None),
        (0, ...),
        (slice(0, 1), slice(0, 3, 2)),
        [1, 0, 1],
        [],
        [True, False],
        numpy.array([1, 1]),
        numpy.array([[0, 1], [1, 0]]),
        numpy.array(1),
        MASK,
        MASK[:, 0],
        (ALL, MASK[0]),
        (MASK[:, 0], 1),
        ([0, 1], [1, 2]),
        (ALL, [0, 0]),
        ([1], None),
        True,
        False,
        (0, True),
        (None, False),
        range(2),
        (MASK[0:2, 1], [2]),
    ],
    (3, 2, 4): [
        ([0, 2], ALL, [1, 3]),
        (ALL, [1, 0], [2, 2]),
        (..., [3, 0]),
        ([0, 2], 1, [1, 3]),
        ([0, 2], None, [1, 1]),
        ([[0], [2]], [0, 1]),
        (None, [1, 2], ALL, slice(0, 1)),
        (slice(1, 3), [0, 1], slice(0, 4, 3)),
        (MASK.T, [0, 0, 1, 3]),
    ],
    (): [(), ..., None, (None, ..., None), True, False],
    (0, 2): [ALL, [], (ALL, 1), (ALL, [1, 1]), numpy.zeros(0, bool), slice(3, 5)],
}
CASES = [(shape, index) for shape, indices in INDICES.items() for index in indices]


def numbers(shape):
    return numpy.arange(1.0, 1.0 + numpy.prod(shape, dtype=int)).reshape(shape)


def placed(shape, index, gradient):
    """The gradient of an indexed array: an element read several times gets the sum."""
    sums = numpy.zeros(shape)
    numpy.add.at(sums, index, gradient)
    return sums


def check(shape, index, tensor_index=None):
    """Value, shape and gradient of `x[tensor_index]`, which means the same as numpy's
    `x[index]`.
    """
    array = numbers(shape)
    expected = array[index]
    x = jaxgrad.tensor(array, requires_grad=True)
    result = x[index if tensor_index is None else tensor_index]
    gradient = numpy.cos(numbers(expected.shape))
    result.backward(jaxgrad.tensor(gradient))
    assert tuple(result.shape) == expected.shape
    numpy.testing.assert_array_equal(result.detach().numpy(), expected)
    numpy.testing.assert_allclose(x.grad.numpy(), placed(shape, index, gradient), rtol=1e-14)


def tensors_for_arrays(index):
    if isinstance(index, tuple):
        return tuple(map(tensors_for_arrays, index))
    known = isinstance(index, numpy.ndarray) or (isinstance(index, list) and index)
    return jaxgrad.tensor(numpy.array(index)) if known else index


@pytest.mark.parametrize(("shape", "index"), CASES, ids=str)
def test_index_as_numpy(shape, index):
    check(shape, index)


@pytest.mark.parametrize(("shape", "index"), CASES, ids=str)
def test_index_of_tensors_as_numpy(shape, index):
    check(shape, index, tensors_for_arrays(index))


def random_part(random, extent):
    start, end = (None if random.rand() < 0.4 else random.randint(-4, 5) for _ in range(2))
    shape = [(2,), (1,), (2, 1)][random.randint(3)]
    return [
        int(random.randint(-extent, extent)),
        slice(start, end, [None, 1, 2][random.randint(3)]),
        random.randint(-extent, extent, shape),
        random.rand(extent) < 0.5,
    ][random.randint(4)]


def random_index(random, shape):
    parts = [random_part(random, extent) for extent in shape[: random.randint(len(shape)) + 1]]
    for extra in (None, ...):
        if random.rand() < 0.4:
            parts.insert(random.randint(len(parts) + 1), extra)
    return tuple(parts)


def fits_both(shape, index):
    """Whether numpy accepts the index and, like PyTorch, treats no integer as an index array."""
    try:
        numbers(shape)[index]
    except IndexError:
        return False
    arrays = any(isinstance(part, numpy.ndarray) for part in index)
    return not (arrays and any(isinstance(part, int) for part in index))


@pytest.mark.slow
def test_random_indices_as_numpy():
    random, tried = numpy.random.RandomState(0), 0
    while tried < 100:
        shape = [(3,), (2, 3), (3, 2, 2)][random.randint(3)]
        index = random_index(random, shape)
        if fits_both(shape, index):
            check(shape, index, tensors_for_arrays(index))
            tried += 1


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (0, "Select"),
        (ALL, "Slice"),
        ((ALL, slice(0, 3)), "Alias"),
        ((ALL, slice(-3, 3)), "Slice"),
        (None, "Unsqueeze"),
        (..., "Alias"),
        ([0, 1], "Index"),
        (MASK, "Index"),
        (True, "Index"),
        ((0, None), "Unsqueeze"),
        (numpy.array(1), "Select"),
    ],
    ids=str,
)
def test_nodes_are_named_as_in_pytorch(index, name):
    x = jaxgrad.zeros(2, 3, requires_grad=True)
    assert x[index].grad_fn.name() == f"{name}Backward0"


ERRORS = [
    (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    ((ALL, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
    ([0, 2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    ((ALL, [-4]), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
    ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
    ((..., 0, [0], None, 0), IndexError, "too many indices for tensor of dimension 2"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"),
    (slice(None, None, 0), ValueError, "slice step cannot be zero"),
    (slice(0, 1.5), TypeError, "slice indices must be integers or None"),
    (1.0, IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte"),
    ((0, "a"), TypeError, "invalid data type 'str'"),
    ([0.5], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (MASK.T, IndexError, "The shape of the mask [3, 2] at index 0 does not match the shape of"),
    ((0, MASK[:, 0]), IndexError, "mask [2] at index 0 does not match"),
    (([0, 1], [0, 1, 2]), IndexError, "could not be broadcast together with shapes [2], [3]"),
]


@pytest.mark.parametrize(("index", "kind", "message"), ERRORS, ids=str)
def test_errors_are_pytorchs(index, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        jaxgrad.zeros(2, 3)[index]


def test_a_tensor_without_dimensions_has_no_places():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        jaxgrad.tensor(1.0)[0]


def test_deprecated_forms_warn_and_mean_what_they_mean_in_pytorch():
    x = jaxgrad.tensor(numbers((2, 3)))
    with pytest.warns(UserWarning, match="non-tuple sequence for multidimensional indexing"):
        assert x[[[0, 1], [1, 0]]].tolist() == [2.0, 4.0]
    with pytest.warns(UserWarning, match="non-tuple sequence for multidimensional indexing"):
        assert x[[range(2), numpy.array([1, 0])]].tolist() == [2.0, 4.0]
    with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
        mask = jaxgrad.tensor([1, 0], dtype=jaxgrad.uint8)
        assert x[mask].tolist() == [[1.0, 2.0, 3.0]]


def test_a_new_place_compiles_nothing():
    x = jaxgrad.zeros(40)
    x[30], x[30:34]
    kernels = len(ops._select.operator.plans), len(ops._slice.operator.plans)
    for i in range(10, 30):
        x[i], x[i : i + 4]
    assert (len(ops._select.operator.plans), len(ops._slice.operator.plans)) == kernels


# under a trace


def test_an_index_that_is_traced():
    x = jaxgrad.tensor(numbers((3, 2, 4)))
    rows, one = jaxgrad.tensor([2, 0]), jaxgrad.tensor(1)

    @jaxgrad.jit
    def read(x, rows, one):
        return x[rows], x[one], x[one, :, rows], x[:, one, rows], x[..., 1], x[1:, 0], x[True]

    array = x.numpy()
    expected = (
        array[[2, 0]],
        array[1],
        array[1][:, [2, 0]],
        array[:, 1][:, [2, 0]],
        array[..., 1],
        array[1:, 0],
        array[None],
    )
    for result, value in zip(read(x, rows, one), expected, strict=True):
        numpy.testing.assert_array_equal(result.numpy(), value)


def test_a_mask_that_is_traced_is_refused():
    x = jaxgrad.tensor([1.0, 2.0])
    for read in (lambda x: x[x > 1], lambda x: x.masked_select(x > 1), lambda x: x.nonzero()):
        with pytest.raises(
            RuntimeError, match=r"needs the numbers of a tensor of shape .* being traced"
        ):
            jaxgrad.jit(read)(x)


def test_a_mask_that_is_known_cuts_what_is_traced():
    mask = numpy.array([True, False, True])
    results = jaxgrad.jit(lambda x: (x[mask], x[[True, True, False]]))(jaxgrad.arange(3.0))
    assert [result.tolist() for result in results] == [[0.0, 2.0], [0.0, 1.0]]


def test_masked_select_and_nonzero():
    square = numbers((2, 3))
    x = jaxgrad.tensor(square, requires_grad=True)
    column = numpy.array([[True], [False]])
    result = x.masked_select(jaxgrad.tensor(column))
    assert result.tolist() == square[0].tolist()
    result.backward(jaxgrad.tensor([1.0, 2.0, 3.0], dtype=jaxgrad.float64))
    assert x.grad.tolist() == [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    assert jaxgrad.nonzero(x > 4).tolist() == numpy.argwhere(square > 4).tolist()
    for result, places in zip(
        jaxgrad.nonzero(x > 4, as_tuple=True), numpy.nonzero(square > 4), strict=True
    ):
        assert result.dtype == jaxgrad.int64
        assert result.tolist() == places.tolist()
    with pytest.raises(RuntimeError, match="expected BoolTensor for mask"):
        x.masked_select(x)
    out = jaxgrad.zeros(0, dtype=jaxgrad.int64)
    with pytest.raises(RuntimeError, match="does not support the out kwarg when as_tuple is True"):
        jaxgrad.nonzero(x, out=out, as_tuple=True)
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not tuple"):
        jaxgrad.nonzero(x, out=(out, out), as_tuple=True)


# matrices


@pytest.mark.parametrize("name", ["T", "mT", "H", "mH"])
def test_transposes_T_mT_H_mH(name):
    matrix = numbers((2, 3)) + 1j * numbers((2, 3))
    expected = matrix.T.conj() if "H" in name else matrix.T
    numpy.testing.assert_array_equal(getattr(jaxgrad.tensor(matrix), name).numpy(), expected)


def test_transposes_of_what_is_no_matrix():
    batch = jaxgrad.zeros(2, 3, 4)
    assert batch.mT.shape == batch.mH.shape == (2, 4, 3)
    with pytest.warns(UserWarning, match="deprecated"):
        assert batch.T.shape == (4, 3, 2)
    for name, tensor in (
        ("H", batch),
        ("H", batch[0, 0]),
        ("mT", batch[0, 0]),
        ("mH", batch[0, 0]),
    ):
        with pytest.raises(RuntimeError, match=f"tensor.{name} is only supported on matrices"):
            getattr(tensor, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert batch[0].H.shape == (4, 3)


def test_assigning_by_true_converts_and_by_false_does_nothing():
    x = jaxgrad.zeros(2, 3, dtype=jaxgrad.float64)
    x[True] = jaxgrad.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [[1.0, 2.0, 3.0]] * 2
    x[False] = jaxgrad.ones(7)
    assert x.tolist() == [[1.0, 2.0, 3.0]] * 2


def test_one_number_of_another_dtype_is_assigned_by_a_mask():
    x, number = jaxgrad.zeros(2, 3, dtype=jaxgrad.float64), jaxgrad.tensor(7.5)
    x[jaxgrad.tensor([True, False]), 1:] = number
    x[:, jaxgrad.tensor([True, False, False])] = number.reshape(1)
    assert x.tolist() == [[7.5, 7.5, 7.5], [7.5, 0.0, 0.0]]
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[jaxgrad.tensor([0])] = number


# what PyTorch writes of -1e9 into ones of half precision
OVERFLOWS = {
    "all": (slice(None), [-math.inf] * 3),
    "one": (0, [-math.inf, 1.0, 1.0]),
    "mask": (jaxgrad.tensor([True, False, True]), [-math.inf, 1.0, -math.inf]),
    "places": ([0, 1], [-math.inf, -math.inf, 1.0]),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_number_that_half_precision_does_not_hold(name):
    index, expected = OVERFLOWS[name]
    x = jaxgrad.ones(3, dtype=jaxgrad.float16)
    x[index] = -1e9
    assert x.tolist() == expected
    with pytest.raises(RuntimeError, match="without overflow"):
        x.float()[index] = 1e39
