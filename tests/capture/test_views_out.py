"""Views that leave a compiled function share memory with their base, as they do uncompiled.

For each kind of view: what a function returns is written to after the call, through the view and
through the base, and differentiated. The oracles are PyTorch's recorded answers, the function
uncompiled, and for random programs the same programs without writes (storage/programs.py).
"""

import functools
import gc

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import checks
from helpers.as_torch import as_torch
from hypothesis import HealthCheck
from storage import programs
from storage.compare import arrays, observed, same
from storage.views import VIEWS

import jaxgrad
from jaxgrad.compiled.compiler_options import writes_to_parts
from jaxgrad.nn.utils import parameters_to_vector


def compiled(torch, function):
    """The function, compiled where the module is jaxgrad."""
    return jaxgrad.jit(function) if torch is jaxgrad else function


# ---- each kind of view, and what is done with it after the call


def base_of(torch, view):
    """A tensor of which views of this kind can be made."""
    dtype = torch.complex128 if view.is_complex else torch.float64
    values = 0.1 * (1 + np.arange(np.prod(view.shape))).reshape(view.shape)
    return torch.tensor((values * (1 + 1j if view.is_complex else 1)).tolist(), dtype=dtype)


# Each gives, of a leaf, a function that returns a base and a view of it, and its argument.
ORIGINS = {
    "of a leaf": lambda leaf, view: (lambda x: (x, view(x)), leaf),
    "of an argument": lambda leaf, view: (lambda x: (x, view(x)), leaf * 1),
    "of a constant": lambda leaf, view: (lambda x: (x, view(x)), leaf.detach()),
    "of a result": lambda leaf, view: ((lambda x: (lambda y: (y, view(y)))(x * 2)), leaf),
    "after a write": lambda leaf, view: (lambda x: (x.mul_(3), view(x)), leaf * 1),
    "before a write": lambda leaf, view: (lambda x: (lambda v: (x.mul_(3), v))(view(x)), leaf * 1),
}


def without_recording(write):
    def action(torch, base, view):
        with torch.no_grad():
            write(torch, base, view)

    return action


ACTIONS = {
    "nothing": lambda torch, base, view: None,
    "write to the view": lambda torch, base, view: view.mul_(3),
    "write to the base": lambda torch, base, view: base.mul_(3),
    "constant into the view": lambda torch, base, view: view.fill_(2),
    "both": lambda torch, base, view: (view.mul_(2), base.add_(1), view.mul_(base.real.sum())),
    "unrecorded": without_recording(lambda torch, base, view: view.mul_(3)),
    "unrecorded base": without_recording(lambda torch, base, view: base.mul_(3)),
}


def outcome(torch, base, view, leaf, action):
    """All that can be observed of a base and a view of it after an action, and the gradient."""
    try:
        action(torch, base, view)
        raised = None
    except RuntimeError as error:
        # PyTorch's words, without the name of the node: that is the function's where it is compiled
        raised = (str(error).partition(" is a view and ")[2] or str(error)).partition(".")[0]
    facts = {"raised": raised, "base": base.detach().clone(), "view": view.detach().clone()}
    for name, tensor in (("base", base), ("view", view)):
        facts[f"{name} is"] = [
            tensor.requires_grad,
            tensor.is_leaf,
            tensor._is_view(),
            tensor._version,
        ]
    facts["base of the view"] = view._base is base
    shares = view.untyped_storage() == base.untyped_storage()
    facts["bytes between"] = view.data_ptr() - base.data_ptr() if shares else "another memory"
    loss = sum(
        (tensor * tensor.conj()).real.sum() for tensor in (base, view) if tensor.requires_grad
    )
    if leaf.requires_grad and not isinstance(loss, int):
        facts["gradient"] = torch.autograd.grad(loss, leaf, allow_unused=True)[0]
    return facts


def outcomes(torch, view, origin, compile):
    """The outcomes of all actions, each after another call of one function."""
    function, results = None, {}
    for name, action in ACTIONS.items():
        leaf = base_of(torch, view).requires_grad_()
        uncompiled, argument = ORIGINS[origin](leaf, lambda x: view.call(torch, x))
        function = function or compile(uncompiled)
        results[name] = outcome(torch, *function(argument), leaf, action)
    return results, function


