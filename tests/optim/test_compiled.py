"""Optimizer steps inside `jaxgrad.jit` equal eager ones, and trace again only for another
program.
"""

import functools
import queue
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad
from jaxgrad.tape import mode


class Training:
    """A model of two parameters, its optimizer, and a step that counts how often Python runs it,
    for a compiled step how often it is traced.
    """

    def __init__(self, make, compiled, step=None):
        self.x = jaxgrad.tensor([1.0, -2.0], dtype=jaxgrad.float64, requires_grad=True)
        self.y = jaxgrad.tensor(0.5, dtype=jaxgrad.float64, requires_grad=True)
        self.optimizer = make([self.x, self.y])
        # capture cannot see into it, so a compiled step puts one only where Python runs it
        self.noted, self.compiled = queue.SimpleQueue(), compiled
        self.body = step or Training.usual
        self.step = jaxgrad.jit(self.run) if compiled else self.run

    def run(self, *args):
        # a verified call runs it uncompiled too
        if not self.compiled or mode.scope.get() is not None:
            self.noted.put(None)
        return self.body(self, *args)

    @property
    def runs(self):
        return self.noted.qsize()

    def usual(self, scale=1.0):
        self.optimizer.zero_grad()
        loss = ((self.x * self.y - 1) ** 2).sum() * scale
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def numbers(self):
        told = self.optimizer.state_dict()["state"]
        values = [t.detach().numpy() for t in (self.x, self.y)]
        return [*values, *(t.numpy() for state in told.values() for t in state.values())]


