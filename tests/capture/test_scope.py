"""Compiled functions of state: what they read and change, when they are traced anew, and that an
error changes nothing. The same functions run as they are give what is expected.
"""

import gc
import itertools
import math
import queue
import threading
import warnings
import weakref
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import leaks

import jaxgrad as torch
import jaxgrad.autograd.forward_ad as fwAD
from jaxgrad.core import executor
from jaxgrad.tape.tensor import wrap

outside = torch.tensor([1.0, 2.0])
flag = True


def leaf(*values):
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    with leaks.no_graph_is_left(monkeypatch):
        yield


# ---- what is read


class Model:
    def __init__(self):
        self.weight, self.count = leaf(2.0, 3.0), torch.zeros(())

    @torch.jit
    def step(self, x):
        self.count.add_(1)
        self.weight.grad = None
        loss = (self.weight * x).square().sum()
        loss.backward()
        with torch.no_grad():
            self.weight.sub_(0.1 * self.weight.grad)
        return loss.detach()


def test_attributes_arguments_and_tensors_without_dimensions():
    model, w = Model(), np.array([2.0, 3.0])
    for call in range(3):
        x = np.array([1.0, 0.5 + call])
        assert model.step(torch.tensor(x)).item() == pytest.approx(((w * x) ** 2).sum(), rel=1e-12)
        w = w - 0.2 * w * x * x
        np.testing.assert_allclose(model.weight.tolist(), w, rtol=1e-12)
        assert model.count.item() == call + 1
    assert len(Model.step.traces) == 1 and Model.step.count == 1


def test_a_global_that_is_bound_anew(monkeypatch):
    scaled = torch.jit(lambda x: x * outside if flag else x)
    assert scaled(torch.ones(2)).tolist() == [1, 2]
    outside.mul_(2)
    assert scaled(torch.ones(2)).tolist() == [2, 4] and scaled.count == 1
    outside.mul_(0.5)
    monkeypatch.setitem(globals(), "outside", torch.tensor([7.0, 8.0]))
    assert scaled(torch.ones(2)).tolist() == [7, 8]
    assert "outside is bound to something else" in scaled.explain()
    monkeypatch.setitem(globals(), "flag", False)
    assert scaled(torch.ones(2)).tolist() == [1, 1] and scaled.count == 3


def test_a_variable_around_the_function_that_is_bound_anew():
    weight, factor = torch.ones(2), 2.0
    scaled = torch.jit(lambda x: x * weight * factor)
    assert scaled(torch.ones(2)).tolist() == [2, 2]
    weight = torch.tensor([3.0, 4.0])
    assert scaled(torch.ones(2)).tolist() == [6, 8]
    factor = 10.0
    assert scaled(torch.ones(2)).tolist() == [30, 40] and scaled.count == 3


def test_one_tensor_in_several_places():
    def function(x, y):
        with torch.no_grad():
            x.add_(1)
        return (x * y).sum()

    for compile in (lambda f: f, torch.jit):
        compiled, x, y = compile(function), leaf(1.0), leaf(2.0)
        assert [compiled(x, y).item(), compiled(x, x).item(), compiled(y, x).item()] == [4, 9, 9]

    weight = leaf(3.0)
    product = torch.jit(lambda x: x * weight)
    for x, expected in ((leaf(2.0), 6), (weight, 9), (leaf(4.0), 12)):
        assert product(x).item() == expected
    product(weight).backward()
    assert weight.grad.item() == 6


def test_what_is_read_and_gone_is_traced_anew():
    state = {"w": torch.ones(2)}
    read = torch.jit(lambda x: x + state["w"])
    assert read(torch.ones(2)).tolist() == [2, 2]
    gone = weakref.ref(state["w"])
    state["w"] = torch.zeros(2)
    assert gone() is None
    assert read(torch.ones(2)).tolist() == [1, 1]
    assert "it is gone" in read.explain() and len(read.traces) == 1


def test_other_shapes_dtypes_and_flags_are_told_with_their_line():
    weight = torch.ones(2)
    scaled = torch.jit(lambda x: x * weight)
    scaled(torch.ones(2))
    weight.requires_grad_()
    scaled(torch.ones(2))
    assert f"read at {__file__}:" in scaled.explain()
    assert scaled.explain().endswith("requires_grad was False, and is True")
    scaled(torch.ones(3, 2))
    assert scaled.explain().endswith("argument 0 was torch.float32[2], and is torch.float32[3, 2]")
    with torch.no_grad():
        scaled(torch.ones(3, 2))
    assert "grad mode" in scaled.explain() and scaled.count == 4


