"""Copies of views: their values, strides and `out=`, as PyTorch gives them."""

import pytest

import jaxgrad as torch

CASES = [
    ("as_strided_copy", ((2, 2), (1, 2), 1), [[1, 3], [2, 4]]),
    ("permute_copy", ((1, 0),), [[0, 3], [1, 4], [2, 5]]),
    ("t_copy", (), [[0, 3], [1, 4], [2, 5]]),
    ("transpose_copy", (0, 1), [[0, 3], [1, 4], [2, 5]]),
    ("view_copy", ((3, 2),), [[0, 1], [2, 3], [4, 5]]),
    ("narrow_copy", (1, 1, 2), [[1, 2], [4, 5]]),
    ("slice_copy", (1, 0, 3, 2), [[0, 2], [3, 5]]),
    ("select_copy", (0, 1), [3, 4, 5]),
    ("diagonal_copy", (1,), [1, 5]),
    ("expand_copy", ((1, 2, 3),), [[[0, 1, 2], [3, 4, 5]]]),
    ("unfold_copy", (1, 2, 1), [[[0, 1], [1, 2]], [[3, 4], [4, 5]]]),
    ("unsqueeze_copy", (0,), [[[0, 1, 2], [3, 4, 5]]]),
    ("squeeze_copy", (), [[0, 1, 2], [3, 4, 5]]),
    ("alias_copy", (), [[0, 1, 2], [3, 4, 5]]),
    ("_neg_view_copy", (), [[0, -1, -2], [-3, -4, -5]]),
]


@pytest.mark.parametrize(("name", "arguments", "values"), CASES)
def test_copy_of_a_view(name, arguments, values):
    x = torch.arange(6.0).reshape(2, 3)
    function, out = getattr(torch, name), torch.zeros(0)
    copied = function(x, *arguments)
    assert copied.tolist() == values and copied.is_contiguous() and not copied._is_view()
    assert function(x, *arguments, out=out) is out and out.tolist() == values


def test_copies_of_several_views():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert [part.tolist() for part in torch.unbind_copy(x, 1)] == [[0, 3], [1, 4], [2, 5]]
    first, second = torch.split_with_sizes_copy(x, (1, 2), 1)
    (first.sum() + 3 * second.sum()).backward()
    assert not second._is_view() and x.grad.tolist() == [[1, 3, 3], [1, 3, 3]]
    out = [torch.zeros(0), torch.zeros(0)]
    torch.split_copy(x.detach(), 2, 1, out=out)
    assert [part.tolist() for part in out] == [[[0, 1], [3, 4]], [[2], [5]]]


def test_a_copy_needs_no_strides_that_fit():
    x = torch.arange(6.0).reshape(2, 3).t()
    assert torch.view_copy(x, (6,)).tolist() == [0, 3, 1, 4, 2, 5]
    assert torch.view_copy(x, torch.int32).dtype is torch.int32