def equal(facts, wanted, where):
    assert facts.keys() == wanted.keys(), where
    for key, value in wanted.items():
        if isinstance(value, jaxgrad.Tensor):
            np.testing.assert_allclose(facts[key].numpy(), value.numpy(), 1e-12, err_msg=where)
        else:
            assert facts[key] == value, f"{where}: {key} is {facts[key]}, not {value}"


QUICK = ("select", "transpose", "expand", "view", "unbind", "detach", "view_of_view", "imag")


@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [pytest.param(v, marks=[] if v.name in QUICK else pytest.mark.slow, id=v.name) for v in VIEWS],
)
def test_views_are_those_of_the_uncompiled_function(view):
    for origin in ORIGINS:
        results, step = outcomes(jaxgrad, view, origin, jaxgrad.jit)
        wanted, _ = outcomes(jaxgrad, view, origin, lambda function: function)
        for action in ACTIONS:
            equal(results[action], wanted[action], f"{view} {origin}, {action}")
        assert len(step.traces) == 1, step.explain()


# PyTorch and jaxgrad differ on purpose in what they do with some others (docs/conventions.md)
COMPARED = (
    "select",
    "slice_with_step",
    "transpose",
    "squeeze",
    "view",
    "diagonal",
    "detach",
    "unfold",
    "view_of_view",
    "imag",
)


def summed(torch, value):
    """A number in place of a tensor, to which each element contributes differently."""
    if not hasattr(value, "detach"):
        return value
    value = (value * (1 - 0.5j)).real if value.is_complex() else value
    weights = torch.arange(1, 1 + value.numel(), dtype=torch.float64).sqrt()
    return (value.reshape(-1) * weights).sum().item()


@pytest.mark.slow
@as_torch(precision=1e-12)
def test_views_are_those_of_pytorch(torch):
    return {
        f"{view} {origin}, {action}": [summed(torch, value) for value in facts.values()]
        for view in VIEWS
        for origin in ORIGINS
        if view.name in COMPARED
        for action, facts in outcomes(torch, view, origin, lambda f: compiled(torch, f))[0].items()
    }


# ---- random programs, cut in two


def split(program, cut, is_inside):
    """The results of a program whose first steps are compiled, and its handles.

    is_inside: whether the handles that the steps begin with are created by that function.
    """
    steps = list(zip(program.steps, program.errors, strict=True))
    errors, inputs = [], programs.leaves(jaxgrad)

    def take(steps, handles):
        for step, error in steps:
            run = programs.refuses if error else programs.take
            errors.append(run(jaxgrad, step, handles))
        return handles

    @jaxgrad.jit
    def first(a, b, c):
        return take(steps[:cut], [a * 1.0, b * 1.0, c] if is_inside else [a, b, c])

    a, b = inputs if is_inside else [leaf * 1.0 for leaf in inputs]
    handles = first(a, b, jaxgrad.tensor(programs.numbers("c"), dtype=jaxgrad.float64))
    take(steps[cut:], handles)
    readable, loss = programs.read(jaxgrad, program, handles)
    return handles, programs.Outcome(
        program.steps,
        tuple(errors),
        {name: tensor.detach().numpy() for name, tensor in readable.items()},
        tuple(gradient.numpy() for gradient in programs.gradients_of(jaxgrad, loss, inputs)),
        {name: programs.significant(t.shape, t.stride()) for name, t in readable.items()},
    )


def placed(handles):
    """What else can be observed of handles, and which of them share memory."""
    return [
        (
            {**observed(handle), "version": None},  # of a new tensor it begins at 0
            [number for number, other in enumerate(handles) if other is handle._base],
            [handle.untyped_storage() == other.untyped_storage() for other in handles],
        )
        for handle in handles
    ]


def check_split(draws, cut, is_inside):
    with jax.enable_x64(True):
        program = programs.interpret(draws)
        numbers = arrays(program)
    handles, results = split(program, cut, is_inside)
    same(program, numbers, results, f"the first {cut} steps compiled,")
    _, eager = programs.run(jaxgrad, program)
    assert placed(handles) == placed(eager), f"the first {cut} steps compiled of\n{program}"
    checks.count("aliasing")