def both(make, script, step=None):
    """Compares a script on compiled and on eager steps. Returns how often Python ran."""
    eager, compiled = Training(make, False, step), Training(make, True, step)
    for training in (eager, compiled):
        script(training)
    for ours, theirs in zip(compiled.numbers(), eager.numbers(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert eager.runs >= compiled.runs
    return compiled.runs


def adam(params):
    return jaxgrad.optim.Adam(params, lr=0.1)


def sgd(params):
    return jaxgrad.optim.SGD(params, lr=0.1, momentum=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("make", [adam, sgd], ids=["Adam", "SGD"])
def test_100_steps_with_a_scheduler_are_one_trace(make):
    def script(training):
        known = jaxgrad.optim.lr_scheduler
        scheduler = known.OneCycleLR(training.optimizer, max_lr=0.2, total_steps=110)
        for _ in range(100):
            training.step()
            scheduler.step()

    assert both(make, script) == 1


def test_the_first_step_makes_the_state():
    training = Training(adam, True)
    assert not training.optimizer.state
    training.step()
    state = training.optimizer.state[training.x]
    assert state["step"].item() == 1 and state["exp_avg"].tolist() != [0, 0]
    training.step()
    assert training.optimizer.state[training.x]["exp_avg"] is state["exp_avg"]
    assert state["step"].item() == 2


@pytest.mark.slow
def test_an_option_that_makes_another_program():
    def script(training):
        (group,) = training.optimizer.param_groups
        for name, value in [("maximize", True), ("weight_decay", 0.5), ("weight_decay", 0.25)]:
            training.step()
            group[name] = value
            training.step()

    # as it is, to maximize, with a penalty: a penalty of another size is data
    assert both(adam, script) == 3


def test_betas_and_eps_are_data():
    def script(training):
        (group,) = training.optimizer.param_groups
        for beta in (0.9, 0.8, 0.7):
            group["betas"], group["eps"] = (beta, 0.95), beta / 10
            training.step()

    assert both(adam, script) == 1


@pytest.mark.slow
def test_a_gradient_that_comes_and_goes():
    def step(training, with_y):
        training.optimizer.zero_grad()
        loss = (training.x**2).sum() + (training.y.exp() if with_y else 0)
        loss.backward()
        training.optimizer.step()

    def script(training):
        for with_y in (False, True, True, False, False, True):
            training.step(with_y)

    both(adam, script, step)


def test_gradients_that_are_accumulated_over_calls():
    def accumulate(training, scale):
        (((training.x * training.y - 1) ** 2).sum() * scale).backward()

    def script(training):
        finish = training.optimizer.step
        update = jaxgrad.jit(lambda: finish()) if training.step != training.run else finish
        for _ in range(3):
            for scale in (1.0, 0.5, 0.25):
                training.step(jaxgrad.tensor(scale))
            update()
            training.optimizer.zero_grad()

    both(adam, script, accumulate)


@pytest.mark.slow
def test_a_group_that_is_added():
    def script(training):
        training.step()
        training.z = jaxgrad.ones(2, dtype=jaxgrad.float64, requires_grad=True)
        training.optimizer.add_param_group({"params": [training.z], "lr": 0.5})
        training.z.grad = jaxgrad.ones_like(training.z)
        training.body = lambda self: self.optimizer.step()
        training.step()
        training.step()
        assert training.z.tolist() != [1.0, 1.0]

    both(adam, script)


@pytest.mark.slow
def test_state_that_is_loaded():
    def script(training):
        training.step()
        held = training.optimizer.state_dict()
        held = {"state": dict(held["state"]), "param_groups": held["param_groups"]}
        mean = {name: value.clone() for name, value in held["state"][0].items()}
        training.step()
        training.optimizer.load_state_dict(held | {"state": {0: mean, 1: held["state"][1]}})
        training.step()
        training.step()

    assert both(adam, script) == 2


@pytest.mark.slow
def test_state_that_is_cleared():
    def script(training):
        training.step()
        held = dict(training.optimizer.state)
        training.optimizer.state.clear()
        training.step()
        training.step()
        assert len(held) == 2

    both(adam, script)


@pytest.mark.slow
def test_an_lr_that_is_a_tensor():
    def make(params):
        return jaxgrad.optim.AdamW(params, lr=jaxgrad.tensor(0.1, dtype=jaxgrad.float64))

    def script(training):
        (group,) = training.optimizer.param_groups
        for _ in range(4):
            training.step()
            group["lr"].mul_(0.5)
        held, group["lr"] = group["lr"], jaxgrad.tensor(0.3, dtype=jaxgrad.float64)
        training.step()
        assert held.item() == 0.1 / 16

    assert both(make, script) == 2  # one for each tensor


@pytest.mark.slow
def test_state_that_is_replaced():
    def script(training):
        training.step()
        state = training.optimizer.state[training.x]
        held, state["exp_avg"] = state["exp_avg"], jaxgrad.ones_like(state["exp_avg"])
        training.step()
        assert held is not state["exp_avg"]

    assert both(adam, script) == 2


@pytest.mark.slow
def test_an_lr_that_is_an_argument():
    def step(training, rate):
        for group in training.optimizer.param_groups:
            group["lr"] = rate
        return training.usual()

    def script(training):
        for number in range(5):
            training.step(0.1 / (1 + number))
            assert training.optimizer.param_groups[0]["lr"] == 0.1 / (1 + number)

    assert both(sgd, script, step) == 2  # from the second call on it is an input


def test_several_steps_in_one_program():
    def step(training):
        for _ in range(3):
            training.usual()

    def script(training):
        for _ in range(3):
            training.step()

    assert both(adam, script, step) == 1


@pytest.mark.slow
def test_two_optimizers_in_one_program():
    others = {}

    def step(training):
        if training not in others:
            others[training] = jaxgrad.optim.SGD([training.y], lr=0.01, momentum=0.5)
        training.usual()
        others[training].step()

    def script(training):
        for _ in range(4):
            training.step()

    assert both(adam, script, step) == 2  # the first call goes another way


@pytest.mark.slow
def test_a_compiled_closure():
    def script(training):
        optimizer = training.optimizer

        def closure():
            optimizer.zero_grad()
            loss = ((training.x * training.y - 1) ** 2).sum()
            loss.backward()
            return loss.detach()

        is_compiled = training.step != training.run
        compiled = jaxgrad.jit(closure) if is_compiled else closure
        for _ in range(2):
            optimizer.step(compiled)

    def make(params):
        return jaxgrad.optim.LBFGS(params, max_iter=3, line_search_fn="strong_wolfe")

    eager, compiled = Training(make, False), Training(make, True)
    script(eager)
    script(compiled)
    assert compiled.x.tolist() == pytest.approx(eager.x.tolist(), rel=1e-9)


def test_LBFGS_says_that_it_cannot_be_traced():
    x = jaxgrad.ones(2, requires_grad=True)
    optimizer = jaxgrad.optim.LBFGS([x])
    with pytest.raises(RuntimeError, match="Compile the closure, and call step outside"):
        jaxgrad.jit(lambda: optimizer.step(lambda: (x * x).sum()))()
    assert x.tolist() == [1, 1]


def test_LBFGS_names_a_closure_that_returns_nothing():
    optimizer = jaxgrad.optim.LBFGS([jaxgrad.ones(2, requires_grad=True)])
    with pytest.raises(TypeError, match=r"closure returned None: it must return the loss"):
        optimizer.step(lambda: None)


@pytest.mark.unverified
def test_what_hooks_of_a_step_append_is_appended_by_each_call():
    calls = []

    def script(training):
        calls.clear()
        training.optimizer.register_step_post_hook(lambda *_: calls.append(None))
        for _ in range(3):
            training.step()

    both(adam, script)
    assert len(calls) == 3


def test_a_scheduler_after_the_first_compiled_step_does_not_warn():
    training = Training(sgd, True)
    training.step()
    scheduler = jaxgrad.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.5)
    training.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()
    assert training.runs == 1


def test_an_error_leaves_the_optimizer_as_it_was():
    def step(training):
        training.usual()
        raise ValueError("no")

    training = Training(adam, True, step)
    before = training.x.tolist()
    with pytest.raises(ValueError, match="no"):
        training.step()
    assert training.x.tolist() == before
    assert not training.optimizer.state[training.x]


@pytest.mark.slow
def test_the_lr_of_one_group_is_not_that_of_another():
    def make(params):
        groups = [
            {"params": [param], "lr": rate} for param, rate in zip(params, (0.1, 0.2), strict=True)
        ]
        return jaxgrad.optim.AdamW(groups)

    def script(training):
        for number in range(4):
            training.optimizer.param_groups[1]["lr"] = 0.1 * number
            training.step()

    assert both(make, script) == 1


# ---- inside of JAX's own transformations


def minimized(array, kind, **options):
    """Three steps down a bowl, by an optimizer that is made for it."""
    x = jaxgrad.as_tensor(array).detach().requires_grad_()
    optimizer = getattr(jaxgrad.optim, kind)([x], lr=0.1, **options)
    for _ in range(3):
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()
    return x._array


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "dampening": 0.5}), ("Adam", {})],
)
def test_optimizers_that_are_made_under_a_trace(kind, options):
    points = np.array([[1.0, 2.0], [-0.5, 3.0]])
    with jax.enable_x64(True):
        expected = [minimized(jnp.array(point), kind, **options) for point in points]
        run = functools.partial(minimized, kind=kind, **options)
        np.testing.assert_allclose(jax.jit(run)(points[0]), expected[0], rtol=1e-12)
        np.testing.assert_allclose(jax.vmap(run)(points), expected, rtol=1e-12)


