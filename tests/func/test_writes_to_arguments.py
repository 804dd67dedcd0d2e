"""Functions of jaxgrad.func that write to their arguments, or return nested views of them."""

import chex
import numpy as np
import pytest

import jaxgrad
from jaxgrad.func import vmap

NUMBERS = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]


@pytest.mark.parametrize("function", [jaxgrad.compile, lambda function: function])
def test_a_write_to_an_argument_with_a_history(function):
    leaf = jaxgrad.tensor(NUMBERS, requires_grad=True)

    def loss(leaf):
        x = leaf * 1
        part = vmap(lambda row: row[1:].mul_(3), in_dims=1, out_dims=1)(x)
        return (x**2).sum() + part.sum()

    (gradient,) = jaxgrad.autograd.grad(function(loss)(leaf), leaf, create_graph=True)
    # by hand: x_0 ** 2 in the first row, (3 x) ** 2 + 3 x in the others
    expected = [
        [2 * x if row == 0 else 18 * x + 3 for x in numbers] for row, numbers in enumerate(NUMBERS)
    ]
    assert gradient.tolist() == expected
    (second,) = jaxgrad.autograd.grad(gradient.sum(), leaf)
    assert second.tolist() == [[2.0] * 4, [18.0] * 4, [18.0] * 4]


@pytest.mark.parametrize(
    ("function", "expected"), [(lambda row: row * 3, 18.0), (lambda row: row.sum(), 4.0)]
)
def test_second_derivatives_of_linear_functions_in_a_compiled_one(function, expected):
    # a linear function saves nothing, so its pass is differentiated itself
    leaf = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    loss = jaxgrad.compile(lambda x: (vmap(function)(x) ** 2).sum())
    (gradient,) = jaxgrad.autograd.grad(loss(leaf), leaf, create_graph=True)
    (second,) = jaxgrad.autograd.grad(gradient.sum(), leaf)
    assert second.tolist() == [[expected] * 2] * 2  # by hand: 2 * 3 ** 2, and 2 * 2


def test_a_write_of_a_recorded_value_along_another_dimension():
    base, weight = jaxgrad.zeros(2, 3), jaxgrad.tensor([5.0, 6.0, 7.0], requires_grad=True)

    def put(column, value):
        column[0] = value
        return column

    result = vmap(put, in_dims=(1, 0), out_dims=1)(base, weight)
    assert result.requires_grad and base.requires_grad
    assert base.tolist() == [[5.0, 6.0, 7.0], [0.0, 0.0, 0.0]]
    (gradient,) = jaxgrad.autograd.grad((result * jaxgrad.tensor([1.0, 2.0, 3.0])).sum(), weight)
    assert gradient.tolist() == [1.0, 2.0, 3.0]


def test_a_write_to_a_view_of_a_leaf_raises():
    doubled = vmap(lambda row: row.mul_(2))
    leaf = jaxgrad.tensor(NUMBERS, requires_grad=True)
    doubled(leaf * 1)
    doubled((leaf * 1)[:2])
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        doubled(leaf[:2])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        doubled(leaf)
    assert leaf.tolist() == NUMBERS


def test_one_tensor_as_two_arguments_shows_writes_in_both():
    def added(x, y):
        return x.mul_(2) + y

    batch = jaxgrad.tensor(NUMBERS)
    assert vmap(added)(batch, batch).tolist() == [[4 * x for x in row] for row in NUMBERS]
    nested = jaxgrad.tensor(NUMBERS)
    expected = [[4 * x for x in row] for row in NUMBERS]
    assert vmap(vmap(added))(nested, nested).tolist() == expected


@pytest.mark.parametrize(
    "other", [lambda x: x[:], lambda x: x[:, 1:3], lambda x: x[:, :3].t()[:, :2].t()[:, :2]]
)
def test_a_write_to_memory_that_another_argument_shows_raises(other):
    function = vmap(lambda x, y: x.mul_(2).sum() + y.sum())
    batch = jaxgrad.tensor(NUMBERS)
    function(batch[:2, :2], batch[:2, 2:])  # apart, and the program of these does not serve others
    changed = batch.tolist()
    with pytest.raises(RuntimeError, match="shares its memory"):
        function(batch[:2, :2], other(batch)[:2])
    assert batch.tolist() == changed


