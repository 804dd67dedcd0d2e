"""Operators of `torch.ops.aten` that are functions in Python."""

import math

import pytest

import jaxgrad as torch

aten = torch.ops.aten


def test_functions_by_the_names_of_operators():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    statistics = torch.zeros(2), torch.ones(2)
    normalized = aten.batch_norm.default(x, None, None, *statistics, False, 0.1, 0.0, False)
    assert normalized.tolist() == x.tolist()
    assert aten.dropout.default(x, 0.5, False).tolist() == x.tolist()
    assert aten.linalg_inv.default(torch.eye(2) * 2).tolist() == [[0.5, 0], [0, 0.5]]
    assert aten.sym_size.int(x, 1) == 2
    assert [t.shape for t in aten.broadcast_tensors.default([x, x[0]])] == [(2, 2)] * 2
    zeros = aten.zeros.default([2], dtype=torch.int64, device=torch.device("cpu"), pin_memory=False)
    assert zeros.tolist() == [0, 0]


def test_forms_of_overloads():
    image = torch.tensor([[[[1.0, 2.0]]]])
    enlarged = aten.upsample_nearest2d.vec(image, None, [1.0, 2.0])
    assert enlarged.tolist() == [[[[1, 1, 2, 2]]]]
    losses = aten.nll_loss_nd.default(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]), None, 0)
    assert losses.tolist() == [2]


def test_names_and_schemas():
    add = aten.add.Tensor
    assert (str(add), add.name(), add.overloadpacket is aten.add) == (
        *("aten.add.Tensor", "aten::add.Tensor"),
        True,
    )
    assert (
        str(add._schema)
        == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )
    assert {"default", "dim_IntList"} <= {*aten.sum.overloads()}
    functional = aten._native_batch_norm_legit_functional.default
    assert len(functional._schema.returns) == 5


def test_names_that_are_missing():
    # torch 2.13: the first words of both
    with pytest.raises(AttributeError, match=r"'_OpNamespace' 'aten' object has no .*'no_such_'"):
        aten.no_such_.default  # noqa: B018
    with pytest.raises(AttributeError, match=r"of 'aten.add' has no overload name 'Foo'"):
        aten.add.Foo  # noqa: B018
    # an operator of PyTorch that jaxgrad lacks is a name that programs may list
    attention = aten._flash_attention_forward.default
    assert not hasattr(attention, "_schema")
    with pytest.raises(NotImplementedError, match=r"_flash_attention_forward.default is not prov"):
        attention()


def test_masks_are_indices():
    x, mask = torch.arange(6.0).reshape(2, 3), torch.tensor([True, False, True])
    for index in (aten.index, aten.index.Tensor):
        assert index(x, [None, mask]).tolist() == [[0, 2], [3, 5]]
    with pytest.raises(IndexError, match="at least one index must be provided"):
        aten.index.Tensor(x, [])
    zero, expected = torch.tensor(-1.0), [[-1, 1, -1], [-1, 4, -1]]
    assert aten.index_put.default(x, [None, mask], zero).tolist() == expected
    aten.index_put_(x, [None, mask], zero)
    assert x.tolist() == expected


ONE, TWO, X = torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([[3.0, 4.0]])


@pytest.mark.parametrize(
    ("name", "arguments", "mean"),
    [
        ("margin_ranking_loss", (ONE, TWO, ONE), 1.0),
        ("cosine_embedding_loss", (X, X, -ONE, 0.25), 0.75),
        ("hinge_embedding_loss", (torch.full((2,), 0.25), torch.tensor([1.0, -1.0])), 0.5),
        ("triplet_margin_loss", (X, X + 1, X), 1 + 2**0.5),
        ("mse_loss", (X, torch.zeros(1, 2)), 12.5),
    ],
)
def test_losses_reduce_by_the_mean_by_default(name, arguments, mean):
    """As their schemas in PyTorch say; the means by hand."""
    result = getattr(torch.ops.aten, name)(*arguments)
    assert result.shape == () and result.item() == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (torch, "kl_div"),
        (torch, "binary_cross_entropy_with_logits"),
        (torch._C._nn, "mse_loss"),
        (torch._C._nn, "l1_loss"),
        (torch._C._nn, "binary_cross_entropy"),
        (torch._C._nn, "huber_loss"),
        (torch._C._nn, "smooth_l1_loss"),
        (torch._C._nn, "soft_margin_loss"),
    ],
)
def test_losses_of_bindings_are_not_reduced_by_default(place, name):
    """As PyTorch 2.13 prints them: its bindings read the default of the schema as 0."""
    expected = {
        "kl_div": [-0.3912, -0.4219],
        "binary_cross_entropy_with_logits": [0.7144, 0.8741],
        "mse_loss": [0.04, 0.09],
        "l1_loss": [0.2, 0.3],
        "binary_cross_entropy": [0.7645, 0.6931],
        "huber_loss": [0.02, 0.045],
        "smooth_l1_loss": [0.02, 0.045],
        "soft_margin_loss": [0.6783, 0.6444],
    }[name]
    losses = getattr(place, name)(torch.tensor([0.1, 0.5]), torch.tensor([0.3, 0.2]))
    assert losses.tolist() == pytest.approx(expected, abs=1e-4)
    mean = getattr(place, name)(torch.tensor([0.1, 0.5]), torch.tensor([0.3, 0.2]), reduction=1)
    assert mean.item() == pytest.approx(sum(expected) / 2, abs=1e-4)