@pytest.mark.slow
def test_jax_differentiates_recorded_steps():
    def loss(array, rate):
        x = jaxgrad.as_tensor(array) * 1
        optimizer = jaxgrad.optim.SGD([x], lr=rate, momentum=0.5, differentiable=True)
        for _ in range(2):
            x.grad = 2 * x.clone()
            optimizer.step()
        return (x * x).sum()._array

    # x (1 - 2r) after one step, x (1 - 5r + 4r^2) after two
    with jax.enable_x64(True):
        by_point, by_rate = jax.grad(loss, (0, 1))(jnp.array([1.0, 2.0]), jnp.float64(0.1))
    factor, slope = 1 - 5 * 0.1 + 4 * 0.1**2, -5 + 8 * 0.1
    np.testing.assert_allclose(by_point, 2 * factor**2 * np.array([1.0, 2.0]), rtol=1e-12)
    np.testing.assert_allclose(by_rate, 2 * factor * slope * 5, rtol=1e-12)


def test_a_step_of_an_optimizer_from_outside_is_refused_under_a_trace():
    training = Training(adam, False)
    training.run()
    with pytest.raises(RuntimeError, match="from outside of the function that is being compiled"):
        jax.jit(lambda: training.optimizer.step())()


# groups and schedulers changed inside a compiled function


