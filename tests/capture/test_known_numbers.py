"""Numbers of tensors that depend on no argument and no changing state, looked at while tracing."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import nn
from jaxgrad.utils.checkpoint import checkpoint

TIMES = torch.tensor([0.0, 1.0, 2.0])
MASK = torch.tensor([True, False, True])


def traced_range(x):
    return sum([x * i for i in range(int(TIMES[2]) + 1)], x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * 2 if (TIMES[1:] > TIMES[:-1]).all() else x, [2, 4, 6]),
        (lambda x: x * 2 if torch.arange(3).sum() == 3 else x, [2, 4, 6]),
        (lambda x: x[MASK], [1, 3]),
        (lambda x: x[TIMES > 0.5], [2, 3]),
        (lambda x: x[torch.nonzero(TIMES > 0.5).flatten()], [2, 3]),
        (lambda x: x[: len(torch.unique(torch.tensor([1, 1, 2])))], [1, 2]),
        (lambda x: x.repeat_interleave(torch.tensor([1, 2, 0])), [1, 2, 2]),
        (lambda x: x.masked_select(MASK), [1, 3]),
        (lambda x: x * (2 if torch.equal(TIMES, torch.arange(3.0)) else 3), [2, 4, 6]),
        (lambda x: x * (2 if torch.allclose(TIMES, torch.arange(3.0)) else 3), [2, 4, 6]),
        (lambda x: x * [10, 20, 30][(TIMES * 1).long()[1]], [20, 40, 60]),
        (lambda x: x * math.sqrt(TIMES[2] * 2), [2, 4, 6]),
        (lambda x: x * float(np.cumsum((TIMES * 2).numpy())[-1]), [6, 12, 18]),
        (lambda x: x * sum((TIMES + 1).tolist()), [6, 12, 18]),
        (lambda x: x * len(f"{TIMES[1]:.3f}"), [5, 10, 15]),
        (lambda x: sum((x * int(time) for time in TIMES), x), [4, 8, 12]),
        (lambda x: x * (1.0 in TIMES), [1, 2, 3]),
        (lambda x: x * torch.ones_like(x).sum().item(), [3, 6, 9]),
        (lambda x: x * torch.linalg.det(torch.eye(2) * 2).item(), [4, 8, 12]),
        (traced_range, [4, 8, 12]),
    ],
)
def test_what_looks_at_them(function, expected):
    compiled = torch.jit(function)
    for _ in range(2):
        assert compiled(torch.tensor([1.0, 2.0, 3.0])).tolist() == expected
    assert compiled.count == 1


def written_in_place(x):
    buffer = torch.zeros(3)
    buffer[1] = 2
    part = buffer[1:]
    part.mul_(3)
    buffer.add_(1)
    return x * buffer.sum().item() if part[0] == 7 else x


def differentiated(x):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), w)
    return x * second.sum().item()  # 6 w


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * int(TIMES.sum())

    @staticmethod
    def backward(ctx, grad):
        return grad * (5 if (TIMES >= 0).all() else 0)


def slope(x):
    x = x.detach().requires_grad_()
    y = Tripled.apply(x)
    y.register_hook(lambda grad: grad * int(TIMES[2]))
    y.sum().backward()
    return x.grad


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (written_in_place, [9, 18]),
        (differentiated, [18, 36]),
        (slope, [10, 10]),
        (lambda x: Tripled.apply(x), [3, 6]),
        (lambda x: torch.func.vmap(lambda a: a * int((TIMES * 2)[1]))(x), [2, 4]),
        (lambda x: torch.func.grad(lambda a: (a * a * int(TIMES[2])).sum())(x), [4, 8]),
        (lambda x: checkpoint(lambda x: x * int(TIMES[2]), x, use_reentrant=False), [2, 4]),
        (lambda x: torch.fori_loop(0, 2, lambda i, v: v * float(TIMES[2]), x), [4, 8]),
        (lambda x: torch.scan(lambda c, a: (c, a * float(TIMES[2])), x[0], x)[1], [2, 4]),
        (
            lambda x: torch.cond(
                x.sum() > 0, lambda x: x * (TIMES.sum()).item(), lambda x: x, (x,)
            ),
            [3, 6],
        ),
    ],
)
def test_wherever_they_come_from(function, expected):
    assert torch.jit(function)(torch.tensor([1.0, 2.0])).tolist() == expected


# ---- guards


def test_other_numbers_lead_to_a_trace_and_equal_ones_do_not():
    bound, base = torch.tensor([1.0, 2.0]), torch.arange(4.0)
    part = base[1:3]
    scaled = torch.jit(lambda x: x * (bound * 2).sum().item() * part.sum().item())
    x = torch.ones(1)
    assert scaled(x).item() == 18
    bound.copy_(torch.tensor([1.0, 2.0]))
    base[0] = 7.0  # beside the part
    assert scaled(x).item() == 18 and scaled.count == 1
    bound.data = torch.tensor([2.0, 2.0])
    assert scaled(x).item() == 24 and scaled.count == 2
    assert "its numbers were looked at, and have changed" in scaled.explain()
    base[1] = 2.0
    assert scaled(x).item() == 32 and scaled.count == 3
    bound.data, base[1] = torch.tensor([1.0, 2.0]), 1.0  # those of the first program
    assert scaled(x).item() == 18 and scaled.count == 3


def test_numbers_of_a_batched_call_are_compared_too():
    flag, x = torch.tensor(1.0), torch.ones(2, requires_grad=True)
    scaled = torch.func.vmap(lambda a: a**3 * (flag * 2).item())
    y = scaled(x)
    flag.fill_(5.0)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert (first.tolist(), second.tolist()) == ([6, 6], [12, 12])
    assert scaled(x).tolist() == [10, 10]


def test_numbers_too_large_to_compare_belong_to_one_array():
    large = torch.ones(2**20 + 1)
    scaled = torch.jit(lambda x: x * large.sum().item())
    assert scaled(torch.ones(1)).item() == 2**20 + 1 and scaled(torch.ones(1)) is not None
    assert scaled.count == 1
    large.mul_(2)
    assert scaled(torch.ones(1)).item() == 2**21 + 2 and scaled.count == 2


@pytest.mark.parametrize("make", [torch.jit, lambda f: torch.jit(f, verify=1)])
def test_a_flag_that_is_set_once_is_traced_twice(make):
    class Normalized(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("is_known", torch.tensor(False))
            self.register_buffer("mean", torch.zeros(()))

        def forward(self, x):
            if not self.is_known:
                self.mean.copy_(x.mean())
                self.is_known.fill_(True)
            return x - self.mean

    model = Normalized()
    compiled = make(model)
    assert [compiled(torch.tensor([n, n + 2.0])).tolist() for n in (1.0, 2.0, 3.0)] == [
        [-1, 1],
        [0, 2],
        [1, 3],
    ]
    assert compiled.count == 2


def counted(counter):
    def function(x):
        y = x * 2 if counter % 3 == 0 else x
        counter.add_(1)
        return y

    return function


@pytest.mark.slow
def test_numbers_that_the_function_changes_at_each_call_raise():
    counter, layer = torch.tensor(0), nn.Dropout()
    function = counted(counter)
    compiled = torch.jit(lambda x: function(layer.train(not layer.training)(x * 0) + x))
    assert [compiled(torch.ones(1)).item() for _ in range(2)] == [2, 1]
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"looks at the numbers.*test_known.*changes them"):
            compiled(torch.ones(1))
        assert counter.item() == 2 and counter._version == 2 and layer.training


def test_a_function_that_may_run_uncompiled_then_does():
    counter = torch.tensor(0)
    compiled = torch.compile(counted(counter))
    with pytest.warns(UserWarning, match="function runs uncompiled.*changes them") as told:
        results = [compiled(torch.ones(1)).item() for _ in range(7)]
    assert results == [2, 1, 1, 2, 1, 1, 2] and len(told) == 1 and counter.item() == 7


def test_numbers_after_a_write_raise():
    count, fresh = torch.tensor(2), torch.tensor(2)

    def written(x):
        count.add_(1)
        return x * count.item()

    with pytest.raises(RuntimeError, match=r"being traced.*that the function writes to"):
        torch.jit(written)(torch.ones(1))
    assert count.item() == 2

    def overwritten(x):
        fresh.zero_()
        return x + 1 if (fresh == 0).all() else x

    compiled = torch.jit(overwritten)
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [2, 2, 2] and compiled.count == 1


# ---- what is not known


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda x: x, "It depends on an argument"),
        (lambda x: torch.rand(2), "It depends on random numbers"),
        (lambda x: TIMES.new_zeros(2) + torch.rand(2), "It depends on random numbers"),
        (
            lambda x: torch.from_jax(
                lambda a: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), jnp.float32), a)
            )(TIMES),
            "It depends on what runs at each call",
        ),
        (
            lambda x: torch.from_jax(jax.jit(lambda a: a * 2, donate_argnums=0))(TIMES),
            "It depends on what runs at each call",
        ),
    ],
)
def test_what_changes_from_call_to_call_is_not_known(read, text):
    with pytest.raises(RuntimeError, match=f"being traced.*{text}"):
        torch.jit(lambda x: x * read(x).sum().item())(torch.ones(2))
    assert TIMES.tolist() == [0, 1, 2]


def test_the_gradient_of_a_tensor_from_outside_is_not_known():
    w = torch.ones(2, requires_grad=True)
    w.sum().backward()
    with pytest.raises(RuntimeError, match=r"It depends on a \.grad"):
        torch.jit(lambda x: x * w.grad.sum().item())(torch.ones(2))


def test_an_example_of_a_batch_is_not_known():
    with pytest.raises(RuntimeError, match=r"calling \.item.*being traced"):
        torch.func.vmap(lambda a: a * (a * 2).item())(torch.ones(2))


def test_a_function_that_catches_the_error_raises_all_the_same():
    def guarded(x):
        try:
            total = float(x.sum())
        except RuntimeError:
            total = 0.0
        return x + total

    with pytest.raises(RuntimeError, match=r"being traced.*test_known_numbers"):
        torch.jit(guarded)(torch.ones(2))
    with pytest.warns(UserWarning, match="runs uncompiled.*test_known_numbers"):
        assert torch.compile(guarded)(torch.ones(2)).tolist() == [3, 3]


def test_numbers_computed_from_an_int_that_varies_make_it_a_constant():
    @torch.jit
    def chosen(x, n):
        return x * 2 if (torch.tensor([1.0, 2.0]) * n).sum() > 10 else x

    x = torch.ones(1)
    assert [chosen(x, n).item() for n in (1, 2, 3, 4, 5, 1)] == [1, 1, 1, 2, 2, 1]


# ---- replays


def test_a_second_derivative_has_the_numbers_of_the_call():
    k, w = torch.tensor([1.0, 1.0]), torch.tensor(3.0, requires_grad=True)
    directly = torch.jit(lambda x: w * x**3 * k[0].item() * k.sum().item())
    for function in (directly, torch.jit(lambda x: directly(x))):
        k.fill_(1.0)
        x = torch.tensor(2.0, requires_grad=True)
        (first,) = torch.autograd.grad(function(x), x, create_graph=True)
        k.fill_(7.0)
        assert first.item() == 72  # 3 w x^2, twice
        assert torch.autograd.grad(first, w)[0].item() == 24


def test_a_backward_that_is_replayed_more_often_has_them_too():
    """A product's second derivative runs the backward of its factors once more."""
    k, w = torch.tensor([1.0, 1.0]), torch.tensor(3.0, requires_grad=True)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3 * k.sum().item()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x * k.sum().item()

    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(torch.jit(lambda x: w * Cube.apply(x))(x), x, create_graph=True)
    k.fill_(7.0)
    of_w, of_x = torch.autograd.grad(first, [w, x])
    assert (first.item(), of_w.item(), of_x.item()) == (72, 24, 72)  # 2 w 3 x^2 and derivatives


# ---- what is shown


def test_constants_are_shown_and_captured_tensors_are_not():
    w = torch.tensor(2.5)
    shown = torch.jit(lambda x: (repr(torch.arange(3) * 2), f"{torch.tensor(2.5)}", f"{w}"))
    texts = shown(torch.ones(1))
    assert texts[:2] == ("tensor([0, 2, 4])", "2.5") and "<traced>" in texts[2]
    w.fill_(3.0)
    shown(torch.ones(1))
    assert shown.count == 1