# ---- numbers


@pytest.mark.unverified
def test_a_number_that_varies_is_an_input():
    kinds = queue.SimpleQueue()  # whose contents capture cannot see, so each trace puts one

    @torch.jit
    def scaled(x, rate, power):
        kinds.put(type(rate).__name__)
        return x * rate * 2 - rate / 4 + (1 - rate**power) * x

    x = leaf(1.0, 2.0)
    for rate, power in itertools.product((0.1, 0.7, 3.0), (1, 5)):
        expected = x * rate * 2 - rate / 4 + (1 - rate**power) * x
        np.testing.assert_allclose(scaled(x, rate, power).tolist(), expected.tolist(), rtol=1e-12)
    assert [kinds.get() for _ in range(kinds.qsize())] == ["float", "float", "Varying"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16, torch.complex64])
def test_a_number_that_varies_promotes_as_a_number(dtype):
    x, numbers = torch.ones(2, dtype=dtype), iter([0.5, 0.25, 0.125])
    function = torch.jit(
        lambda x, n: (x * n, n - x, x**n, torch.add(x, x, alpha=n) if alpha else x)
    )
    alpha = dtype is not torch.int64
    for n in numbers:
        expected = x * n, n - x, x**n, torch.add(x, x, alpha=n) if alpha else x
        for result, wanted in zip(function(x, n), expected, strict=True):
            assert result.dtype is wanted.dtype and result.tolist() == wanted.tolist()
    assert function.count == 2


def test_a_number_that_is_looked_at_stays_part_of_the_program():
    @torch.jit
    def chosen(x, k):
        return x[:k] if k > 1 else x

    assert [chosen(torch.ones(4), k).shape[0] for k in (1, 2, 3, 2)] == [4, 2, 3, 2]
    with pytest.raises(RuntimeError, match=r"that varies.*static_argnames"):
        torch.jit(lambda x: x if torch.tracing.number(lambda: 0.5) > 1 else -x)(torch.ones(1))


def test_static_argnames_are_part_of_the_program():
    cut = torch.jit(lambda x, k=1: x[k:], static_argnames="k")
    assert [cut(torch.ones(4), k=k).shape[0] for k in (0, 1, 2)] == [4, 3, 2]
    assert cut.count == 3
    with pytest.raises(ValueError, match=r"static_argnames='n'.*\['x', 'k'\]"):
        torch.jit(lambda x, k: x, static_argnames="n")


# ---- what is kept


def test_tensors_that_are_kept_are_concrete():
    kept = []

    @torch.jit
    def step(x):
        kept.append(x * 2)
        return kept[-1]

    for call in range(2):
        result = step(torch.tensor([float(call)]))
        assert kept[-1].tolist() == [2.0 * call] and result is kept[-1]
    assert step.count == 2 and len(kept) == 2


def test_state_that_is_replaced_by_another_tensor():
    def accumulate(holder):
        def step(x):
            holder.state = (holder.state + x * 2).detach()
            return holder.state.sum()

        return step

    plain, holder = (SimpleNamespace(state=torch.zeros(2)) for _ in range(2))
    expected, step = accumulate(plain), torch.jit(accumulate(holder))
    for call in range(4):
        x = torch.full((2,), float(call))
        assert step(x).item() == expected(x).item()
        assert holder.state.tolist() == plain.state.tolist() and step.count == 1
    holder.state = torch.ones(2)
    assert step(torch.ones(2)).item() == 6 and step.count == 1


@pytest.mark.unverified
def test_a_tensor_that_is_kept_where_capture_cannot_see_is_warned_of():
    kept = queue.SimpleQueue()

    @torch.jit
    def step(x):
        kept.put((x * 2).detach())
        return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(torch.ones(2)), step(torch.ones(2))
    with pytest.warns(UserWarning, match=r"step, .* at every call, .* \[2\] \(made at .*\), "):
        step(torch.ones(2))
    assert [kept.get().tolist() for _ in range(kept.qsize())] == [[2, 2]] * 3
    assert "leaves behind a tensor of shape [2] (made at" in step.explain()