@pytest.mark.slow
def test_a_scheduler_steps_within():
    rates = []

    def step(training):
        if not hasattr(training, "schedulers"):
            known = jaxgrad.optim.lr_scheduler
            first = known.ConstantLR(training.optimizer, 0.5, 2)
            training.schedulers = [
                known.SequentialLR(
                    training.optimizer, [first, known.StepLR(training.optimizer, 1)], [3]
                )
            ]
        loss = training.usual()
        training.schedulers[0].step()
        return loss

    def script(training):
        step(training)  # which constructs the scheduler
        for _ in range(4):
            training.step()
            rates.append(training.schedulers[0].get_last_lr())

    assert both(sgd, script, step) == 1
    np.testing.assert_allclose(rates, 2 * [[0.1], [0.1], [0.01], [0.001]], rtol=1e-12)


def test_a_scheduler_that_steps_within_refuses_what_would_be_out_of_date():
    def ending(*after):
        x = jaxgrad.ones(2, requires_grad=True)
        optimizer = sgd([x])
        scheduler = jaxgrad.optim.lr_scheduler.StepLR(optimizer, 1)
        plateau = jaxgrad.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        known = {
            "step": optimizer.step,
            "again": scheduler.step,
            "rates": scheduler.get_last_lr,
            "metric": lambda: plateau.step(1.0),
            "error": lambda: 1 / 0,
            "option": lambda: optimizer.param_groups[0]["lr"],
            "optional": lambda: optimizer.param_groups[0].get("momentum"),
            "options": lambda: dict(optimizer.param_groups[0].items()),
            "set": lambda: optimizer.param_groups[0].update(lr=0.5),
        }

        def step():
            (x * x).sum().backward()
            optimizer.step()
            scheduler.step()
            for name in after:
                known[name]()

        with pytest.raises((RuntimeError, ZeroDivisionError)) as raised:
            jaxgrad.jit(step)()
        assert x.tolist() == [1, 1] and scheduler.get_last_lr() == [0.1]
        return str(raised.value)

    assert "SGD.step() after the step of a scheduler" in ending("step")
    assert "StepLR.step more than once" in ending("again")
    assert "call get_last_lr() outside" in ending("rates")
    assert "ReduceLROnPlateau.step that is given a number" in ending("metric")
    assert "division" in ending("error")
    assert "param_groups[...]['lr'] after the step of a scheduler" in ending("option")
    assert "param_groups[...]['momentum'] after the step of a scheduler" in ending("optional")
    assert "read and set the option before the step" in ending("options")
    assert "param_groups[...]['lr'] after the step of a scheduler" in ending("set")


@pytest.mark.slow
def test_an_lr_that_is_set_before_the_step_of_a_scheduler():
    seen = []

    def step(training):
        loss = training.usual()
        training.optimizer.param_groups[0]["lr"] *= 0.5
        training.scheduler.step()
        return loss

    def script(training):
        (group,) = training.optimizer.param_groups
        training.scheduler = jaxgrad.optim.lr_scheduler.StepLR(training.optimizer, 2, gamma=0.5)
        for _ in range(4):
            training.step()
            seen.append((group["lr"], *training.scheduler.get_last_lr()))

    both(sgd, script, step)
    rates = [0.05, 0.0125, 0.00625, 0.0015625]
    np.testing.assert_allclose(seen, 2 * [(rate, rate) for rate in rates], rtol=1e-12)


@pytest.mark.slow
def test_an_lr_that_is_read_or_set_within():
    seen = []

    def decay(training):
        loss = training.usual()
        for group in training.optimizer.param_groups:
            group["lr"] *= 0.5
            group["betas"] = (group.get("betas")[0] - 0.1, 0.99)
        return loss

    def script(training):
        for _ in range(3):
            training.step()
        (group,) = training.optimizer.param_groups
        seen.append((group["lr"], group["betas"][0]))

    assert both(adam, script, decay) == 3  # a rate that Python looks at is part of the program
    np.testing.assert_allclose(seen, 2 * [(0.0125, 0.6)], rtol=1e-12)


