"""Tensors: attributes, leaves, and Python's protocols. Messages are those of PyTorch 2.13."""

import copy
import math
import warnings

import jax
import numpy as np
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
from jaxgrad.core import dtypes


def leaf(*values, **options):
    return jaxgrad.tensor(values or (1.0, 2.0), requires_grad=True, **options)


# ---- shape and dtype


def test_shape_size_and_dim():
    x = jaxgrad.zeros(2, 3, dtype=jaxgrad.float16)
    assert repr(x.shape) == repr(x.size()) == "torch.Size([2, 3])"
    assert (x.size(0), x.size(-1), x.size(dim=1)) == (2, 3, 3)
    assert x.ndim == x.dim() == x.ndimension() == 2
    assert x.numel() == x.nelement() == x.shape.numel() == jaxgrad.numel(x) == 6
    assert (x.element_size(), x.itemsize, x.nbytes) == (2, 2, 12)
    assert jaxgrad.zeros(()).shape == () and jaxgrad.zeros(()).numel() == 1
    assert isinstance(x.shape[1:], jaxgrad.Size) and isinstance(x.shape + (1,), jaxgrad.Size)


def test_sizes_that_are_not_there():
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 5"):
        jaxgrad.zeros(2, 3).size(5)
    with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
        jaxgrad.tensor(1).size(0)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_kinds_of_dtypes(dtype):
    x = jaxgrad.zeros(1, dtype=dtype)
    assert x.is_floating_point() == jaxgrad.is_floating_point(x) == (dtype.numpy.kind in "fV")
    assert x.is_complex() == jaxgrad.is_complex(x) == (dtype.numpy.kind == "c")
    assert x.is_signed() == (dtype.numpy.kind not in "bu")
    assert jaxgrad.is_tensor(x) and not jaxgrad.is_tensor(x.numpy())


def test_queries_take_tensors_only():
    for query in (jaxgrad.numel, jaxgrad.is_floating_point, jaxgrad.is_complex):
        with pytest.raises(TypeError, match="must be Tensor, not list"):
            query([1])


@pytest.mark.parametrize(
    "name", ["shape", "dtype", "ndim", "is_leaf", "grad_fn", "output_nr", "device"]
)
def test_attributes_that_are_read_only(name):
    with pytest.raises(AttributeError):
        setattr(jaxgrad.ones(1), name, 1)


# ---- requires_grad, leaves


def test_requires_grad_is_set_and_read():
    x = jaxgrad.ones(2)
    assert not x.requires_grad and x.is_leaf
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    y = leaf() * 2
    assert y.requires_grad_() is y
    assert y.requires_grad and not y.is_leaf


def test_requires_grad_is_a_bool():
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        jaxgrad.ones(1).requires_grad = 1
    with pytest.raises(TypeError, match=r"argument 'requires_grad' \(position 1\) must be bool"):
        jaxgrad.ones(1).requires_grad_(1)


def test_requires_grad_of_a_computed_tensor_stays():
    with pytest.raises(
        RuntimeError, match="you can only change requires_grad flags of leaf variables"
    ):
        (leaf() * 2).requires_grad = False


@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if dtype.category < 2], ids=str)
def test_integers_require_no_gradient(dtype):
    message = "only Tensors of floating point and complex dtype can require gradients"
    with pytest.raises(RuntimeError, match=message):
        jaxgrad.ones(1, dtype=dtype).requires_grad = True
    assert not jaxgrad.ones(1, dtype=dtype).requires_grad_(False).requires_grad


def test_what_was_computed_before_is_not_tracked():
    x = jaxgrad.ones(2)
    y = x * 2
    x.requires_grad_()
    assert not y.requires_grad and (x * 2).requires_grad


def test_which_tensors_are_leaves():
    x = leaf()
    y = x * 2
    assert (x.is_leaf, x.grad_fn, x.output_nr) == (True, None, 0)
    assert (y.is_leaf, y.grad_fn.name()) == (False, "MulBackward0")
    assert y.detach().is_leaf and not y.detach().requires_grad
    assert [tensor.output_nr for tensor in jaxgrad.stack([x, x]).unbind(0)] == [0, 1]


# ---- grad


def test_grad_is_set_and_read():
    x = leaf()
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4] and not x.grad.requires_grad
    gradient = jaxgrad.ones(2)
    x.grad = gradient
    assert x.grad is gradient
    del x.grad
    assert x.grad is None
    x.grad = None