def test_losses_of_classes_are_not_reduced_by_default_in_bindings():
    rows, classes = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([1, 0])
    assert torch._C._nn.nll_loss(rows, classes).tolist() == [2, 3]
    assert torch._C._nn.nll_loss_nd(rows, classes).tolist() == [2, 3]
    assert torch._C._nn.cross_entropy_loss(rows, classes).tolist() == pytest.approx(
        [1.3133, 0.3133], abs=1e-4
    )


def test_losses_take_numbers_of_reductions():
    """The loss of each row is 0.85, the example of PyTorch's docs."""
    rows = torch.tensor([[0.1, 0.2, 0.4, 0.8]] * 2), torch.tensor([[3, 0, -1, 1]] * 2)
    for loss in (torch.ops.aten.multilabel_margin_loss, torch._C._nn.multilabel_margin_loss):
        assert loss(*rows, 0).tolist() == pytest.approx([0.85, 0.85])
        assert [loss(*rows, n).item() for n in (1, 2)] == pytest.approx([0.85, 1.7])
    assert torch._C._nn.mse_loss(X, torch.zeros(1, 2), 2).item() == 25


def test_forms_with_memory_formats():
    """Shapes and strides as PyTorch 2.13 has them."""
    aten, x = torch.ops.aten, torch.ones(2, 3, 4, 5)
    last = x.contiguous(memory_format=torch.channels_last)
    for name in ("clone", "zeros_like", "ones_like", "rand_like", "_to_copy"):
        out = getattr(aten, name).out(last, out=torch.empty(0))
        assert out.shape == x.shape and out.stride() == (60, 20, 5, 1)
    larger = aten.resize(x, [2, 3, 4, 6], memory_format=torch.channels_last)
    assert larger.stride() == (72, 1, 18, 3) and x.shape == (2, 3, 4, 5)
    alike = aten.resize_as(torch.ones(0), last, memory_format=torch.preserve_format)
    assert alike.stride() == last.stride()
    assert aten.sym_is_contiguous(x) and not aten.sym_is_contiguous(last)
    assert aten.is_strides_like_format(last, torch.channels_last)
    assert not aten.is_strides_like_format(x, torch.contiguous_format)


def _integral(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


OPERATORS_OF_GRAPHS = {
    "logit_backward": ((torch.ones(3), torch.tensor([0.25, 0.5, 1.5])), [16 / 3, 4, math.nan]),
    "logit_backward with eps": ((torch.ones(2), torch.tensor([0.5, 0.95]), 0.1), [4, 0]),
    "_reshape_alias": ((torch.arange(4.0), [2, 2], [1, 2]), [[0, 2], [1, 3]]),
    "slow_conv3d": ((_integral(1, 1, 2, 2, 2), torch.ones(1, 1, 1, 2, 2), [1, 2, 2]), [6, 22]),
    "thnn_conv2d": ((_integral(1, 1, 2, 2), torch.ones(1, 1, 2, 1), [2, 1]), [2, 4]),
    "_masked_softmax": ((torch.zeros(3), torch.tensor([True, False, False])), [0, 0.5, 0.5]),
}


@pytest.mark.parametrize("name", OPERATORS_OF_GRAPHS)
def test_operators_of_graphs(name):
    """Closed forms; PyTorch 2.13 gives the same."""
    arguments, expected = OPERATORS_OF_GRAPHS[name]
    result = getattr(torch.ops.aten, name.partition(" ")[0])(*arguments)
    expected = torch.tensor(expected, dtype=torch.float32).reshape(result.shape)
    assert torch.allclose(result, expected, equal_nan=True)
    assert name != "_reshape_alias" or result._base is arguments[0]


def test_unique_rows_have_an_inverse_and_counts():
    rows = torch.tensor([[3, 4], [1, 2], [1, 2]])
    values = [[[1, 2], [3, 4]], [1, 0, 0], [2, 1]]
    assert [part.tolist() for part in torch.ops.aten.unique_dim(rows, 0)] == values
    runs = [part.tolist() for part in torch.ops.aten.unique_dim_consecutive(rows, 0)]
    assert runs == [[[3, 4], [1, 2]], [0, 1, 1], [1, 2]]


@pytest.mark.parametrize("name", ["uniform", "exponential", "cauchy", "log_normal", "random"])
def test_functional_forms_of_random_methods(name):
    x = torch.zeros(3)
    torch.manual_seed(0)
    drawn = getattr(torch.ops.aten, name)(x)
    torch.manual_seed(0)
    assert torch.equal(drawn, getattr(x.clone(), f"{name}_")()) and not x.any()
    assert torch.ops.aten.bernoulli.Tensor(x, torch.ones(3)).tolist() == [1, 1, 1]
    assert torch.ops.aten.set(x, torch.ones(2)).tolist() == [1, 1] and len(x) == 3


def test_views_of_bytes_that_are_not_in_memory_are_refused():
    z = torch.tensor([1 + 2j]).conj()
    for view in (lambda: z.view(torch.float32), lambda: z.imag.view(torch.int32)):
        with pytest.raises(RuntimeError, match=r"Tensor\.view is not supported for "):
            view()
    assert z.resolve_conj().view(torch.float32).tolist() == [1, -2]


def test_running_sums_in_place_keep_the_dtype():
    with pytest.raises(RuntimeError, match="Bad in-place call: "):
        torch.ones(2).cumsum_(0, dtype=torch.float64)
    assert torch.ones(2).cumsum_(0, dtype=torch.float32).tolist() == [1, 2]
