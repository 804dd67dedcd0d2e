"""Places of elements: errors and answers of unravel_index, nonzero_static and argwhere."""

import jax
import pytest
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad

REFUSED = [
    ("torch.unravel_index(tensor(1.0), (2,))", TypeError, "expected 'indices' to be integer dtype"),
    ("torch.unravel_index(tensor(1), 2.0)", TypeError, "expected 'shape' to be int or sequence of"),
    ("torch.unravel_index(tensor(1), (2, -3))", ValueError, "'shape' cannot have negative values"),
    ("torch.nonzero_static(zeros(2), size=-1)", RuntimeError, "must be an non-negative integer"),
]

ANSWERS = [
    ("torch.unravel_index(tensor(-1), (2, 3))[1]", "int64", 2),
    ("torch.unravel_index(zeros(0, dtype=torch.int32), (2, 0))[1]", "int64", []),
    ("torch.argwhere(tensor(3.0)).sum(1)", "int64", [0]),
    ("torch.nonzero_static(tensor([0, 5]), size=2)", "int64", [[1], [-1]]),
    ("torch.nonzero_static(zeros(2, 0), size=1)", "int64", [[-1, -1]]),
    ("torch.nonzero_static(zeros(0), size=2, fill_value=7)", "int64", [[7], [7]]),
    # positions out of range count as the nearest ones
    (
        "torch._unsafe_masked_index(torch.arange(6.0).reshape(2, 3), tensor([[True, False], "
        "[True, True], [False, True]]), [tensor([[0], [1], [5]]), tensor([0, -7])], -8.5)",
        "float32",
        [[0.0, -8.5], [3.0, 3.0], [-8.5, 3.0]],
    ),
    (
        "torch._unsafe_masked_index_put_accumulate(torch.arange(6).reshape(2, 3), tensor([[True, "
        "False], [True, True], [False, True]]), [tensor([[0], [1], [5]]), tensor([0, -7])], "
        "torch.ones(3, 2).long())",
        "int64",
        [[1, 1, 2], [6, 4, 5]],
    ),
    ("torch._unsafe_masked_index(zeros(0), tensor([False]), [tensor([3])], 2)", "float32", [2.0]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


# ---- index_put


def masked():
    x = jaxgrad.arange(6.0).reshape(2, 3)
    return x, x > 2


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_index_put_of_masks(dtype):
    x, mask = masked()
    mask = mask.to(getattr(jaxgrad, dtype))
    values = jaxgrad.tensor([7.0, 8.0, 9.0])
    # PyTorch's answers
    assert jaxgrad.index_put(x, (mask,), values).tolist() == [[0, 1, 2], [7, 8, 9]]
    added = x.index_put((mask,), jaxgrad.tensor(1.0), accumulate=True)
    assert added.tolist() == [[0, 1, 2], [4, 5, 6]]
    columns = jaxgrad.tensor([1, 0, 1]).to(getattr(jaxgrad, dtype))
    assert x.index_put_((None, columns), -jaxgrad.ones(())).tolist() == [[-1, 1, -1], [-1, 4, -1]]
    with pytest.raises(IndexError, match="The shape of the mask"):
        jaxgrad.index_put(x, (mask[:, :2],), values)


def test_gradients_of_index_put_with_a_mask():
    x, mask = masked()
    values = jaxgrad.ones(3, requires_grad=True)
    base = x.clone().requires_grad_()
    jaxgrad.index_put(base, (mask,), values).square().sum().backward()
    assert values.grad.tolist() == [2, 2, 2]
    assert base.grad.tolist() == [[0, 2, 4], [0, 0, 0]]
    outer = jaxgrad.func.vmap(lambda v: jaxgrad.index_put(x, (mask,), v))(jaxgrad.eye(3))
    assert outer[1].tolist() == [[0, 1, 2], [0, 1, 0]]


def test_dtypes_of_indices():
    x, index = jaxgrad.arange(6.0).reshape(2, 3), jaxgrad.tensor([0, 1], dtype=jaxgrad.int32)
    calls = {
        r"take\(\): Expected a long tensor for index, but got Int": lambda: x.take(index),
        "dtype of indices should be Long but got Int": lambda: jaxgrad.take_along_dim(
            x, index[:, None], 1
        ),
        r"index_copy_\(\): Expected a long tensor": lambda: x.index_copy(0, index, x),
        r"put_\(\): Expected a long tensor": lambda: x.put_(index, jaxgrad.ones(2)),
        "only applicable to index tensor of type LongTensor": lambda: jaxgrad.nn.functional.one_hot(
            index
        ),
        "expected target dtype to be Long or Byte, but got Int": lambda: (
            jaxgrad.nn.functional.nll_loss(x, index)
        ),
    }
    for message, call in calls.items():
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(IndexError, match="Expected dtype int64 for index"):
        x.index_fill(0, index, 1)
    assert x.index_select(1, index).tolist() == [[0, 1], [3, 4]]
    # JAX has no other integers while its x64 mode is off
    long = jaxgrad.tensor([1, 0])
    with jax.enable_x64(False):
        taken = jax.jit(lambda v: jaxgrad.take(v, long))(jax.numpy.arange(3.0))
    assert taken.tolist() == [1, 0]