def test_grad_of_a_computed_tensor_warns():
    with pytest.warns(
        UserWarning, match="attribute of a Tensor that is not a leaf Tensor is being"
    ):
        assert (leaf() * 2).grad is None


@pytest.mark.parametrize(
    ("gradient", "error", "words"),
    [
        (3, TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
        (jaxgrad.ones(3), RuntimeError, r"a gradient of size '\[3\]' to a tensor of size '\[2\]'"),
        (jaxgrad.ones(2).double(), RuntimeError, "attempting to assign a gradient with dtype"),
    ],
)
def test_grad_that_does_not_fit(gradient, error, words):
    x = leaf()
    with pytest.raises(error, match=words):
        x.grad = gradient
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    assert x.grad is None


def test_retain_grad_keeps_the_gradient_of_a_result():
    x = leaf()
    y = x * 3
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [6, 12] and x.grad.tolist() == [18, 36]
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(
        RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"
    ):
        jaxgrad.ones(1).retain_grad()


# ---- numbers


def test_item_of_one_element():
    assert jaxgrad.tensor([[1.5]]).item() == 1.5
    assert leaf(2.0).item() == 2.0
    for value in (True, 3, 2.5, 1j):
        item = jaxgrad.tensor(value).item()
        assert item == value and type(item) is type(value)
    with pytest.raises(
        RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"
    ):
        jaxgrad.ones(2).item()


@pytest.mark.parametrize("values", [3, [], [[], []], [[1, 2], [3, 4]], [True], [1j], [[[0.5]]]])
def test_tolist_gives_nested_numbers(values):
    assert jaxgrad.tensor(values).tolist() == values
    if not isinstance(values, list) or values in ([1j], [[[0.5]]]):
        assert jaxgrad.tensor(values).requires_grad_(values != 3).tolist() == values


def test_truth_of_one_element():
    for value in (1, -0.5, True, 1j, math.nan):
        assert jaxgrad.tensor([value])
    for value in (0, 0.0, False, 0j, -0.0):
        assert not jaxgrad.tensor(value)
    with pytest.raises(
        RuntimeError, match="Boolean value of Tensor with more than one value is ambi"
    ):
        bool(jaxgrad.ones(2))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        bool(jaxgrad.ones(0))


def test_conversion_to_python_numbers():
    assert (float(jaxgrad.tensor(2)), int(jaxgrad.tensor([2.7]))) == (2.0, 2)
    assert complex(jaxgrad.tensor(2.0)) == 2 + 0j
    assert float(jaxgrad.tensor(3 + 0j)) == 3
    assert int(leaf(1.0)) == 1
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
        assert float(leaf(1.0)) == 1.0
    with pytest.raises(
        ValueError, match="only one element tensors can be converted to Python scal"
    ):
        float(jaxgrad.ones(2))
    with pytest.raises(RuntimeError, match="cannot be converted to type double without overflow"):
        float(jaxgrad.tensor(1j))
    with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overflow"):
        int(jaxgrad.tensor(1j))
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        int(jaxgrad.tensor(math.nan))


def test_a_tensor_as_an_index():
    letters = "abc"
    assert (
        letters[jaxgrad.tensor(1)] + letters[jaxgrad.tensor([2])] + letters[jaxgrad.tensor(True)]
        == "bcb"
    )
    for wrong in (jaxgrad.tensor(0.0), jaxgrad.tensor([0, 0])):
        with pytest.raises(
            TypeError, match="only integer tensors of a single element can be conve"
        ):
            letters[wrong]


# ---- containers


def test_length_and_iteration():
    x = leaf(1.0, 2.0)
    assert len(jaxgrad.zeros(3, 2)) == 3
    first, second = x
    assert repr(first) == "tensor(1., grad_fn=<UnbindBackward0>)"
    (first * second * second).backward()
    assert x.grad.tolist() == [4, 4]
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(jaxgrad.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(jaxgrad.tensor(1))


def test_contains_compares_elements():
    x = jaxgrad.tensor([1.0, 2.0])
    assert 2 in x and 3.0 not in x and jaxgrad.tensor(1.0) in x
    for wrong in ("a", None):
        with pytest.raises(
            RuntimeError, match=r"Tensor\.__contains__ only supports Tensor or scalar"
        ):
            _ = wrong in x


def test_hash_is_identity():
    x, y = jaxgrad.ones(2), jaxgrad.ones(2)
    assert len({x, y, x}) == 2 and {x: "x"}[x] == "x"


# ---- copies


def test_deepcopy_of_leaves():
    x = leaf()
    (x * x).sum().backward()
    duplicate = copy.deepcopy(x)
    assert repr(duplicate) == repr(x) and duplicate.is_leaf
    assert duplicate.grad.tolist() == [2, 4] and duplicate.grad is not x.grad
    both = copy.deepcopy([x, x])
    assert both[0] is both[1] is not x
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)
    assert repr(copy.copy(x * 2)) == "tensor([2., 4.], requires_grad=True)"


# ---- text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: leaf(2.0)[0].detach().requires_grad_(), "tensor(2., requires_grad=True)"),
        (lambda: leaf(2.0).sum() * 2, "tensor(4., grad_fn=<MulBackward0>)"),
        (lambda: jaxgrad.ones(1).double(), "tensor([1.], dtype=torch.float64)"),
        (lambda: jaxgrad.zeros(2, 0), "tensor([], size=(2, 0))"),
    ],
)
def test_repr_of_tensors(make, text):
    assert repr(make()) == str(make()) == text


