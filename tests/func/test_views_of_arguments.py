"""Results of `vmap` that are views of its arguments, as PyTorch's are."""

import pytest

import jaxgrad as torch

VIEWS = [
    (lambda t: t.view(2, 6), 0, [2, 2, 6], (12, 6, 1), 0),
    (lambda t: t.transpose(0, 1), 0, [2, 4, 3], (12, 1, 4), 0),
    (lambda t: t.transpose(0, 1), 1, [3, 4, 2], (4, 1, 12), 0),
    (lambda t: t[1, 1:], 0, [2, 3], (12, 1), 5),
    (lambda t: t.select(0, 1), 2, [4, 3], (1, 4), 12),
    (lambda t: t.diagonal(), 0, [2, 3], (12, 5), 0),
    (lambda t: t.expand(2, 3, 4), 0, [2, 2, 3, 4], (12, 0, 4, 1), 0),
    (lambda t: t.unfold(1, 2, 1), 0, [2, 3, 3, 2], (12, 4, 1, 1), 0),
    (lambda t: t.as_strided((2,), (1,)), 0, [2, 2], (12, 1), 0),
    (lambda t: torch.view_as_complex(t.view(6, 2)), 0, [2, 6], (6, 1), 0),
    (lambda t: t, 1, [3, 2, 4], (4, 12, 1), 0),
]


@pytest.mark.parametrize(("function", "dim", "shape", "strides", "offset"), VIEWS)
def test_view_of_an_argument(function, dim, shape, strides, offset):
    x = torch.zeros(2, 3, 4)
    result = torch.vmap(function, in_dims=dim)(x)
    shown = list(result.shape), result.stride(), result.storage_offset()
    assert result._base is x and shown == (shape, strides, offset)
    x.fill_(3)
    assert (torch.view_as_real(result) if result.is_complex() else result).eq(3).all()


def test_writes_and_gradients_of_views_of_an_argument():
    x = torch.arange(8.0).reshape(2, 4).clone()
    result = torch.vmap(lambda t: t[:2].zero_())(x)
    result.add_(7)
    assert x.tolist() == [[7, 7, 2, 3], [7, 7, 6, 7]]
    torch.vmap(lambda t: t.view(2, 2)[1].mul_(10))(x)
    assert x.tolist() == [[7, 7, 20, 30], [7, 7, 60, 70]]
    x.requires_grad_()
    (torch.vmap(lambda t: t[1:3])(x) ** 2).sum().backward()
    assert x.grad.tolist() == [[0, 14, 40, 0], [0, 14, 120, 0]]
    assert torch.vmap(lambda t: t[1:] * 2)(x)._base is None


@pytest.mark.parametrize(("in_dim", "out_dim"), [(0, 0), (1, 1), (2, -1)])
def test_an_example_itself_gives_the_argument_itself(in_dim, out_dim):
    x = torch.zeros(2, 3, 4)
    assert torch.vmap(lambda t: t, in_dim, out_dim)(x) is x
    assert torch.vmap(torch.Tensor.add_, (in_dim, None), out_dim)(x, torch.tensor(1.0)) is x
    assert torch.vmap(lambda t: [t, t * 2], in_dim, out_dim)(x)[0] is x and x.eq(1).all()
    nested = torch.vmap(torch.vmap(torch.Tensor.exp_, in_dim), in_dim)
    y = torch.zeros(3, 3, 3, 3)
    assert (nested(y) is y) == (in_dim == 0) and y.eq(1).all()


def test_results_that_all_examples_share_are_expanded():
    x, w = torch.zeros(3, 2), torch.tensor([1.0, 2.0], requires_grad=True)
    shared, part, whole = torch.vmap(lambda t: (w, w[1:], w.detach()), out_dims=(0, 1, None))(x)
    assert [shared.stride(), part.stride()] == [(0, 1), (1, 0)]
    assert shared._base is w and part._base is w and part.tolist() == [[2, 2, 2]]
    assert whole.shape == (2,)
    (shared.sum() + 2 * part.sum()).backward()
    assert w.grad.tolist() == [3, 9]
    inner = torch.vmap(lambda t: torch.vmap(lambda u: t)(x))(w.detach())
    assert inner.stride() == (1, 0) and inner.tolist() == [[1, 1, 1], [2, 2, 2]]