@pytest.mark.slow
def test_random_programs_of_which_a_part_is_compiled():
    strategy = hypothesis.strategies
    settings = hypothesis.settings(max_examples=60, suppress_health_check=list(HealthCheck))
    cuts, insides = strategy.integers(1, 11), strategy.booleans()
    settings(hypothesis.given(programs.drawn_steps, cuts, insides)(check_split))()


# ---- by hand


def numbers(*shape, requires_grad=False):
    values = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
    return jaxgrad.tensor(values, requires_grad=requires_grad)


def test_each_call_of_one_program_gives_views_of_its_argument():
    step = jaxgrad.jit(lambda x: x[1:])
    pairs = [(x, step(x)) for x in (numbers(3), numbers(3) * 2)]
    for _, view in pairs:
        view.add_(1)
    assert [x.tolist() for x, _ in pairs] == [[1, 3, 4], [2, 5, 7]]
    part = numbers(5)[1:4]
    inner = step(part)
    inner.mul_(10)
    assert part._base.tolist() == [1, 2, 30, 40, 5] and inner._base is part._base
    assert inner.storage_offset() == 2 and len(step.traces) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "index", [lambda i: jaxgrad.tensor(i), lambda i: i], ids=["a tensor", "an int"]
)
def test_the_index_of_a_view_is_that_of_the_call(index):
    q, wanted = numbers(4, 2), np.arange(1.0, 9).reshape(4, 2)
    take = jaxgrad.jit(lambda i: (q[i], q[:, 1:][i, 0], q.detach().view(2, 4).view(4, 2)[i]))
    for i in (1, 2, 3, -1):
        row, number, same_row = take(index(i))
        row.mul_(2)
        wanted[i] *= 2
        q.add_(1)
        wanted += 1
        assert q.tolist() == wanted.tolist() and row.tolist() == same_row.tolist()
        assert row.tolist() == wanted[i].tolist() and number.item() == wanted[i, 1]
        assert row.storage_offset() == 2 * (i % 4)
        same_row.zero_()
        wanted[i] = 0
        assert q.tolist() == wanted.tolist() and number.item() == 0


def test_views_whose_base_is_gone_share_memory():
    def pieces(x):
        y = x * 2
        return y[:2], y[1:], y.detach()[1:2], y.clone()[1:]

    for run in (pieces, jaxgrad.jit(pieces)):
        x = numbers(3, requires_grad=True)
        first, last, middle, alone = run(x)
        assert first._base is last._base and first._base.tolist() == [2, 4, 6]
        first.mul_(last.clone())
        middle.add_(100)
        assert [e.tolist() for e in (first, last, middle)] == [[8, 124], [124, 6], [124]]
        alone.zero_()
        # of (y0 y1, y1 y2), and of the last piece its second half
        (slope,) = torch_grad(first.sum() + last.sum(), x)
        assert slope.tolist() == [8, 4 + 2 * 2 * 6, 4 * 2 * 2 + 2]


def torch_grad(loss, *inputs):
    return jaxgrad.autograd.grad(loss, inputs)


def test_the_memory_of_a_base_that_is_gone_is_no_output():
    """One view of a base that nothing else shows has memory of its own."""
    step = jaxgrad.jit(lambda x: ((x * 2)[0], (x + 1).detach(), (x * 3).t()[1:]))
    x = numbers(2, 3)
    row, detached, columns = step(x)
    assert [tensor._is_view() for tensor in (row, detached, columns)] == [False] * 3
    assert step.traces[0].output.count == 3
    assert columns.stride() == (1, 3) and columns.tolist() == [[6, 15], [9, 18]]


def test_views_in_state():
    class Ring:
        def __init__(self):
            self.buffer, self.parts = numbers(4), []

        def step(self, x):
            self.view = self.buffer[1:]
            self.new = x * 2
            self.parts = list(self.new.unbind())
            self.buffer.add_(1)

    for compile in (jaxgrad.jit, lambda function: function):
        ring = Ring()
        step = compile(ring.step)
        for _ in range(3):
            step(numbers(2))
            ring.view.mul_(2)
            ring.new.add_(5)
            ring.parts[0].zero_()
        assert ring.buffer.tolist() == [4, 30, 38, 46] and ring.view.tolist() == [30, 38, 46]
        assert [part.item() for part in ring.parts] == [0, 9] and ring.new.tolist() == [0, 9]
        assert ring.view._base is ring.buffer and ring.buffer._version == 6