# the sizes of the batch; the mapped dimensions of the outer and the inner `vmap`
NESTED = [((4, 2, 7), 2, 0), ((3, 5, 4, 7), 3, 1), ((3, 5, 4, 7), 1, 1), ((4, 2, 5, 3, 7), 4, 0)]
VIEWS = {
    "select": lambda x: x[1],
    "unsqueeze": lambda x: x.unsqueeze(0),
    "transpose": lambda x: x.transpose(0, -1),
    "part": lambda x: x[::2],
    "unfold": lambda x: x.unfold(0, 2, 1),
    "diagonal": lambda x: x.diagonal(0, 0, -1) if x.ndim > 1 else x,
}


@pytest.mark.parametrize("name", VIEWS)
def test_nested_maps_along_any_dimensions_give_views(name):
    view = VIEWS[name]
    for shape, outer, inner in NESTED:
        batch = jaxgrad.arange(float(jaxgrad.Size(shape).numel())).reshape(shape).clone()
        result = vmap(vmap(view, in_dims=inner), in_dims=outer)(batch)
        assert result._base is batch
        # what one example after the other gives
        rows = batch.movedim(outer, 0).movedim(inner + 1, 1).flatten(0, 1)
        one_by_one = jaxgrad.stack([view(row) for row in rows]).unflatten(0, result.shape[:2])
        assert result.tolist() == one_by_one.tolist()
        if name == "unfold":
            continue  # its elements overlap
        result.zero_()
        left = jaxgrad.arange(1.0, 1.0 + batch.numel()).reshape(shape)
        vmap(vmap(lambda row: view(row).zero_(), in_dims=inner), in_dims=outer)(left)
        assert (batch == 0).tolist() == (left == 0).logical_or(batch == 0).tolist()


def test_nested_views_of_complex_numbers():
    batch = jaxgrad.complex(jaxgrad.arange(24.0), jaxgrad.ones(24)).reshape(4, 2, 3).clone()
    result = vmap(vmap(jaxgrad.view_as_real), in_dims=2)(batch)
    assert result._base is batch and result.shape == (3, 4, 2, 2)
    result.fill_(7)
    assert (batch == 7 + 7j).all()


func = jaxgrad.func
HESSIANS = {
    "forward over reverse": func.hessian,
    "forward over forward": lambda loss: func.jacfwd(func.jacfwd(loss)),
    "reverse over forward": lambda loss: func.jacrev(func.jacfwd(loss)),
    "reverse over reverse": lambda loss: func.jacrev(func.jacrev(loss)),
    "compiled": lambda loss: jaxgrad.compile(func.hessian(loss)),
    "mapped": lambda loss: lambda x: vmap(func.hessian(loss))(x[None])[0],
}


@pytest.mark.parametrize("hessian", HESSIANS.values(), ids=HESSIANS)
def test_second_derivatives_of_writes(hessian):
    def whole(x):
        x = x * x
        vmap(lambda row: row.mul_(row.sum()))(x)
        return x.sum()  # (a**2 + b**2) ** 2 of a row [a, b]

    def part(x):
        x = x * x
        first = vmap(lambda row: row[0].mul_(row[1]))(x)
        return (first * x[:, 1]).sum()  # a**2 b**4

    x = jaxgrad.tensor([[1.0, 2.0]])
    assert hessian(whole)(x).reshape(2, 2).tolist() == [[28.0, 16.0], [16.0, 52.0]]
    assert hessian(part)(x).reshape(2, 2).tolist() == [[32.0, 64.0], [64.0, 48.0]]


def test_tangents_of_a_written_argument():
    def loss(x, factor):
        written = vmap(lambda row, factor: row[1:].mul_(factor), in_dims=(0, None))(x, factor)
        return x.sum(), written

    x, factor = jaxgrad.tensor([[1.0, 2.0, 3.0]]), jaxgrad.tensor(5.0)
    outputs, tangents = func.jvp(loss, (x * 1, factor), (x, factor))
    assert [outputs[0].item(), outputs[1].tolist()] == [26.0, [[10.0, 15.0]]]
    assert [tangents[0].item(), tangents[1].tolist()] == [51.0, [[20.0, 30.0]]]
    # where the argument has no tangent, it gets one
    _, tangents = func.jvp(lambda factor: loss(x.clone(), factor), (factor,), (factor,))
    assert [tangents[0].item(), tangents[1].tolist()] == [25.0, [[10.0, 15.0]]]


def test_the_tangent_of_a_product_with_itself_in_place():
    def square(x):
        x = x * 1
        vmap(vmap(lambda a: a.mul_(a)))(x)
        return x

    x = jaxgrad.tensor([[3.0, -1.0]])
    assert func.jvp(square, (x,), (jaxgrad.ones(1, 2),))[1].tolist() == [[6.0, -2.0]]