CONSTANTS = [  # each gives 1 where PyTorch's results have memory of their own
    lambda t: torch.ones_like(t),
    lambda t: torch.full_like(t, 1),
    lambda t: t.new_ones(2),
    lambda t: torch.zeros_like(t) + 1,
    lambda t: t.clone().fill_(1),
    torch.func.grad(lambda t: t.sum()),
]


@pytest.mark.parametrize("function", CONSTANTS)
def test_a_write_to_a_result_that_no_example_changes(function):
    result = torch.vmap(function)(torch.zeros(3, 2))
    result[0, 0] = 5
    assert result.tolist() == [[5, 1], [1, 1], [1, 1]] and result.stride() == (2, 1)
    assert result.add_(1).tolist() == [[6, 2], [2, 2], [2, 2]]


def test_dimensions_of_results_follow_the_structure_of_the_results():
    x = torch.zeros(2, 3)
    with pytest.raises(ValueError, match="not compatible"):
        torch.vmap(lambda pair: pair[0], in_dims=((0, 0),))([x, x])
    with pytest.raises(ValueError, match="not compatible"):
        torch.vmap(lambda t: t, out_dims=[1])(x)
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        torch.vmap(lambda t: t, out_dims=None)(x)


def test_views_of_examples_of_examples():
    x = torch.arange(24.0).reshape(2, 3, 4).clone()
    result = torch.vmap(torch.vmap(lambda t: t[1:], in_dims=1))(x)
    assert result._base is x and result.stride() == (12, 1, 4) and result.storage_offset() == 4


def test_memory_of_other_examples_is_refused():
    x = torch.arange(12.0).reshape(3, 4)
    column = torch.vmap(lambda t: t.as_strided((2,), (4,), 4), in_dims=1)(x)
    assert column.tolist() == [[4, 8], [5, 9], [6, 10], [7, 11]]
    with pytest.raises(RuntimeError, match="can access memory outside of `tensor`"):
        torch.vmap(lambda t: t.as_strided((2,), (1,)), in_dims=1)(x)


FORWARD = [
    (lambda t: t[1:], [[1, 2], [4, 5]]),
    (lambda t: t.view(1, 3), [[[0, 1, 2]], [[3, 4, 5]]]),
    (lambda t: t.unbind()[2], [2, 5]),
    (lambda t: t.expand(2, 3)[:, 1], [[1, 1], [4, 4]]),
    (lambda t: t.as_strided((2,), (2,)), [[0, 2], [3, 5]]),
]


@pytest.mark.parametrize(("function", "values"), FORWARD)
def test_tangents_of_views_of_an_argument(function, values):
    x = torch.arange(6.0).reshape(2, 3)
    mapped = torch.vmap(function)
    for run in (lambda: torch.func.jvp(mapped, (x,), (x * 2,)), lambda: dual_of(mapped, x, x * 2)):
        result, tangent = run()
        assert result.tolist() == values and (tangent == 2 * result).all()
    rows = torch.func.jacfwd(mapped)(x).reshape(-1, 6)
    assert (
        rows.sum(1).eq(1).all()
        and (rows @ x.reshape(6)).tolist()
        == torch.tensor(values, dtype=torch.float32).reshape(-1).tolist()
    )


def dual_of(function, primal, tangent):
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(primal, tangent)))


def test_strides_between_the_elements_of_an_example():
    x = torch.arange(6.0).reshape(3, 2).t()  # the elements of an example are 2 apart
    repeated = torch.vmap(lambda t: t.as_strided((2,), (0,)) * t.sum())
    assert repeated(x).tolist() == [[0, 0], [9, 9]]
    result, tangent = torch.func.jvp(repeated, (x,), (torch.ones(2, 3),))
    assert tangent.tolist() == [[6, 6], [12, 12]] and result.tolist() == [[0, 0], [9, 9]]
    assert torch.vmap(lambda t: t.as_strided((2,), (4,)))(x).tolist() == [[0, 4], [1, 5]]