def test_a_gradient_that_is_a_view():
    for compile in (jaxgrad.jit, lambda function: function):
        flat, w = numbers(6), numbers(2, requires_grad=True)

        def step(flat=flat, w=w):
            w.grad = flat[2:4]

        run = compile(step)
        for _ in range(2):
            run()
            flat.add_(1)
            (w * 10).sum().backward()
            assert w.grad.tolist() == flat[2:4].tolist()
        assert flat.tolist() == [3, 4, 25, 26, 7, 8]


@pytest.mark.slow
@pytest.mark.unverified
def test_a_tensor_that_is_kept_out_of_sight_shares_memory():
    def keep():
        kept = []
        while True:
            kept.append((yield kept))

    kept, weight = keep(), numbers(3)
    next(kept)

    def step(x):
        y = x * 2
        for tensor in (weight[1:], y.detach()):
            kept.send(tensor)
        return y

    y = jaxgrad.jit(step)(numbers(2))
    weight.add_(1)
    y.add_(1)
    tensors = kept.send(None)[:2]
    assert [tensor.tolist() for tensor in tensors] == [[3, 4], [3, 5]]
    with pytest.raises(RuntimeError, match=r"leaves behind a tensor of shape \[2\] that shares"):
        jaxgrad.jit(lambda x: (lambda y: (kept.send(y), y[:1])[1])(x * 2))(numbers(2))


def test_a_nested_compiled_function_gives_views():
    inner = jaxgrad.jit(lambda x: x[1:])
    x = numbers(3)
    view = jaxgrad.jit(lambda x: inner(x)[0])(x)
    view.add_(10)
    assert x.tolist() == [1, 12, 3] and view._base is x


def test_views_inside_of_transforms_are_inside_of_them():
    step = jaxgrad.jit(
        lambda x: (jaxgrad.func.vmap(lambda row: row[1:] * 2)(x)[0], jaxgrad.func.grad(sin_of)(x))
    )
    x = numbers(2, 3)
    for _ in range(2):
        row, slope = step(x)
        row.zero_()
        slope.zero_()
    assert x.tolist() == numbers(2, 3).tolist()


def sin_of(x):
    return x[0].sin().sum() + x.detach().sum()


@pytest.mark.unverified
def test_a_donated_argument_lives_on_in_its_views():
    step = jaxgrad.jit(lambda x, y: (x[1:], y + 1), donate=(0, 1))
    x, y = numbers(3), numbers(2)
    view, _ = step(x, y)
    view.add_(1)
    assert x.tolist() == [1, 3, 4] and y._array.is_deleted()


@pytest.mark.slow
def test_second_derivatives_through_views():
    def pieces(x, w):
        y = x**3 * w
        return y[:2], y[1:]

    gradients = []
    for run in (pieces, jaxgrad.jit(pieces)):
        x, w = numbers(3, requires_grad=True), numbers(3, requires_grad=True)
        first, last = run(x, w)
        first.mul_(last.clone())
        slopes = jaxgrad.autograd.grad((first**2).sum() + last.sum(), (x, w), create_graph=True)
        gradients.append(jaxgrad.autograd.grad(sum((s**2).sum() for s in slopes), (x, w)))
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)


def test_modes_decide_how_a_view_was_made():
    @jaxgrad.jit
    def views(x):
        with jaxgrad.no_grad():
            return x[0], x * 1

    base = numbers(2, requires_grad=True) * 1
    view, _ = views(base)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.mul_(2)
    base.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been mod"):
        view * 2

    @jaxgrad.jit
    def late(x):
        with jaxgrad.no_grad():
            view = x[0]
        x.mul_(2)
        return view

    with pytest.raises(RuntimeError, match="its base or another view of its base has been mod"):
        late(numbers(2, requires_grad=True) * 1) * 2

    @jaxgrad.jit
    def after(x):
        x.mul_(2)
        with jaxgrad.no_grad():
            return x[0]

    base = numbers(2, requires_grad=True) * 1
    view = after(base)
    with jaxgrad.no_grad():
        base.add_(1)
    assert (view * 2).item() == 6 and not view.requires_grad
    with jaxgrad.inference_mode():
        row, doubled = jaxgrad.jit(lambda x: (x[0], x * 2))(base.detach())
    assert not row.is_inference() and doubled.is_inference()
    with pytest.raises(RuntimeError, match="A view was created in inference mode"):
        row.mul_(base.sum())


