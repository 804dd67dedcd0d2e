"""Writes to views of leaves, and views whose history is not known."""

import pytest
from helpers.as_torch import as_torch, error, leaf

import jaxgrad

OF_A_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation"


def zeros(torch, *shape):
    return torch.zeros(*shape, dtype=torch.float64)


WRITES = {
    "add_": lambda torch, v: v.add_(1),
    "mul_ by a tensor": lambda torch, v: v.mul_(v.detach()),
    "setitem": lambda torch, v: v.__setitem__(0, 5.0),
    "fill_": lambda torch, v: v.fill_(3),
    "copy_": lambda torch, v: v.copy_(zeros(torch, 2)),
    "uniform_": lambda torch, v: v.uniform_(),
    "view of it": lambda torch, v: v[:1].zero_(),
    "foreach": lambda torch, v: torch._foreach_add_([v], 1),
}


@as_torch
def test_views_made_before_their_leaf_required_grad_refuse_writes(torch):
    told = {}
    for name, write in WRITES.items():
        x = zeros(torch, 3)
        v = x[:2]
        x.requires_grad_()
        told[name] = error(lambda write=write, v=v: write(torch, v)), x.detach().tolist()
    return told


@as_torch("""
    tensor([11.0, 11.0, 0.0], dtype=float64, requires_grad=True)
    tensor([22.0, 22.0, 0.0], dtype=float64)
""")
def test_writes_before_a_leaf_requires_grad_and_under_no_grad(torch):
    x = zeros(torch, 3)
    v = x[:2]
    v.add_(5)
    x.requires_grad_()
    with torch.no_grad():
        v.mul_(2)
    v = x[:2]
    with torch.no_grad():
        v.add_(1)
    (x * x).sum().backward()
    return x, x.grad


@as_torch("""
    RuntimeError(
     'a view of a leaf Variable that requires grad is being used in an in-place '
     'operation.')
    tensor([1.0, 2.0], dtype=float64, requires_grad=True)
    tensor([2.0, 4.0], dtype=float64)
    tensor([1.0, 2.0, 2.0], dtype=float64)
""")
def test_a_view_that_was_made_a_leaf(torch):
    x = zeros(torch, 3)
    v, w = x[:2], x[1:]
    v.requires_grad_()
    told = error(v.add_, 1)
    x.add_(1)
    w.add_(1)
    (v * v).sum().backward()
    return told, v, v.grad, x


@as_torch("""
    True
    False
    tensor([2.0, 2.0, 0.0], dtype=float64)
""")
def test_writes_of_recorded_values_to_the_base_of_a_leaf(torch):
    x, y = zeros(torch, 3), leaf(torch, 1.0, 2.0, 3.0, dtype=torch.float64)
    v = x[:2]
    v.requires_grad_()
    x.add_(y * 2)
    return v.requires_grad, v.is_leaf, torch.autograd.grad(v.sum(), y)[0]


def test_a_compiled_function_refuses_to_write_to_a_view_of_a_leaf():
    w = leaf(jaxgrad, 1.0, 2.0)

    @jaxgrad.jit
    def captured():
        w[:1].add_(1)

    @jaxgrad.jit
    def created(x):
        whole = x.clone()
        view = whole[:1]
        whole.requires_grad_()
        view.add_(1)

    for call in (captured, lambda: created(jaxgrad.ones(2))):
        with pytest.raises(RuntimeError, match=OF_A_LEAF):
            call()
    assert w.tolist() == [1.0, 2.0] and w._version == 0


def test_a_transform_refuses_to_write_to_a_view_of_its_argument():
    def function(x):
        x[:1].mul_(2)
        return x.sum()

    for transform in (jaxgrad.func.grad, jaxgrad.func.jacrev):
        with pytest.raises(RuntimeError, match=OF_A_LEAF):
            transform(function)(jaxgrad.ones(2))


# ---- views made where grad mode was off, after a write to their base


def severed(torch, block, several):
    y = leaf(torch, 1.0, 2.0, 3.0, dtype=torch.float64) * 2
    with block():
        view = y.unbind()[0] if several else y[:2]
    y.mul_(3)
    return view