def test_strides_in_the_memory_of_examples_with_gaps():
    # PyTorch's answers; the offset is that of the argument in its memory
    memory = torch.arange(96.0).reshape(2, 2, 4, 3, 2)
    x = memory[:, :, 2, :, 1]
    (outer, inner), offset = x.stride()[1:], x.storage_offset()
    assert (outer, inner, offset) == (24, 2, 13)
    seen = []

    def diagonal(t):
        seen.append((t.storage_offset(), t[1].storage_offset()))
        return t.as_strided((2,), (outer + inner,), offset)

    result = torch.vmap(diagonal)(x)
    assert result._base is x._base and result.tolist() == [[13, 39], [61, 87]]
    assert seen == [(13, 37)]
    column = torch.vmap(lambda t: t.as_strided((2,), (outer,), offset + inner))(x)
    assert column.tolist() == [[15, 39], [63, 87]]
    nested = torch.vmap(torch.vmap(lambda t: t.as_strided((2,), (inner,), t.storage_offset() + 2)))
    assert nested(x).tolist() == [[[15, 17], [39, 41]], [[63, 65], [87, 89]]]
    with pytest.raises(RuntimeError, match="can access memory outside of `tensor`"):
        torch.vmap(lambda t: t.as_strided((3,), (1,)))(x)


def test_an_offset_belongs_to_the_argument_of_a_call():
    x = torch.arange(24.0).reshape(4, 2, 3)

    def first_and_last(t):
        return t.as_strided((2,), (2,), t.storage_offset())

    for number in (1, 2, 1):
        rows = torch.vmap(first_and_last)(x[number])
        assert rows.tolist() == x[number][:, ::2].tolist()


def test_gradients_of_strides_between_gaps():
    x = torch.arange(12.0).reshape(2, 3, 2)[:, :, 0].requires_grad_()
    torch.vmap(lambda t: t.as_strided((2,), (4,)) ** 2)(x).sum().backward()
    assert x.grad.tolist() == [[0, 0, 8], [12, 0, 20]]


def squares(t):
    return (t.as_strided((2,), (1,), t.storage_offset() + 1) ** 2).sum()


def test_offsets_in_gradients_are_those_of_the_argument():
    # PyTorch's answers
    x = torch.arange(24.0).reshape(4, 6)
    of_one, of_all = (
        torch.func.grad(squares),
        torch.func.grad(lambda t: torch.vmap(squares)(t).sum()),
    )
    for number in (1, 2, 1):
        rows = x[number : number + 2]
        expected = [[0, 2 * row[1], 2 * row[2], 0, 0, 0] for row in rows.tolist()]
        assert [of_one(row).tolist() for row in rows] == expected
        assert torch.vmap(of_one)(rows).tolist() == of_all(rows).tolist() == expected
        pull = torch.func.vjp(squares, rows[0])[1]
        assert pull(torch.tensor(1.0))[0].tolist() == expected[0]
        assert torch.func.hessian(squares)(rows[0]).diagonal().tolist() == [0, 2, 2, 0, 0, 0]
    with pytest.raises(RuntimeError, match=r"outside of `tensor`: .* begins at element 6"):
        torch.func.grad(lambda t: t.as_strided((2,), (1,), 0).sum())(x[1])


def test_strides_of_an_argument_with_a_history():
    # PyTorch's answers
    x = torch.arange(24.0).reshape(4, 6).requires_grad_()
    expected = [0, 26, 28, 0, 0, 0]
    assert torch.func.grad(squares)(x[2]).tolist() == expected
    assert torch.func.grad(lambda t: squares(t[:3]))(x[2]).tolist() == expected
    assert torch.vmap(torch.func.grad(squares))(x[2:])[0].tolist() == expected
    row = torch.tensor([0.0, 0.5, 2.0])
    nested = torch.func.grad(lambda t: torch.func.grad(squares)(t).sin().sum())(row)
    torch.testing.assert_close(nested, 2 * torch.tensor([0, 0.5403023, -0.6536436]))