# ---- tensors that are given other memory


def test_views_of_the_memory_that_a_tensor_had_keep_it():
    for compile in (jaxgrad.jit, lambda function: function):
        w = numbers(3)

        def step(w=w):
            w.data = w.data * 2
            return w[1:]

        run, views = compile(step), []
        for _ in range(3):
            views.append(run())
            w.add_(1)
        assert w.tolist() == [15, 23, 31]
        assert [view.tolist() for view in views] == [[5, 7], [11, 15], [23, 31]]
        flat = numbers(4)
        give = compile(lambda flat=flat, w=w: setattr(w, "data", flat[1:]))
        give()
        w.zero_()
        assert flat.tolist() == [1, 0, 0, 0] and views[2].tolist() == [23, 31]


@pytest.mark.slow
def test_a_tensor_that_is_given_data_again_and_again_keeps_no_array():
    for step in (lambda w: setattr(w, "data", w.data * 2), lambda w: w.data.__isub__(1)):
        w = numbers(2)
        for _ in range(5):
            step(w)
            w.data -= 1
        gc.collect()
        assert w._alias is None or w._alias.before is None


def test_a_new_shape_is_that_of_its_views_too():
    for compile in (jaxgrad.jit, lambda function: function):

        def step(w):
            view = w[0]
            w.t_()
            return view, w[1:]

        run = compile(step)
        for _ in range(2):
            w = numbers(2, 3)
            row, rows = run(w)
            w.mul_(2)
            assert w.shape == (3, 2) and row.tolist() == [2, 4, 6]
            assert rows.tolist() == [[4, 10], [6, 12]] and rows._base is w
        w = numbers(2, 3)
        shown = w[:1]
        row, rows = run(w)
        shown.mul_(2)
        assert w.shape == (3, 2) and w.tolist() == [[2, 4], [4, 5], [6, 6]]
        assert row.tolist() == [2, 4, 6] and rows.tolist() == [[4, 5], [6, 6]]
        assert shown._base is w and row._base is w


# ---- what is not compiled


@pytest.mark.parametrize("share", [lambda x: x[:], lambda x: x.detach()])
def test_captured_tensors_that_come_to_share_memory(share):
    """Tensors that share memory have a program of their own."""

    def step(x, y):
        x.add_(1)
        return y * 2

    run, x = jaxgrad.jit(step), numbers(3)
    run(numbers(3), numbers(3))
    view = share(x)
    assert run(x, view).tolist() == [4, 6, 8] and view.tolist() == [2, 3, 4]
    assert x.tolist() == [2, 3, 4] and x._version == view._version == 1
    assert run(numbers(3), numbers(3)).tolist() == [2, 4, 6]
    assert jaxgrad.jit(lambda x, y: x + y)(x, view).tolist() == [4, 6, 8]


def test_flattened_parameters():
    """`parameters_to_vector` copies, and views of the copy share it."""
    w = [numbers(2, requires_grad=True), numbers(1, 3, requires_grad=True)]
    flat, first = jaxgrad.jit(lambda: (lambda v: (v, v[:2]))(parameters_to_vector(w)))()
    first.mul_(3)
    assert flat.tolist() == [3, 6, 1, 2, 3] and w[0].tolist() == [1, 2]
    (slope,) = torch_grad(flat.sum(), w[0])
    assert slope.tolist() == [3, 3]


@pytest.mark.parametrize(("used", "expected"), [("view", [60, 60]), ("base", [6, 6])])
def test_a_hook_of_a_view_is_none_of_its_base(used, expected):
    """By hand: the gradient of the base passes the hook."""
    weight = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    base = weight * 2
    view = base[:]

    @jaxgrad.jit
    def step():
        view.mul_(3)
        view.register_hook(lambda gradient: gradient * 10)

    step()
    {"view": view, "base": base}[used].sum().backward()
    assert weight.grad.tolist() == expected