def test_format_of_tensors():
    assert f"{jaxgrad.tensor(1.5):.3f} {jaxgrad.tensor(7):03d} {leaf(2.0).sum()}" == "1.500 007 2.0"
    assert f"{jaxgrad.ones(1)}" == "tensor([1.])"
    with pytest.raises(TypeError, match=r"Tensor\.__format__: '.2f' is for one number"):
        f"{jaxgrad.ones(1):.2f}"


# ---- JAX


def test_a_tensor_is_a_pytree():
    tree = {"x": leaf().detach(), "y": [jaxgrad.zeros(2)]}
    doubled = jax.tree.map(lambda array: array * 2, tree)
    assert isinstance(doubled["x"], jaxgrad.Tensor)
    assert (doubled["x"].tolist(), doubled["y"][0].tolist()) == ([2, 4], [0, 0])
    assert [type(array).__name__ for array in jax.tree.leaves(tree)] == ["ArrayImpl"] * 2
    same = jax.tree.structure({"x": jaxgrad.ones(2), "y": [jaxgrad.ones(2)]})
    assert jax.tree.structure(tree) == same
    assert jax.tree.unflatten(same, [None, None])["x"] is not None


def test_tensors_through_transformations_of_jax():
    x = leaf()
    assert jax.jit(lambda t: t * t)(x.detach()).tolist() == [1, 4]
    with pytest.raises(TypeError, match="gradient would be lost"):
        jax.jit(lambda t: t * t)(x)
    assert jax.vmap(lambda t: t.sum())(jaxgrad.ones(3, 2)).tolist() == [2, 2, 2]
    assert jax.grad(lambda t: (t * t).sum()._array)(x.detach()).tolist() == [2, 4]


def test_numbers_inside_a_trace_are_refused():
    reads = (
        bool,
        float,
        jaxgrad.Tensor.item,
        jaxgrad.Tensor.tolist,
        jaxgrad.Tensor.numpy,
        np.asarray,
    )

    def program(x):
        for read in reads:
            with pytest.raises(RuntimeError, match="which is being traced"):
                read(jaxgrad.tensor(x))
        return repr(jaxgrad.tensor(x)) and x

    assert jax.jit(program)(1.0) == 1.0


def test_arguments_of_jax():
    assert jax.numpy.sin(jaxgrad.zeros(1)).tolist() == [0]
    with pytest.raises(TypeError, match="its gradient would be lost"):
        jax.numpy.asarray(leaf())


def test_reading_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = leaf(1.0)
        assert (x.item(), x.tolist(), bool(x), int(x), repr(x)) == (
            1.0,
            [1.0],
            True,
            1,
            "tensor([1.], requires_grad=True)",
        )


@as_torch
def test_sizes_are_of_ints(torch):
    size, words = torch.Size, "takes an iterable of 'int'"
    good = ([True], [torch.tensor(2)], torch.tensor([1, 2]), range(3), {1: 2}, [np.int64(3)])
    bad = ([1.5], [1, "a"], [None], "ab", [torch.tensor(2.5)], [torch.tensor([1, 2])], [[1]])
    return [
        [str(size(sizes)) for sizes in good],
        [error(size, sizes, words=words) for sizes in bad],
        error(lambda: size([1]) + (2.5,), words=words),
        [size([1]) + (2,), size([1]) * 2],
    ]