def test_a_kept_tensor_with_a_history():
    kept, weight, hidden = [], leaf(3.0), queue.SimpleQueue()
    torch.jit(lambda x: (kept.append(x * weight), kept[0])[1])(torch.tensor(2.0))
    kept[0].sum().backward()
    assert weight.grad.item() == 2
    step = torch.jit(lambda x: kept.append(x * weight))
    step(torch.tensor(5.0)), step(torch.tensor(7.0))
    sum(kept[1:]).sum().backward()
    assert weight.grad.item() == 14 and step.count == 1
    with pytest.raises(RuntimeError, match=r"leaves behind.*MulBackward0.*detach"):
        torch.jit(lambda x: hidden.put(x * weight))(torch.tensor(2.0))
    kept.clear()
    hidden.get()


def test_what_python_throws_away_is_not_kept():
    @torch.jit
    def step(x):
        cycle = [x * 2]
        cycle.append(cycle)
        return x

    step(torch.ones(2))
    step(torch.ones(2))
    assert step.count == 1


def test_results_are_the_tensors_that_they_are():
    weight = leaf(1.0, 2.0)

    @torch.jit
    def step(x):
        weight.grad = None
        (weight * x).sum().backward()
        shifted = x + 1
        return weight, weight.grad, x, shifted, shifted

    for _ in range(2):
        x = torch.ones(2)
        results = step(x)
        assert results[0] is weight and results[1] is weight.grad and results[2] is x
        assert results[3] is results[4]


# ---- errors


def test_an_error_changes_nothing():
    weight, buffer, seen = leaf(1.0, 2.0), torch.zeros(2), []

    @torch.jit
    def step(x, fails):
        buffer.add_(1)
        x.mul_(2)
        (weight * x).sum().backward()
        weight.register_hook(seen.append)
        with torch.no_grad():
            weight.sub_(weight.grad)
        weight.requires_grad_(False)
        if fails:
            raise KeyError("mine")

    x = torch.ones(2, dtype=torch.float64)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            step(x, True)
        assert weight.tolist() == [1, 2] and weight.requires_grad and weight.grad is None
        assert buffer.tolist() == [0, 0] and x.tolist() == [1, 1]
        assert (weight._version, buffer._version, x._version) == (0, 0, 0)
        assert not weight._backward_hooks
    (weight * x).sum().backward()
    assert weight.grad.tolist() == [1, 1] and seen == []


@pytest.mark.parametrize(
    "read", [lambda x: x.item(), bool, float, lambda x: x.tolist(), lambda x: 1 if x > 0 else 2]
)
def test_reading_what_is_computed_says_what_to_do(read):
    weight = torch.tensor(1.0)
    for function in (lambda x: x * read(x), lambda x: x * read(x * weight)):
        with pytest.raises(RuntimeError, match=r"being traced.*jaxgrad.where"):
            torch.jit(function)(torch.tensor(2.0))
    assert weight.item() == 1


def test_the_numbers_of_a_tensor_from_outside_are_looked_at():
    """The program holds for these numbers only."""
    mask, count = torch.tensor([True, False, True]), torch.tensor(2)
    chosen = torch.jit(lambda x: x[mask] * count.item())
    assert [chosen(torch.arange(3.0)).tolist() for _ in range(2)] == [[0, 4], [0, 4]]
    assert chosen.count == 1
    mask[0] = False
    assert chosen(torch.arange(3.0)).tolist() == [4]
    assert "numbers were looked at, and have changed" in chosen.explain()
    count.fill_(3)
    assert chosen(torch.arange(3.0)).tolist() == [6] and chosen.count == 3

    def written(x):
        count.add_(1)
        return x * count.item()

    with pytest.raises(RuntimeError, match="being traced"):
        torch.jit(written)(torch.ones(1))
    assert count.item() == 3


# ---- memory