@pytest.mark.parametrize(
    ("function", "dim", "strides", "offset"),
    [
        (lambda t: t.detach(), 0, (6, 2, 1), 0),
        (lambda t: t.detach(), 1, (2, 6, 1), 0),
        (lambda t: t.detach()[1:], 0, (6, 2, 1), 2),
        (lambda t: t.unsafe_split(1)[1], 0, (6, 2, 1), 2),
        (lambda t: t.view(torch.int32), 0, (6, 2, 1), 0),
        (lambda t: t.view(torch.int16), 0, (12, 4, 1), 0),
        (lambda t: t[1:].view(torch.int64), 0, (3, 1, 1), 1),
    ],
)
def test_results_that_share_the_memory_of_an_argument(function, dim, strides, offset):
    x = torch.ones(2, 3, 2)
    result = torch.vmap(function, in_dims=dim)(x)
    assert result.stride() == strides and result.storage_offset() == offset
    assert result.untyped_storage()._cdata == x.untyped_storage()._cdata
    result.zero_()
    assert not x[:, 1].any()
    x.fill_(1)
    assert result.any()


def test_parts_of_an_example_have_histories_of_their_own():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    first, rest = torch.vmap(lambda row: row.unsafe_split(2))(y)
    with torch.no_grad():
        y.mul_(10)
    assert first.tolist() == [[0, 10], [30, 40]]
    (first.sum() * 2 + rest.pow(2).sum()).backward()
    assert x.grad.tolist() == [[2, 2, 40], [2, 2, 100]]  # as PyTorch, by the values of now
    detached = torch.vmap(lambda row: row.detach())(x)
    assert not detached.requires_grad
    detached[0] = 5
    assert x.tolist() == [[5, 5, 5], [3, 4, 5]]


def turned(x):
    x.transpose_(0, 1)
    return x.detach()


def test_a_view_of_an_argument_that_is_turned_in_place():
    x = torch.arange(12.0).reshape(2, 2, 3).clone()
    detached = torch.vmap(turned)(x)
    assert detached.tolist() == [[[0, 3], [1, 4], [2, 5]], [[6, 9], [7, 10], [8, 11]]]
    detached[0, 0] = 9
    assert x.tolist()[0][0] == [9, 9]


def squeezed(x, factor):
    turned = x.mT
    x.squeeze_()
    x.mul_(2)
    return turned


def test_a_view_of_an_example_along_another_dimension_whose_memory_is_left():
    x = torch.arange(16.0).reshape(2, 2, 2, 2)
    nested = torch.vmap(torch.vmap(squeezed, in_dims=(0, None)), in_dims=(1, 0))
    wanted = (2 * x).transpose(0, 1).transpose(2, 3)
    assert nested(x.clone(), torch.ones(2)).tolist() == wanted.tolist()


def overwrites_detached(x):
    detached = x.detach()
    detached *= x
    return x, detached


def adds_detached(x):
    total = x * 1
    detached = total.detach()
    total.add_(detached)
    return total, detached


# what PyTorch gives for x = [1, 2] and its tangent [1, 10]
TANGENTS = [
    (overwrites_detached, [[1, 4], [1, 4]], [[1, 10], [1, 20]]),
    (adds_detached, [[2, 4], [2, 4]], [[1, 10], [0, 0]]),
]


@pytest.mark.parametrize(("function", "values", "tangents"), TANGENTS)
def test_a_tensor_and_its_detached_alias_have_tangents_of_their_own(function, values, tangents):
    x, tangent = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 10.0]])
    results = torch.func.jvp(torch.vmap(function), (x.clone(),), (tangent,))
    assert [[t[0].tolist() for t in part] for part in results] == [values, tangents]


def test_a_write_to_a_part_of_a_detached_argument_with_a_tangent_raises():
    def write(x):
        x.detach()[0] = 3
        return x

    x = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="shares its memory with a detached one"):
        torch.func.jvp(torch.vmap(write), (x,), (x.clone(),))
    assert torch.vmap(lambda x: torch.func.jvp(write, (x,), (x.clone(),)))(x)[0].tolist() == [
        [3, 1],
        [3, 1],
    ]
