"""Operators of PyTorch with an underscore: numbers of PyTorch 2.13, or those of the public form."""

import math

import pytest

import jaxgrad
from jaxgrad import ops

NAN, INF = math.nan, math.inf


def leaf(numbers):
    return jaxgrad.tensor(numbers, dtype=jaxgrad.float64, requires_grad=True)


def test_batch_norm_with_and_without_statistics():
    x, weight = leaf([[1.0, 2.0], [3.0, 6.0]]), leaf([2.0, 1.0])
    mean, var = jaxgrad.zeros(2).double(), jaxgrad.ones(2).double()
    y, *saved = jaxgrad._native_batch_norm_legit(x, weight, None, mean, var, True, 0.5, 0.0)
    assert (
        y.tolist() == [[-2, -1], [2, 1]] and mean.tolist() == [1, 2] and var.tolist() == [1.5, 4.5]
    )
    assert [part.tolist() for part in saved] == [[2, 4], [1, 0.5]]
    y, *_ = jaxgrad._native_batch_norm_legit(x, weight, None, True, 0.5, 0.0)
    assert y.tolist() == [[-2, -1], [2, 1]]
    running = jaxgrad.zeros(2).double(), jaxgrad.ones(2).double()
    y, *saved = jaxgrad._native_batch_norm_legit_no_training(x, weight, None, *running, 0.5, 0.0)
    y.sum().backward()
    assert y.tolist() == [[2, 2], [6, 6]] and [part.numel() for part in saved] == [0, 0]
    assert x.grad.tolist() == [[2, 1]] * 2 and weight.grad.tolist() == [4, 8]
    aten = jaxgrad.ops.aten
    assert len(aten._batch_norm_no_update(x, weight, None, *running, 0.5, 0.0)) == 4
    assert running[0].tolist() == [0, 0]
    y, *_, reserve = aten._batch_norm_with_update(x, weight, None, *running, 0.5, 0.0)
    assert y.tolist() == [[-2, -1], [2, 1]] and running[0].tolist() == [1, 2]
    assert reserve.dtype is jaxgrad.uint8 and reserve.numel() == 0


def test_linear_combinations_are_added_to_out():
    x, weights = jaxgrad.arange(4.0).reshape(2, 2), jaxgrad.tensor([[1.0, 2.0], [0.0, -1.0]])
    out, combined = jaxgrad.ones(2, 2), [[4, 7], [-2, -3]]
    assert jaxgrad._compute_linear_combination(x, weights).tolist() == combined
    assert jaxgrad._compute_linear_combination(x, weights, out=out) is out
    assert out.tolist() == [[5, 8], [-1, -2]]
    numbers = jaxgrad._compute_linear_combination(x * 1j, weights)
    assert numbers.dtype is jaxgrad.complex64 and numbers.imag.tolist() == combined


def test_masked_indices_may_be_out_of_range():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    rows, columns = jaxgrad.tensor([0, 7, -1]), jaxgrad.tensor([1, 0, -9])
    mask = jaxgrad.tensor([True, False, True])
    picked = jaxgrad._unsafe_masked_index(x, mask, [rows, columns], 9.0)
    assert picked.tolist() == [2, 9, 3]
    picked.sum().backward()
    assert x.grad.tolist() == [[0, 1], [1, 0]]
    values = leaf([10.0, 20.0, 30.0])
    result = jaxgrad._unsafe_masked_index_put_accumulate(x, mask, [rows, columns], values)
    result.sum().backward()
    assert result.tolist() == [[1, 12], [33, 4]] and values.grad.tolist() == [1, 0, 1]
    with pytest.raises(RuntimeError, match=r"found unexpected index type torch.bool"):
        jaxgrad._unsafe_masked_index(x, mask, [mask], 0)
    assert jaxgrad._unsafe_masked_index(x[:0], mask, [rows, columns], 2).tolist() == [2, 2, 2]


def test_unsafe_forms_of_indexing():
    x, index = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([0, 0])
    assert jaxgrad._unsafe_index(x, [index]).tolist() == [1, 1]
    assert jaxgrad._unsafe_index_put(x, [index], jaxgrad.ones(2), True).tolist() == [3, 2, 3]
    assert jaxgrad._index_put_impl_(x, [index], jaxgrad.ones(2), True) is x
    assert x.tolist() == [3, 2, 3]