@pytest.mark.unverified
def test_what_is_overwritten_is_donated_and_nothing_else(monkeypatch):
    monkeypatch.setattr(executor, "chosen", "compiled")  # the host deletes nothing
    held = torch.ones(1000)
    array = held._array
    step = torch.jit(lambda: (held.add_(1).detach(), held * 2))
    first, doubled = step()
    assert not array.is_deleted() and array[0] == 1  # another handle holds it
    assert [tensor[0].item() for tensor in (first, doubled, held)] == [2, 4, 2]
    add = torch.jit(lambda x: x.add_(1))
    add(held)
    assert [tensor[0].item() for tensor in (first, doubled, held)] == [3, 4, 3]
    del first  # it shares the memory, and holds the array that it has read
    before = held._array.unsafe_buffer_pointer()
    add(held)
    assert held._array.unsafe_buffer_pointer() == before
    assert [tensor[0].item() for tensor in (doubled, held)] == [4, 4]
    array = held._array
    assert torch.jit(lambda x: x.add_(1), donate=())(held) is held
    assert array[0] == 4 and held[0].item() == 5


def test_a_gradient_that_was_returned_is_not_overwritten():
    weight = leaf(1.0, 2.0)

    @torch.jit
    def step(x):
        (weight * x).sum().backward()
        return weight.grad.clone(), weight.grad.detach(), weight.grad

    results = [step(torch.full((2,), float(n))) for n in (1, 2, 3)]
    copied, shared, same = zip(*results, strict=True)
    assert [gradient.tolist() for gradient in copied] == [[1, 1], [3, 3], [6, 6]]
    # as in PyTorch: `backward` adds to the memory of the gradient, which `detach` shares
    assert all(gradient.tolist() == [6, 6] for gradient in (*shared, *same, weight.grad))


def test_nothing_is_kept_by_a_program():
    weight, x = leaf(1.0, 2.0), leaf(3.0, 4.0)
    step = torch.jit(lambda x, weight=weight: (weight * x).sum())
    with jax.checking_leaks():
        step(x).backward()
    gone = [weakref.ref(tensor) for tensor in (weight, x)]
    del weight, x
    assert gone[1]() is None
    del step
    gc.collect()
    assert gone[0]() is None


# ---- differentiating from outside


def function(x, weight):
    y = x.sin() * weight
    y.register_hook(lambda grad: grad * 2)
    return y.relu().sum(), y * y


def both(compile):
    weight, x = leaf(1.5, -2.0), leaf(0.5, 0.7)
    return weight, x, compile(lambda x: function(x, weight))


@pytest.mark.slow
def test_gradients_of_several_results_with_hooks_inside_and_outside():
    gradients = []
    for compile in (torch.jit, lambda f: f):
        weight, x, compiled = both(compile)
        x.register_hook(lambda grad: grad + 1)
        total, square = compiled(x)
        square.register_hook(lambda grad: grad * 3)
        (total + square.sum()).backward(retain_graph=True)
        (part,) = torch.autograd.grad(square[0], weight, retain_graph=True)
        (alone,) = torch.autograd.grad(total, x)
        gradients.append([*x.grad.tolist(), *weight.grad.tolist(), *part.tolist(), *alone.tolist()])
        with pytest.raises(RuntimeError, match="second time"):
            total.backward()
    np.testing.assert_allclose(*gradients, rtol=1e-12)