@as_torch
def test_the_history_of_a_view_made_without_grad_is_refused(torch):
    told = []
    for block in (torch.no_grad, torch.inference_mode):
        for several in (False, True):
            view = severed(torch, block, several)
            told.append(
                (
                    [error(lambda v=view: v.grad_fn), error(lambda v=view: v.is_leaf)],
                    [error(lambda v=view: v * 2), error(view.mul_, 2)],
                    [view.grad, view.retains_grad, view.requires_grad, repr(view)],
                    view.detach(),
                )
            )
    return told


@as_torch("""
    [True, False]
    [False, True]
    [False, True]
    [True, False]
""")
def test_the_block_that_the_message_names(torch):
    said = []
    for block in (torch.no_grad, torch.inference_mode):
        view = severed(torch, block, False)
        words = str(error(lambda v=view: v.grad_fn)["says"])
        said.append([f"inside the {n} block" in words for n in ("no_grad", "inference_mode")])
        said.append([n in words for n in ("in normal mode", "with grad mode enabled")])
    return said


def test_a_view_without_known_history_is_no_parameter():
    assert not isinstance(severed(jaxgrad, jaxgrad.no_grad, False), jaxgrad.nn.Parameter)


@as_torch("""
    RuntimeError('a leaf Variable that requires grad has been used in an in-place operation.')
    RuntimeError('a leaf Variable that requires grad has been used in an in-place operation.')
""")
def test_a_Function_that_writes_to_a_view_of_a_leaf(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    told = []
    for early in (False, True):
        x = torch.ones(3, requires_grad=not early)
        with torch.no_grad():
            view = x[:2]
        x.requires_grad_()
        told.append(error(Double.apply, view, words="requires grad has been used in an in-place"))
        with torch.no_grad():
            Double.apply(view)
    return told


# ---- views of views, where grad mode was off


def viewing(torch):
    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    return View.apply


@as_torch
def test_the_mode_of_the_last_view_tells_why_a_write_is_refused(torch):
    base = leaf(torch, 1.0, 2.0) * 1
    whole, (piece, _) = viewing(torch)(base), base.unbind()
    with torch.no_grad():
        quiet = base[:1]
        views = [quiet, whole[:1], whole.unbind()[0], piece.view(1), quiet.unbind()[0]]
    with torch.inference_mode():
        views += [quiet[:1], whole[:1], quiet.unbind()[0]]
    told, words = [error(view.mul_, 2) for view in views], " mode and is being modified inplace"
    return told, [error(view.view(1).mul_, 2, words=words) for view in views]


@as_torch
def test_the_history_of_views_by_Functions_after_a_write_to_their_base(torch):
    base = leaf(torch, 1.0, 2.0) * 1
    view = viewing(torch)(base)
    base.mul_(2)
    return error(lambda: view.grad_fn and 0), error(lambda: (view * 2).sum().backward())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("write", [lambda base: base.sin_(), lambda base: base[1:].fill_(2)])
def test_views_of_a_detached_tensor_leave_the_graph_at_the_next_write(write, compiled):
    """The gradient is that of the values that were used: 2 * 1.5 of the product alone."""

    def step(x):
        base = x * 1.5
        view = base[0]
        product = view * 2
        base.detach_()
        write(base)
        ((view * view).sum() + (base * base).sum() + product.sum()).backward()
        return x.grad

    x = jaxgrad.tensor([[0.3, 0.9], [0.7, 0.4]], requires_grad=True)
    assert (jaxgrad.jit(step) if compiled else step)(x).tolist() == [[3.0, 3.0], [0.0, 0.0]]


def test_a_view_that_is_a_leaf_stays_one_at_writes_to_its_base():
    base = jaxgrad.ones(2, 2)
    view = base[0].requires_grad_()
    with jaxgrad.no_grad():
        base.mul_(3)
    (view * view).sum().backward()
    assert view.is_leaf and view.grad.tolist() == [6.0, 6.0]