@pytest.mark.slow
def test_an_lr_that_is_set_within_is_set_at_each_call():
    rates = {"low": 0.1, "high": 0.2}

    def step(training, name):
        training.optimizer.param_groups[0].update(lr=rates[name])
        return training.usual()

    def script(training):
        (group,) = training.optimizer.param_groups
        for name in ("low", "low", "high", "high"):
            group["lr"] = 7.0
            training.step(name)
            assert group["lr"] == rates[name]

    assert both(sgd, script, step) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "read",
    [lambda s, n: s.optimizer.param_groups[n]["lr"], lambda s, n: s.get_last_lr()[n]],
    ids=["group", "last"],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_an_equal_lr_of_another_type(read, groups):
    """The types are those of the function uncompiled."""
    params = [{"params": [jaxgrad.ones(1, requires_grad=True)]} for _ in range(groups)]
    optimizer = jaxgrad.optim.SGD(params, lr=1)
    schedule = jaxgrad.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1)
    count = jaxgrad.tensor([2])

    def scale():
        return count * sum(read(schedule, number) for number in range(groups))

    scaled = jaxgrad.jit(scale)
    for rate in (1, 1.0, True):
        schedule._last_lr = [rate] * groups
        for group in optimizer.param_groups:
            group["lr"] = rate
        assert scaled().dtype is scale().dtype


def test_a_user_defined_optimizer_reads_the_current_lr():
    class Signs(jaxgrad.optim.Optimizer):
        @jaxgrad.no_grad()
        def step(self):
            for group in self.param_groups:
                for param in group["params"]:
                    param.sub_(group["lr"] * param.grad.sign())

    def script(training):
        for rate in (0.5, 0.25, 0.25):
            training.optimizer.param_groups[0]["lr"] = rate
            training.step()

    assert both(lambda params: Signs(params, {"lr": 1.0}), script) == 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [adam, sgd], ids=["Adam", "SGD"])
def test_programs_for_parameters_that_take_turns(make):
    def step(training, name):
        training.optimizer.zero_grad()
        (getattr(training, name) * training.z).sum().backward()
        training.optimizer.step()

    def script(training):
        training.z = jaxgrad.tensor(2.0, dtype=jaxgrad.float64, requires_grad=True)
        training.optimizer.add_param_group({"params": [training.z], "lr": 0.01})
        for name in "xyxyyxxy":
            training.step(name)

    # Adam has one count for x and z, until z goes on without x: each program is made twice
    assert both(make, script, step) == (4 if make is adam else 2)


def test_an_optimizer_that_is_made_within():
    @jaxgrad.jit
    def fitted(x):
        weight = jaxgrad.zeros_like(x).requires_grad_()
        optimizer = jaxgrad.optim.SGD([weight], lr=0.25)
        for _ in range(2):
            optimizer.zero_grad()
            ((weight - x) ** 2).sum().backward()
            optimizer.step()
        return weight.detach()

    # half of the remaining distance, twice
    for value in (1.0, 2.0):
        assert fitted(jaxgrad.tensor([value, 4.0])).tolist() == [0.75 * value, 3.0]
    assert fitted.count == 1


def test_a_tensor_in_a_group_of_a_function_that_cannot_be_traced():
    """Nothing of the failed trace stays in the group: the function runs uncompiled on what the
    call before has left there.
    """
    weight = jaxgrad.tensor([1.0, 1.0], requires_grad=True)
    group = jaxgrad.optim.SGD([weight], lr=0.1).param_groups[0]

    @jaxgrad.compile
    def step():
        with jaxgrad.no_grad():
            if "last" not in group:
                group["last"] = weight.sum()
            group["sum"] = weight.sum()
            change = (group["sum"] - group["last"]).item()
            group["lr"] = group["lr"] + change
            group["last"] = group["sum"]
            weight.mul_(0.5)
        return weight.sum()

    sums = [2.0, 1.0, 0.5, 0.25]
    with pytest.warns(UserWarning, match="runs uncompiled"):
        for number, value in enumerate(sums):
            assert step().item() == value / 2
            assert group["last"].item() == group["sum"].item() == value
            assert group["lr"] == pytest.approx(0.1 + sums[number] - sums[0], abs=1e-12)