@pytest.mark.slow
def test_second_derivatives_from_outside():
    derivatives = []
    for compile in (torch.jit, lambda f: f):
        weight = leaf(1.5, -2.0)
        x = leaf(0.5, 0.7)
        compiled = compile(lambda x, weight=weight: (x.sin() * weight**2).exp().sum())
        (first,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        second = torch.autograd.grad((first * first).sum(), [x, weight], create_graph=True)
        third = torch.autograd.grad(second[1].sum(), x)[0]
        derivatives.append(
            [*first.tolist(), *second[0].tolist(), *second[1].tolist(), *third.tolist()]
        )
    np.testing.assert_allclose(*derivatives, rtol=1e-10)


def test_a_pass_through_a_compiled_function_reaches_what_is_before_and_behind_it():
    weight, x = leaf(3.0), leaf(2.0)
    cube = torch.jit(lambda y: y**3 * weight)
    y = x * 2
    (cube(y) * 5).backward()
    assert x.grad.item() == 5 * 3 * 16 * 3 * 2 and weight.grad.item() == 5 * 64


def test_a_function_keeps_its_rule_from_outside():
    class Seven(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    x = leaf(1.0)
    torch.jit(lambda x: Seven.apply(x) * 3)(x).backward()
    assert x.grad.item() == 21


@pytest.mark.parametrize("order", list(itertools.permutations(["eager", "jit", "jvp"])))
def test_the_order_of_first_calls_does_not_matter(order):
    weight = leaf(2.0)
    compiled = torch.jit(lambda x: x * x * weight)

    def tangent():
        with fwAD.dual_level():
            dual = fwAD.make_dual(leaf(3.0).detach(), leaf(1.0).detach())
            return fwAD.unpack_dual(compiled(dual)).tangent.item()

    ways = {
        "eager": lambda: torch.autograd.grad(compiled.function(x), x)[0].item(),
        "jit": lambda: torch.autograd.grad(compiled(x), x)[0].item(),
        "jvp": tangent,
    }
    x = leaf(3.0)
    assert [ways[way]() for way in order] == [12, 12, 12]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["argument", "closure", "shared by vmap"])
def test_what_it_reads_may_have_been_computed_from_what_else_it_reads(way):
    """With y = 2 w and f = y y w = 4 w^3, the gradient of y reaches w once."""
    weight, held, halves = leaf(1.0, 3.0), {}, torch.tensor([0.5, 0.5])
    functions = {
        "argument": torch.jit(lambda y: y * y * weight),
        "closure": torch.jit(lambda y: held["y"] * held["y"] * weight),
        "shared by vmap": lambda y: torch.func.vmap(lambda one: one * y * y * weight)(halves),
    }
    for _ in range(3):
        y = held["y"] = weight * 2
        (first,) = torch.autograd.grad(functions[way](y).sum(), weight, create_graph=True)
        assert first.tolist() == [12, 108]
        assert torch.autograd.grad(first.sum(), weight)[0].tolist() == [24, 72]


def two_heads(x, trunk, first, second):
    return x * trunk * first, x * trunk * second


@pytest.mark.parametrize("way", [torch.jit, lambda f: torch.func.vmap(f, (0, None, None, None))])
@pytest.mark.parametrize("retain", [False, True])
def test_what_the_results_of_a_pass_do_not_depend_on_has_no_gradient(way, retain):
    """As if the function were not compiled: a head of another task must not see zeros."""
    compiled = way(two_heads)
    for head in (0, 1, 0):
        leaves = [leaf(2.0), leaf(3.0), leaf(5.0)]
        result = compiled(torch.tensor([1.0]), *leaves)[head].sum()
        if retain:
            grads = torch.autograd.grad(result, leaves, allow_unused=True, create_graph=True)
        else:
            result.backward()
            grads = [tensor.grad for tensor in leaves]
        expected = [[3.0], [2.0], None] if head == 0 else [[5.0], None, [2.0]]
        assert [grad if grad is None else grad.tolist() for grad in grads] == expected
    both = compiled(torch.tensor([1.0]), *leaves)
    assert [g.tolist() for g in torch.autograd.grad(sum(both).sum(), leaves)] == [[8], [2], [2]]


def test_an_argument_of_another_graph_at_each_call():
    weight = leaf(1.0, 2.0)
    first, second = torch.jit(lambda x: x * weight), torch.jit(lambda y: (y * y).sum())
    for factor in (1.0, 2.0, 3.0):
        weight.grad = None
        second(first(torch.tensor([factor, 1.0]))).backward()
        assert weight.grad.tolist() == [2 * factor**2, 4]
    assert first.count == second.count == 1


def test_a_pass_that_goes_on_into_the_graph_of_an_argument():
    """The argument's graph differs at each call."""
    weight = leaf(1.0, 2.0)
    step = torch.jit(lambda y: (y * y).sum().backward())
    for factor in (1.0, 2.0, 3.0):
        weight.grad = None
        step(weight * factor)
        assert weight.grad.tolist() == [2 * factor**2, 4 * factor**2]
    assert "which is another one now" in step.explain()


def test_a_grad_that_is_cleared_is_cleared_at_each_call():
    """Also where there was none when the function was traced."""
    w, v = leaf(1.0, 1.0), leaf(1.0, 1.0)

    @torch.jit
    def step(which):
        w.grad = v.grad = None
        (w if which == "w" else v).sum().backward()

    for which in ("w", "v", "w", "v"):
        step(which)
        assert (w.grad is None, v.grad is None) == (which == "v", which == "w")
    assert step.count == 2
    optimizer = torch.optim.SGD([w], lr=0.1)
    clear = torch.jit(optimizer.zero_grad)
    for _ in range(2):
        w.grad = torch.ones_like(w)
        clear()
        assert w.grad is None


def test_a_state_that_begins_as_a_gradient_is_not_begun_by_a_step_that_fails():
    """SGD with dampening, by its closed form: w' = w - lr g, the first step without dampening."""
    w, fails = leaf(1.0), [True]
    optimizer = torch.optim.SGD([w], lr=0.25, momentum=0.5, dampening=0.5)

    @torch.jit
    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        assert not fails[0]

    with pytest.raises(AssertionError):
        step()
    assert w.tolist() == [1] and w.grad is None
    fails[0] = False
    step()
    assert w.tolist() == [0.5]


class Trainer:
    """Guards on attributes of a method's object, its class, and its members."""

    beta = 1.0

    def __init__(self):
        self.config = {"gamma": 1.0, "deep": SimpleNamespace(zeta=1.0), "unread": 0}
        self.state, self.other, self.seen = torch.ones(2), 0, 0

    @property
    def scale(self):
        return self.config["deep"].zeta

    def help(self, x):
        return x * self.config["gamma"] * self.state

    def value(self, x):
        self.seen += 1  # assigning the same value is no change
        return (self.help(x) * self.beta * self.scale).sum()


@pytest.mark.unverified
def test_attributes_and_items_that_the_code_names_are_looked_at():
    trainer, x = Trainer(), torch.ones(2)
    compiled = torch.jit(trainer.value)
    changes = {
        "beta is bound to something": lambda: setattr(trainer, "beta", 2.0),
        "gamma was 1.0, and is 3.0": lambda: trainer.config.update(gamma=3.0),
        "zeta was 1.0, and is 5.0": lambda: setattr(trainer.config["deep"], "zeta", 5.0),
        "it is gone": lambda: setattr(trainer, "state", torch.full((2,), 7.0)),
        "deep is bound": lambda: trainer.config.update(deep=SimpleNamespace(zeta=11.0)),
    }
    assert compiled(x).item() == 2
    for number, (why, change) in enumerate(changes.items()):
        change()
        factors = trainer.config["gamma"] * trainer.beta * trainer.config["deep"].zeta
        expected = factors * trainer.state.sum().item()
        assert compiled(x).item() == compiled(x).item() == expected
        assert compiled.count == number + 2 and why in compiled.explain()
    trainer.other, trainer.config["unread"] = 1, 1
    compiled(x)
    assert compiled.count == len(changes) + 1


def test_what_a_compiled_function_reads_within_another_is_looked_at():
    config = {"gamma": 2.0}

    class Model:
        delta = 1.0

        @torch.jit
        def run(self, x):
            return x * self.delta

    inner, model = torch.jit(lambda x: x * config["gamma"]), Model()
    outer = torch.jit(lambda x: model.run(inner(x)))
    assert outer(torch.tensor(1.0)).item() == 2
    config["gamma"] = 3.0
    assert outer(torch.tensor(1.0)).item() == 3
    model.delta = 5.0
    assert outer(torch.tensor(1.0)).item() == 15 and outer.count == 3


def test_elements_of_lists_are_looked_at():
    factors, before = [torch.tensor(2.0), 3.0], []
    compiled = torch.jit(lambda x: x * math.prod(factors))
    assert compiled(torch.tensor(1.0)).item() == 6
    before.append(factors[0])  # so that it stays alive
    factors[0] = torch.tensor(5.0)
    assert compiled(torch.tensor(1.0)).item() == 15
    factors.append(7.0)
    assert compiled(torch.tensor(1.0)).item() == compiled(torch.tensor(1.0)).item() == 105
    assert compiled.count == 3 and "factors has other elements" in compiled.explain()


@pytest.mark.slow
def test_a_number_that_changes_at_each_call_is_warned_of():
    trainer, x = Trainer(), torch.ones(2)
    compiled = torch.jit(trainer.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            trainer.beta += 1
            compiled(x)
    trainer.beta += 1
    with pytest.warns(UserWarning, match="value, .* because beta was 9.0, and is 10.0. A number"):
        assert compiled(x).item() == 20


def test_a_number_that_is_read_at_each_call_is_no_guard():
    trainer, x = Trainer(), torch.ones(2)
    compiled = torch.jit(lambda x: x.sum() * torch.tracing.number(lambda: trainer.beta))
    for beta in (1.0, 2.0, 3.0):
        trainer.beta = beta
        assert compiled(x).item() == 2 * beta
    assert compiled.count == 1


# ---- inside of others


def test_a_compiled_function_in_another():
    weight, count = leaf(2.0), torch.zeros(())

    @torch.jit
    def inner(x):
        count.add_(1)
        return x * weight

    @torch.jit
    def outer(x):
        return inner(x) + inner(x * 2)

    for call in (1, 2):
        x = leaf(3.0)
        outer(x).backward()
        assert x.grad.item() == 6 and count.item() == 2 * call
        assert weight.grad.item() == 9 * call
    assert outer.count == 1 and inner.count == 0


def marks(jit, derivatives):
    """Derivatives of a tensor that requires grad since the function has said so."""
    weight, results = torch.tensor([1.0, 2.0], dtype=torch.float64), []

    @jit
    def cubes(x):
        weight.requires_grad_(True)
        return (weight**3 * x).sum()

    for requires_grad in (True, False, True):
        results.append(derivatives(cubes(torch.tensor([2.0, 3.0], dtype=torch.float64)), weight))
        weight.requires_grad_(requires_grad)
    return results


def accumulated(result, weight):
    result.backward()
    return weight.grad.tolist()


def twice(result, weight):
    (first,) = torch.autograd.grad(result, weight, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), weight)
    return first.tolist(), second.tolist()


@pytest.mark.slow
def test_a_tensor_that_the_function_marks_gets_gradients():
    def plain(function):
        return function

    totals = [[6, 36], [12, 72], [18, 108]]
    assert marks(torch.jit, accumulated) == marks(plain, accumulated) == totals
    assert marks(torch.jit, twice) == marks(plain, twice) == [([6, 36], [144, 2592])] * 3


def new_leaf(x):
    return x.detach().requires_grad_()


def test_a_leaf_from_inside_that_would_get_no_gradient_is_refused():
    weight, holder = leaf(1.0, 2.0), SimpleNamespace()

    @torch.jit
    def returned(x):
        created = new_leaf(x)
        return created, (created**2 * weight).sum()

    @torch.jit
    def stored(x):
        holder.leaf = new_leaf(x)
        return (holder.leaf**2).sum()

    for function in (returned, stored):
        with pytest.raises(RuntimeError, match=r"a leaf of shape \[2\] and a result that depends"):
            function(torch.ones(2))


def test_a_leaf_from_inside_may_leave_alone_or_stay():
    @torch.jit
    def stays(x):
        return (new_leaf(x) ** 2).sum()

    @torch.jit
    def used_up(x):
        created = new_leaf(x)
        loss = (created**2).sum()
        loss.backward()
        return created, loss

    result = stays(torch.ones(2))
    result.backward()
    assert result.requires_grad
    created, loss = used_up(torch.ones(2))
    assert created.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


@pytest.mark.slow
def test_threads_trace_functions_of_their_own():
    def work(number):
        weight = torch.full((3,), float(number), requires_grad=True)
        step = torch.jit(lambda x: (weight * x).sum().backward())
        for _ in range(3):
            step(torch.ones(3))
        results[number] = weight.grad.tolist()

    results = {}
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [3, 3, 3] for number in range(6)}


def test_state_is_constant_under_a_trace_of_jax():
    weight = torch.tensor([1.0, 2.0])
    step = torch.jit(lambda x: (x * weight).sum())
    assert jax.grad(lambda x: step(wrap(x))._array)(jnp.ones(2)).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="from outside of the function"):
        jax.jit(lambda x: torch.jit(lambda x: weight.add_(x))(wrap(x))._array)(jnp.ones(2))
    assert weight.tolist() == [1, 2]


def test_the_gradient_of_a_tensor_with_a_tangent_is_read():
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0))
        x.grad = x * x
        primal, tangent = fwAD.unpack_dual(torch.jit(lambda: x.grad * 3)())
        assert (primal.item(), tangent.item()) == (12, 12)
        optimizer = torch.optim.SGD([x], lr=0.5)
        torch.jit(lambda: optimizer.step())()
        assert [part.item() for part in fwAD.unpack_dual(x)] == [0, -1]