@pytest.mark.parametrize("is_outside", [True, False])
def test_a_view_with_hooks_of_which_a_part_is_written(is_outside):
    """By hand: what is not written has a gradient that passes no hook."""

    def build(jit):
        weight = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
        base = weight * 2
        view = base[:]
        if is_outside:
            view.register_hook(lambda gradient: gradient * 10)

        @jit
        def step():
            if not is_outside:
                view.register_hook(lambda gradient: gradient * 10)
            view[1:].mul_(3)

        return weight, base, view, step

    for jit in (lambda function: function, jaxgrad.jit):
        weight, base, view, step = build(jit)
        step()
        assert base.tolist() == view.tolist() == [2, 12]
        base.sum().backward()
        assert weight.grad.tolist() == [2, 60]


def test_version_of_a_view_whose_base_gets_other_memory():
    """As in PyTorch, `data=` leaves the leaf and the tensors that showed its memory one version."""

    def run(jit):
        weight = jaxgrad.ones(2, 3, requires_grad=True)

        def row():
            view = weight[0].detach()
            weight.data = weight.data * 2
            return view

        row = jit(row)
        rows, versions = [row(), row()], []
        for view in rows:
            view.mul_(3)
            versions.append([weight._version, *(tensor._version for tensor in rows)])
        return versions, [tensor.tolist() for tensor in rows], weight.tolist()

    expected = [[1, 1, 1], [2, 2, 2]], [[3.0] * 3, [6.0] * 3], [[4.0] * 3] * 2
    assert run(jaxgrad.jit) == run(lambda row: row) == expected


def test_writes_to_what_vmap_gives_inside():
    """As in eager code, the detached result of `vmap` is a tensor of the trace."""

    def sines(x):
        y = jaxgrad.func.vmap(lambda row: row.sin())(x).detach()
        y[-1, 1:] -= 0.25
        return y

    x = jaxgrad.ones(2, 3, dtype=jaxgrad.float64)
    expected = np.full((2, 3), np.sin(1.0))
    expected[-1, 1:] -= 0.25
    np.testing.assert_allclose(jaxgrad.jit(sines)(x), expected, rtol=1e-14)


@pytest.mark.slow
def test_writes_to_overlapping_parts_through_reshapes():
    """XLA on CPUs reads what it has overwritten (openxla/xla issue 49176), unless it is told."""

    def run(jit, step):
        buffer, index = jaxgrad.arange(1.0, 7.0).reshape(2, 3), jaxgrad.tensor(1)
        jit(functools.partial(step, buffer, index))()
        return buffer.flatten().tolist()

    def one_element(buffer, index):
        buffer[:, 1].zero_()
        buffer.view(6)[1:4][index] = 100.0

    def shifted(buffer, index):
        part = buffer.view(6)[1:4]
        part.add_(10)
        buffer.mul_(2)
        buffer[1].add_(part.clone())

    for step, expected in [
        (one_element, [1.0, 0.0, 100.0, 4.0, 0.0, 6.0]),
        (shifted, [2.0, 24.0, 26.0, 52.0, 36.0, 40.0]),
    ]:
        assert run(jaxgrad.jit, step) == run(lambda step: step, step) == expected


def test_writes_to_new_arrays_of_one_value_are_safe():
    """They need no options of XLA; a write to what another one has written does."""
    x, at = jnp.arange(3.0), jnp.array([0, 2, 2])
    zeros = functools.partial(jnp.zeros, 5)
    for program, is_unsafe in [
        (lambda x: zeros().at[at].add(x), False),
        (lambda x: zeros().at[at].add(x) + zeros().at[1].set(x[0]), False),
        (lambda x: zeros().at[at].add(x).at[1].set(x[0]), True),
        (lambda x: jnp.arange(5.0).at[at].add(x), True),
        (lambda x: (zeros() + x[0]).at[at].add(x), True),
        (lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y.at[i].set(y[i - 1]), zeros()), True),
    ]:
        assert writes_to_parts(jax.make_jaxpr(program)(x).jaxpr) == is_unsafe