def test_a_write_that_is_not_recorded_has_tangents_and_no_history():
    def loss(x):
        y = x * x

        def doubled(row):
            with jaxgrad.no_grad():
                row.mul_(2)

        vmap(doubled, out_dims=None)(y)
        return y.sum()

    x = jaxgrad.tensor([[1.0, 2.0]])
    # as without vmap: 2 x by reverse mode, which does not see the write
    assert func.grad(loss)(x).tolist() == [[2.0, 4.0]]
    assert func.jvp(loss, (x,), (jaxgrad.ones(1, 2),))[1].item() == 12.0


@pytest.mark.parametrize("function", [lambda function: function, jaxgrad.compile])
def test_derivatives_of_a_jacobian_whose_function_also_reads_its_argument(function):
    x = jaxgrad.tensor([1.0, 2.0])

    def diagonal(x):
        return func.jacfwd(lambda y: x**2 * y**2)(x).sum(0)  # 2 x**3

    def cross(x):
        return func.hessian(lambda y, z: (y * z**3).sum(), argnums=1)(x, x).sum(0)  # 6 x**2

    for scaled, slope, curvature in ((diagonal, 6 * x**2, 12 * x), (cross, 12 * x, 12 + 0 * x)):
        _, tangent = func.jvp(function(scaled), (x,), (jaxgrad.ones(2),))
        assert tangent.tolist() == slope.tolist()
        sums = function(func.hessian(lambda x, scaled=scaled: scaled(x).sum()))
        assert sums(x).diagonal().tolist() == curvature.tolist()


def test_second_derivatives_of_a_compiled_jacobian():
    @jaxgrad.compile
    def sums(x):
        return func.jacfwd(lambda y: y**4)(x).sum()  # 4 x**3

    x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    (gradient,) = jaxgrad.autograd.grad(sums(x), x, create_graph=True)
    (second,) = jaxgrad.autograd.grad(gradient.sum(), x)
    assert second.tolist() == [24.0, 48.0]


def written_whole(w):
    with jaxgrad.no_grad():
        w.mul_(2)
    return (w**3).sum()


def written_in_part(w):
    with jaxgrad.no_grad():
        w[0].mul_(2)
    return (w**3).sum()


# what PyTorch 2.13 prints
WRITTEN = {written_whole: ([2.0, 4.0], [12.0, 48.0]), written_in_part: ([2.0, 2.0], [12.0, 12.0])}


@pytest.mark.parametrize("function", WRITTEN)
@pytest.mark.parametrize(
    "gradient",
    [
        jaxgrad.func.grad,
        lambda f: lambda w: jaxgrad.func.grad_and_value(f)(w)[0],
        lambda f: lambda w: jaxgrad.func.vjp(f, w)[1](jaxgrad.tensor(1.0))[0],
        jaxgrad.func.jacrev,
        lambda f: lambda w: vmap(jaxgrad.func.grad(f))(w[None])[0],
        lambda f: jaxgrad.compile(lambda w: jaxgrad.func.grad(f)(w)),
        lambda f: lambda w: jaxgrad.func.grad(f)(w[:]),
    ],
)
def test_a_write_without_history_reaches_the_argument(gradient, function):
    w, (values, slopes) = jaxgrad.tensor([1.0, 2.0]), WRITTEN[function]
    assert gradient(function)(w).tolist() == slopes
    assert w.tolist() == values


def test_a_maximal_norm_of_rows_in_transforms():
    # the rows are scaled in place, and no derivative sees it, in forward mode neither
    index = jaxgrad.tensor([0, 0])

    def loss(table):
        return (jaxgrad.nn.functional.embedding(index, table, max_norm=1.0) ** 2).sum()

    table = jaxgrad.tensor([[3.0, 4.0], [0.3, 0.4]])
    gradient = jaxgrad.func.grad(loss)(table)
    chex.assert_trees_all_close(gradient.numpy(), np.float32([[2.4, 3.2], [0, 0]]), rtol=1e-5)
    chex.assert_trees_all_close(table[0].numpy(), np.float32([0.6, 0.8]), rtol=1e-5)
    table = jaxgrad.tensor([[3.0, 4.0], [0.3, 0.4]])
    _, tangent = jaxgrad.func.jvp(loss, (table,), (jaxgrad.ones(2, 2),))
    chex.assert_trees_all_close(tangent.numpy(), np.float32(5.6), rtol=1e-5)
    chex.assert_trees_all_close(table[0].numpy(), np.float32([0.6, 0.8]), rtol=1e-5)