def test_chunks_are_concatenated():
    x, y = leaf([1.0, 2.0, 3.0]), leaf([[4.0, 5.0], [6.0, 7.0]])
    result = jaxgrad._chunk_cat([x, y], 0, 2)
    assert result.tolist() == [[1, 2, 4, 5], [3, 0, 6, 7]]
    (result * result).sum().backward()
    assert x.grad.tolist() == [2, 4, 6] and y.grad.tolist() == [[8, 10], [12, 14]]
    wide = jaxgrad._chunk_cat([jaxgrad.ones(2, 1), jaxgrad.zeros(2, 3)], 1, 2)
    assert wide.tolist() == [[[1, 0, 0], [0, 0, 0]]] * 2
    for tensors, count, message in [
        ([], 2, "non-empty input tensor list"),
        ([x], 0, "positive num_chunks"),
        ([x, x.float()], 2, "same dtype"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            jaxgrad._chunk_cat(tensors, 0, count)
    with pytest.raises(RuntimeError, match=r"same sizes of 0,...,dim-1 dimensions"):
        jaxgrad._chunk_cat([jaxgrad.ones(2, 1), jaxgrad.ones(3, 1)], 1, 2)


def test_softmax_of_nothing_is_zero():
    x = leaf([[0.0, math.log(3.0)], [-INF, -INF]])
    result = jaxgrad._safe_softmax(x, 1)
    assert result[0].tolist() == pytest.approx([0.25, 0.75]) and result[1].tolist() == [0, 0]
    result[:, 0].sum().backward()
    assert x.grad[0].tolist() == pytest.approx([0.1875, -0.1875])
    assert x.grad[1].tolist() == [0, 0]
    assert jaxgrad._safe_softmax(x, 1, jaxgrad.float32).dtype is jaxgrad.float32


def test_reductions():
    x = jaxgrad.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert [part.item() for part in jaxgrad._aminmax(x)] == [1, 5]
    assert [part.tolist() for part in jaxgrad._aminmax(x, 0, True)] == [[[2, 1]], [[3, 5]]]
    assert jaxgrad._is_all_true(x > 0).item() and not jaxgrad._is_any_true(x > 5).item()
    with pytest.raises(RuntimeError, match="expects a tensor of bool"):
        jaxgrad._is_any_true(x)
    assert (jaxgrad._logcumsumexp(x, 1) == x.logcumsumexp(1)).all()


def test_products():
    a = jaxgrad.tensor([[100, -100]], dtype=jaxgrad.int8)
    result = jaxgrad._int_mm(a, a.t())
    assert result.tolist() == [[20000]] and result.dtype is jaxgrad.int32
    with pytest.raises(RuntimeError, match="Expected mat2 to be a matrix of int8"):
        jaxgrad._int_mm(a, a.t().int())
    bias, one = jaxgrad.tensor([1.0, -1.0]), jaxgrad.ones(1, 1)
    row = jaxgrad.tensor([[-2.0, 3.0]])
    assert jaxgrad._addmm_activation(bias, one, row, beta=2).tolist() == [[0, 1]]
    gelu = jaxgrad._addmm_activation(bias, one, row, use_gelu=True)
    assert gelu[0].tolist() == pytest.approx([-0.158655, 1.9545], abs=1e-5)
    lu, pivots, info = jaxgrad._lu_with_info(jaxgrad.tensor([[2.0, 4.0], [1.0, 3.0]]))
    assert (lu.tolist(), pivots.tolist(), info.item()) == ([[2, 4], [0.5, 1]], [1, 2], 0)


def test_convolutions():
    x, kernel = jaxgrad.tensor([[[1.0, 2.0, 3.0]]]), jaxgrad.tensor([[[1.0, 1.0, 1.0]]])
    flags = False, False, True, True
    result = jaxgrad._convolution(x, kernel, None, [1], [1], [1], False, [0], 1, *flags)
    assert result.tolist() == [[[3, 6, 5]]]
    assert jaxgrad._convolution_mode(x, kernel, None, [1], "same", [1], 1).tolist() == [[[3, 6, 5]]]


def test_questions_about_quantized_tensors():
    quantized = jaxgrad.quantize_per_tensor(jaxgrad.ones(2), 0.5, 3, jaxgrad.quint8)
    assert (jaxgrad.q_scale(quantized), jaxgrad.q_zero_point(quantized)) == (0.5, 3)
    assert jaxgrad.int_repr(quantized).tolist() == [5, 5]


def test_names_in_aten():
    assert ops.aten._chunk_cat([jaxgrad.ones(2)], 0, 2).tolist() == [[1], [1]]
    with pytest.raises(AttributeError, match="has no attribute '_no_such_name'"):
        ops.aten._no_such_name()


def test_results_of_a_batch_norm_in_given_tensors():
    x, out = leaf([[1.0], [3.0]]).detach(), [jaxgrad.empty(0).double() for _ in range(3)]
    arguments = x, None, None, None, None, True, 0.1, 0.0
    results = jaxgrad.native_batch_norm(*arguments, out=tuple(out))
    assert all(result is target for result, target in zip(results, out, strict=True))
    assert [target.tolist() for target in out] == [[[-1], [1]], [2], [1]]
