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


# the node of each copy in PyTorch
NODES = {
    "alias_copy": ((), "AliasBackward0_copy"),
    "diagonal_copy": ((), "DiagonalBackward0_copy"),
    "expand_copy": (((2, 3, 3),), "ExpandBackward0_copy"),
    "narrow_copy": ((0, 0, 1), "NarrowCopyBackward0"),
    "permute_copy": (((1, 0),), "PermuteBackward0_copy"),
    "select_copy": ((0, 0), "SelectBackward0_copy"),
    "slice_copy": ((0, 0, 1), "SliceBackward0_copy"),
    "split_copy": ((1,), "SplitBackward0_copy"),
    "split_with_sizes_copy": (((1, 2),), "SplitWithSizesBackward0_copy"),
    "squeeze_copy": ((0,), "SqueezeBackward1_copy"),
    "t_copy": ((), "TBackward0_copy"),
    "transpose_copy": ((0, 1), "TransposeBackward0_copy"),
    "unbind_copy": ((), "UnbindBackward0_copy"),
    "unfold_copy": ((0, 2, 1), "UnfoldBackward0_copy"),
    "unsqueeze_copy": ((0,), "UnsqueezeBackward0_copy"),
    "view_copy": (((9,),), "ViewBackward0_copy"),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_of_copies(name):
    arguments, node = NODES[name]
    x = torch.arange(9.0).reshape(3, 3).requires_grad_()
    copied = getattr(torch, name)(x, *arguments)
    copied = [copied] if isinstance(copied, torch.Tensor) else copied
    assert copied[0].grad_fn.name() == node
    # of as many ones as the copy shows an element
    sum(part.sum() for part in copied).backward()
    view = getattr(torch.ops, name.removesuffix("_copy"))
    y = x.detach().clone().requires_grad_()
    shown = torch.ops.alias(y) if name == "alias_copy" else view(y, *arguments)
    shown = [shown] if isinstance(shown, torch.Tensor) else shown
    sum(part.sum() for part in shown).backward()
    assert x.grad.equal(y.grad) and x.grad.any()


def test_derivatives_of_a_copy():
    x = torch.arange(4.0).requires_grad_()
    (gradient,) = torch.autograd.grad((torch.view_copy(x, (2, 2)) ** 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert gradient.tolist() == [0, 3, 12, 27] and second.tolist() == [0, 6, 12, 18]
    tangent = torch.func.jvp(lambda t: torch.select_copy(t, 0, 1) ** 2, (x,), (x,))[1]
    assert tangent.item() == 2
    batch = torch.vmap(lambda t: torch.unbind_copy(t)[1])(torch.arange(6.0).reshape(2, 3))
    assert batch.tolist() == [1, 4]


def test_outputs_of_another_number_or_dtype():
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="expected an out= argument of size 2, got size 1"):
        torch.unbind_copy(x, out=[torch.empty(3)])
    with pytest.raises(TypeError, match="out"):
        torch.unbind_copy(x, out=torch.empty(2, 3))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.unbind_copy(x, out=[torch.empty(3, dtype=torch.int32)] * 2)
