"""What Python draws in a compiled function is drawn at each call: the numbers and the states of the
generators are those of the uncompiled function.
"""

import copy
import datetime
import functools
import importlib
import itertools
import math
import os
import queue
import random
import subprocess
import time
import types
import warnings
from random import gauss
from random import random as uniform
from time import perf_counter

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad.utils.checkpoint import checkpoint

nn = torch.nn
X = torch.tensor([1.0, 2.0, 3.0, 4.0])
CALLS = 6

# ---- worlds: each is built anew for the uncompiled and for the compiled function


class World:
    """Generators, and a function that draws from them."""

    def __init__(self):
        random.seed(1)
        np.random.seed(2)
        torch.manual_seed(3)
        self.generator = random.Random(4)
        self.rng, self.state = np.random.default_rng(5), np.random.RandomState(6)
        self.count, self.rate = itertools.count(7), 1.0
        self.items = [1.0, 2.0, 3.0]

    def states(self):
        return [
            random.getstate(),
            repr(np.random.get_state()),
            self.generator.getstate(),
            repr(self.rng.bit_generator.state),
            repr(self.state.get_state()),
            torch.get_rng_state().tolist(),
            repr(self.count),
            self.rate,
            self.items,
        ]


def flip_and_scale(world, x):
    if random.random() < 0.5:
        x = x.flip(0)
    return x * random.uniform(0.8, 1.2)


def crop(world, x):
    start = random.randint(0, 2)
    return x[start : start + 2]


def numpy_noise(world, x):
    return x + torch.from_numpy(np.random.randn(4).astype(np.float32))


def numpy_mask(world, x):
    mask = (world.rng.random(4) > 0.5) / 0.5
    return x * torch.as_tensor(mask)


def scheduled_sampling(world, x):
    if random.random() < world.rate:
        x = x * 2
    world.rate *= 0.7
    return x


def epsilon_greedy(world, x):
    if world.generator.random() < 0.4:
        return x[world.generator.randrange(4)]
    return x.max()


def shuffled(world, x):
    random.shuffle(world.items)
    return x * world.items[0]


def sampled(world, x):
    first, second = random.sample(world.items, 2)
    return x * first + second


def chosen(world, x):
    return random.choice([torch.sin, torch.cos])(x) * random.choices(world.items, k=1)[0]


def under_another_name(world, x):
    return x * gauss(0, 1) + uniform()


def of_instances(world, x):
    return x * world.generator.gauss(0, 1) + world.rng.normal() * world.state.uniform(1, 2)


def integers(world, x):
    return x * random.randrange(10) + world.generator.getrandbits(3) - np.random.randint(5)


def permuted(world, x):
    return x[torch.from_numpy(world.state.permutation(4))]


def array_that_is_changed(world, x):
    noise = world.rng.normal(size=(4,))
    view = noise[1:3]
    noise *= 2
    view += 1
    noise[0] = np.random.rand()
    return x + torch.tensor(noise, dtype=torch.float32)


def array_statistics(world, x):
    noise = world.rng.normal(size=(2, 4))
    centred = noise - noise.mean(axis=1, keepdims=True)
    return x * torch.tensor(np.clip(centred, -1, 1).sum(0)) + float(noise.std() > 1)


def drawn_from_drawn(world, x):
    low = random.random()
    return x * random.uniform(low, low + 1)


def in_a_loop(world, x):
    for _ in range(random.randint(1, 3)):
        x = x * random.uniform(0.5, 2)
    return x


def counted(world, x):
    return x * next(world.count)


def looked_at(world, x):
    return x * math.log(1 + random.random())


def as_text(world, x):
    return x * len(f"{random.random():.2f}{random.randint(0, 20)}")


def key_of_a_dict(world, x):
    return x * {0: 1.0, 1: 2.0, 2: 3.0}[random.randint(0, 2)]


def seeded(world, x):
    random.seed(0)
    np.random.seed(1)
    return x * random.random() + np.random.rand()


def state_set_back(world, x):
    state = random.getstate()
    first = random.random()
    random.setstate(state)
    return x * first + random.random()


def generator_made_inside(world, x):
    rng, own = np.random.default_rng(3), random.Random(4)
    return x * own.random() + torch.tensor(rng.normal(size=4))


def generator_with_a_drawn_seed(world, x):
    return x * random.Random(random.randint(0, 2)).random()


def returned(world, x):
    return x * 2, random.random(), [random.randint(0, 9)], {"noise": np.random.rand()}


def kept(world, x):
    world.rate = random.random()
    return x * world.rate


def several_generators(world, x):
    return x * torch.rand(4) * random.random() + np.random.rand() * torch.rand(4)


def argument_of_a_draw(world, x):
    world.rate += 1
    return x * random.uniform(0, world.rate)


class Noisy(nn.Module):
    """A module that draws in a method."""

    def __init__(self, own):
        super().__init__()
        self.generator, self.linear = own, nn.Linear(4, 4)
        nn.init.constant_(self.linear.weight, 0.5)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return self.linear(x) * self.noise()

    def noise(self):
        return 1 + self.generator.random()


def method_of_a_module(world):
    return Noisy(world.generator)


def recomputed(world):
    weight = torch.ones(4, requires_grad=True)

    def inner(x):
        return (x * weight * random.random()).sin()

    def f(x):
        weight.grad = None
        checkpoint(inner, x, use_reentrant=False).sum().backward()
        return weight.grad * 1

    return f


def gradient(world):
    weight = torch.ones(4, requires_grad=True)

    def f(x):
        weight.grad = None
        (x * weight * random.random()).sum().backward()
        return weight.grad.clone()

    return f


def default_argument(world):
    return lambda x, rng=world.rng: x * rng.uniform()


def element_of_a_tuple(world):
    held = (world.rng,)
    return lambda x: x * held[0].uniform()


def partial(world):
    return functools.partial(lambda own, x: x * own.random(), world.generator)


def bound_method(world):
    draw = world.rng.uniform
    return lambda x: x * draw()


FUNCTIONS = [
    flip_and_scale,
    crop,
    numpy_noise,
    numpy_mask,
    scheduled_sampling,
    epsilon_greedy,
    shuffled,
    sampled,
    chosen,
    under_another_name,
    of_instances,
    integers,
    permuted,
    array_that_is_changed,
    array_statistics,
    drawn_from_drawn,
    in_a_loop,
    counted,
    looked_at,
    as_text,
    key_of_a_dict,
    seeded,
    state_set_back,
    generator_made_inside,
    generator_with_a_drawn_seed,
    returned,
    kept,
    several_generators,
    argument_of_a_draw,
]
BUILDERS = [
    method_of_a_module,
    recomputed,
    gradient,
    default_argument,
    element_of_a_tuple,
    partial,
    bound_method,
]
# those whose numbers all are inputs, or select one of a few programs
COMPILED = {
    flip_and_scale: 2,
    crop: 3,
    scheduled_sampling: 3,
    epsilon_greedy: 5,
    chosen: 6,
    under_another_name: 1,
    of_instances: 1,
    integers: 1,
    drawn_from_drawn: 1,
    counted: 1,
    seeded: 1,
    generator_made_inside: 1,
    returned: 1,
    kept: 2,
    several_generators: 1,
    method_of_a_module: 1,
    recomputed: 1,
    gradient: 1,
    partial: 1,
    bound_method: 1,
    in_a_loop: 3,
    argument_of_a_draw: 2,
}


def leaves_of(result):
    if isinstance(result, torch.Tensor):
        return result.tolist()
    if isinstance(result, dict):
        return {name: leaves_of(value) for name, value in result.items()}
    if isinstance(result, list | tuple):
        return type(result)(map(leaves_of, result))
    return result


def run(build, compile):
    world = World()
    function = build(world)
    function = compile(function)
    results = []
    for _ in range(CALLS):
        result = function(X)
        results.append((leaves_of(result), copy.deepcopy(world.states())))
    return results, function


def assert_close(value, expected):
    if isinstance(expected, np.ndarray):
        np.testing.assert_allclose(value, expected)
    elif isinstance(expected, dict):
        assert_close([*value.items()], [*expected.items()])
    elif isinstance(expected, list | tuple):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            assert_close(one, other)
    else:
        assert value == (pytest.approx(expected, rel=1e-5) if expected != str(expected) else value)


def check(build, most=None):
    expected, _ = run(build, lambda function: function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results, compiled = run(build, torch.jit)
    for (result, states), (wanted, others) in zip(results, expected, strict=True):
        assert_close(result, wanted)
        assert states[:-2] == others[:-2]
        assert_close(states[-2:], others[-2:])
    if most is not None:
        assert compiled.count <= most, compiled.explain()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_draws_are_those_of_the_uncompiled_function(function):
    def build(world):
        return lambda x: function(world, x)

    check(build, COMPILED.get(function))


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_draws_of_other_owners(build):
    check(build, COMPILED.get(build))


# ---- iterators


def elements():
    return iter([X * number for number in range(CALLS + 1)])


def batches():
    for number in range(CALLS + 1):
        yield {"x": X * torch.rand(4), "label": number, "kind": "even"}


def loaded():
    data = torch.utils.data.TensorDataset(
        torch.arange(2.0 * CALLS + 2), torch.arange(2 * CALLS + 2)
    )
    return iter(torch.utils.data.DataLoader(data, batch_size=2, shuffle=True))


TAKEN = {
    "tensors": (elements, lambda x, it: x * next(it)),
    "batches": (batches, lambda x, it: (lambda b: x * b["x"] + b["label"])(next(it))),
    "a loader": (loaded, lambda x, it: (lambda b: x[:2] * b[0] + b[1])(next(it))),
    "numbers": (lambda: iter(range(9)), lambda x, it: x * next(it)),
    "zip": (
        lambda: zip(range(9), elements(), strict=False),
        lambda x, it: (lambda n, y: x * n + y)(*next(it)),
    ),
    "a loop": (
        lambda: iter(range(99)),
        lambda x, it: x + sum(n for n, _ in zip(it, X, strict=False)),
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_an_iterator_goes_on_at_each_call(name):
    make, use = TAKEN[name]

    def results(compile):
        torch.manual_seed(1)
        iterator = make()
        function = compile(lambda x: use(x, iterator))
        return [function(X).tolist() for _ in range(CALLS)], next(iterator, None), function

    (values, rest, compiled), (expected, other, _) = results(torch.jit), results(lambda f: f)
    assert_close(values, expected)
    assert repr(rest) == repr(other) and compiled.count == 1


def test_an_iterator_that_ends():
    def results(compile):
        state = types.SimpleNamespace(iterator=iter([1.0, 2.0]))

        def f(x):
            try:
                return x * next(state.iterator)
            except StopIteration:
                state.iterator = iter([3.0, 4.0])
                return x * 0

        function = compile(f)
        return [function(X).tolist() for _ in range(7)]

    assert results(torch.jit) == results(lambda f: f)


def test_an_element_is_written_to_and_has_a_gradient():
    weights = [torch.ones(2, requires_grad=True) for _ in range(3)]
    buffers = [torch.zeros(2) for _ in range(3)]
    pairs = iter(zip(weights, buffers, strict=True))

    @torch.jit
    def step(x):
        weight, buffer = next(pairs)
        (weight * x).sum().backward()
        buffer.add_(x)

    for number in range(3):
        step(torch.ones(2) * number)
    assert [weight.grad.tolist() for weight in weights] == [[0, 0], [1, 1], [2, 2]]
    assert [buffer.tolist() for buffer in buffers] == [[0, 0], [1, 1], [2, 2]]
    assert step.count == 1


def test_an_element_is_not_taken_where_the_function_goes_another_way():
    state = types.SimpleNamespace(on=True)
    numbers = iter([1.0, 2.0, 3.0])

    @torch.jit
    def f(x):
        return x * next(numbers) if state.on else x * 0

    assert f(X[:1]).item() == 1
    state.on = False
    assert f(X[:1]).item() == 0
    state.on = True
    assert f(X[:1]).item() == 2 and next(numbers) == 3


def test_an_iterator_reads_a_tensor_of_the_function():
    weight = torch.ones(2)

    def scaled():
        for number in range(9):
            yield weight * number

    def results(compile, is_written):
        weight.fill_(1.0)
        numbers = scaled()

        def f(x):
            y = weight * next(numbers)
            if is_written:
                weight.add_(x)
                y = y + next(numbers)
            else:
                weight.add_(y)
            return y

        function = compile(f)
        return [function(torch.ones(2)).tolist() for _ in range(3)]

    assert results(torch.jit, False) == results(lambda f: f, False)
    with pytest.raises(RuntimeError, match="needs a tensor that the function has written to"):
        results(torch.jit, True)


def test_a_queue():
    waiting = queue.Queue()
    for number in range(3):
        waiting.put(X * number)
    f = torch.jit(lambda x: x + waiting.get())
    assert [f(X)[0].item() for _ in range(3)] == [1, 2, 3] and f.count == 1


# ---- the time, the environment, files


CLOCKS = {
    "time": lambda x: x * 0 + time.time(),
    "from time import": lambda x: x * 0 + perf_counter(),
    "nanoseconds": lambda x: x * 0 + time.monotonic_ns(),
    "difference": lambda x: x * 0 + (time.perf_counter() - START),
}
START = time.perf_counter()


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.unverified
def test_the_time_goes_on(name):
    compiled, x = torch.jit(CLOCKS[name]), torch.ones((), dtype=torch.float64)
    first, second = compiled(x).item(), compiled(x).item()
    third = CLOCKS[name](x).item()
    assert first < second < third and compiled.count == 1


@pytest.mark.unverified
def test_the_date_goes_on():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = torch.jit(lambda x: x * 0 + datetime.datetime.now().timestamp())
        x = torch.ones((), dtype=torch.float64)
        times = [f(x).item() for _ in range(12)]
    assert times == sorted(times) and len(set(times)) == 12
    kinds = torch.jit(lambda x: x * isinstance(DAY, datetime.date) * datetime.date(2000, 1, 2).day)
    assert kinds(x).item() == 2


DAY = datetime.date(2000, 1, 1)


def environment(read):
    def results(compile):
        f, outputs = compile(lambda x: x * read()), []
        for value in ("1", "1", "22", None, None, "333"):
            os.environ.pop("JAXGRAD_TEST", None)
            if value is not None:
                os.environ["JAXGRAD_TEST"] = value
            outputs.append(f(X).tolist())
        return outputs, f

    return results


@pytest.mark.parametrize(
    "read",
    [
        lambda: len(os.environ.get("JAXGRAD_TEST", "")),
        lambda: len(os.getenv("JAXGRAD_TEST", "four")),
        lambda: 2 if "JAXGRAD_TEST" in os.environ else 3,
        lambda: len({**os.environ}.get("JAXGRAD_TEST", "")),
    ],
)
def test_a_variable_of_the_environment_is_a_place(read, monkeypatch):
    monkeypatch.setenv("JAXGRAD_TEST", "1")
    expected, _ = environment(read)(lambda f: f)
    results, compiled = environment(read)(torch.jit)
    assert results == expected and 2 <= compiled.count <= 4


def test_another_variable_does_not_matter(monkeypatch):
    f = torch.jit(lambda x: x * len(os.environ.get("JAXGRAD_TEST", "")))
    f(X)
    monkeypatch.setenv("JAXGRAD_OTHER", "1")
    f(X)
    assert f.count == 1


def test_a_variable_that_is_set_inside(monkeypatch):
    monkeypatch.setenv("JAXGRAD_TEST", "1")

    @torch.jit
    def f(x):
        os.environ["JAXGRAD_TEST"] = os.environ["JAXGRAD_TEST"] + "1"
        return x * len(os.environ["JAXGRAD_TEST"])

    assert [f(X[:1]).item() for _ in range(3)] == [2, 3, 4]
    shown = subprocess.check_output("echo $JAXGRAD_TEST", shell=True, text=True)
    assert os.environ["JAXGRAD_TEST"] == "1111" == shown.strip()


def test_a_file_is_read_at_each_call(tmp_path):
    path = tmp_path / "numbers"

    def opened(x):
        with open(path) as file:
            return x * float(file.read())

    for read in (opened, lambda x: x * float(path.read_text())):
        path.write_text("1")
        f = torch.jit(read)
        with pytest.warns(
            UserWarning, match="runs uncompiled from now on, because it opens a file"
        ):
            assert f(X[:1]).item() == 1
        path.write_text("2")
        assert f(X[:1]).item() == 2


def test_a_file_that_is_open():
    with open(__file__) as file:
        f = torch.jit(lambda x: x * len(file.readline()))
        with pytest.warns(UserWarning, match="it uses readline of a TextIOWrapper"):
            results = [f(X[:1]).item() for _ in range(3)]
    with open(__file__) as file:
        assert results == [len(file.readline()) for _ in range(3)]


# ---- what is told


def told(call):
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in recorded]


def rolls():
    yield importlib.import_module("random").random()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x * torch.rand(()),
        lambda x: x * random.random(),
        lambda x: x * sum(rolls()),
        lambda x: x * torch.tracing.number(lambda: random.random()),
        lambda x: x * torch.tracing.number(random.random),
        lambda x: x * torch.tracing.number(time.time),
        lambda x: x * time.time(),
        lambda x: x * len(os.environ),
        torch.nn.Linear(4, 2),
    ],
)
def test_what_each_call_reads_is_not_told(function):
    assert told(lambda: torch.jit(function)(X)) == []


def test_a_function_that_looks_at_every_number_runs_uncompiled():
    f = torch.jit(lambda x: x * float(random.random()))
    (message,) = told(lambda: [f(X) for _ in range(20)])
    assert "runs uncompiled from now on, because it looks at what it draws" in message
    assert f.count < 20


def test_vmap_calls_such_a_function_each_time():
    random.seed(0)
    wanted = [random.random() for _ in range(3)]
    mapped, results = torch.func.vmap(lambda x: x * random.random()), []
    random.seed(0)
    double = torch.ones(2, dtype=torch.float64)
    assert told(lambda: results.extend(mapped(double).tolist() for _ in wanted)) == []
    assert results == [[number, number] for number in wanted]
    clock = torch.func.vmap(lambda x: x * time.perf_counter_ns())
    first, second = clock(double), clock(double)
    assert first[0] < second[0]


def test_a_compiled_function_in_another_one():
    inner = torch.jit(lambda x: x * random.random())
    outer = torch.jit(lambda x: inner(x) * 2)
    random.seed(0)
    results = [outer(X[:1]).item() for _ in range(3)]
    random.seed(0)
    assert results == pytest.approx([2 * random.random() for _ in range(3)])


def test_a_derivative_of_higher_order_repeats_the_draws():
    random.seed(0)

    def f(x):
        y = x**3 * random.random()
        return y * 2 if random.random() < 2 else y

    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(torch.jit(f)(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    random.seed(0)
    assert second.item() == pytest.approx(6 * 2 * 2 * random.random())


@pytest.mark.unverified
def test_a_function_that_is_traced_at_each_call_draws_each_time():
    kept = queue.SimpleQueue()  # whose contents capture cannot see

    def step(x):
        kept.put(x * random.random())
        return x

    compiled = torch.jit(step)
    assert told(lambda: (compiled(torch.ones(2)), compiled(torch.ones(2)))) == []
    assert kept.get().tolist() != kept.get().tolist()


def test_a_fallback_gets_what_the_trace_has_drawn():
    def step(x, numbers):
        factor = next(numbers.iterator) * random.random()
        return x * factor if x.sum().item() > 0 else x

    def results(compile):
        random.seed(0)
        numbers = types.SimpleNamespace(iterator=iter(range(1, 9)))
        function = compile(lambda x: step(x, numbers))
        values = [function(X[:1]).item() for _ in range(3)]
        return values, random.getstate(), next(numbers.iterator)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = results(functools.partial(torch.jit, fallback=True))
    assert outcome == results(lambda function: function)


def test_an_error_of_a_trace_draws_nothing():
    before = random.getstate()
    with pytest.raises(ZeroDivisionError):
        torch.jit(lambda x: random.random() / 0)(X)
    assert random.getstate() == before


def test_other_threads_draw_as_before():
    """Functions are replaced while one thread traces; all others get the plain ones."""
    import threading

    drawn = []

    def f(x):
        worker = threading.Thread(target=lambda: drawn.append(random.random()))
        worker.start()
        worker.join()
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit(f)(X)
    assert type(drawn[0]) is float
    assert random.random.__self__ is random._inst and type(time.time()) is float


# ---- arrays of NumPy


ARRAYS = {
    "dtype": lambda rng, x: x + torch.tensor(rng.normal(size=4), dtype=torch.float32),
    "integers": lambda rng, x: x + torch.tensor(rng.normal(size=4) * 5, dtype=torch.int32),
    "operand": lambda rng, x: x + rng.normal(size=4),
    "operand on the left": lambda rng, x: rng.normal(size=4) * x,
    "scalar": lambda rng, x: x * rng.normal(size=3).sum(),
    "item": lambda rng, x: x * rng.normal(size=3).sum().item(),
    "condition": lambda rng, x: x if rng.normal(size=3).sum() > 0 else x * 2,
    "index": lambda rng, x: x[torch.from_numpy(rng.permutation(4)[:2])],
    "numbers": lambda rng, x: x * rng.integers(5) + rng.integers(0, 3, size=4).sum(),
    "list": lambda rng, x: x * rng.integers(0, 2, size=2).tolist()[0],
    "elements": lambda rng, x: x + torch.tensor([rng.normal(), 2.0, rng.normal(), 1.0]),
    "array of elements": lambda rng, x: x[:2] + torch.tensor(np.array([rng.normal(), 2.0])),
    "joined": lambda rng, x: x + torch.tensor(np.concatenate([rng.normal(size=2), np.ones(2)])),
    "where": lambda rng, x: x + torch.as_tensor(np.where(rng.random(4) > 0.5, rng.random(4), 0.0)),
    "einsum": lambda rng, x: (
        x + torch.tensor(np.einsum("ij,j->i", rng.normal(size=(4, 2)), rng.normal(size=2)))
    ),
    "drawn arguments": lambda rng, x: x + torch.tensor(rng.normal(rng.normal(size=4), 2.0)),
    "the same memory": lambda rng, x: x + torch.tensor(aliased(rng.normal(size=4))),
    "results": lambda rng, x: (x * 2, rng.normal(size=2), {"a": rng.normal(size=2) * 2}),
    "math": lambda rng, x: x * math.log(1 + rng.random()) * math.sqrt(rng.random()),
    "function of a number": lambda rng, x: x * np.sqrt(1 - rng.random()),
    "mixed": lambda rng, x: mixed(x, rng.beta(0.4, 0.4)),
}
# those that run uncompiled
PLAIN_ARRAYS = {
    "index of NumPy's": lambda rng, x: x[rng.permutation(4)[:2]],
    "float": lambda rng, x: x * float(rng.normal(size=3).sum()),
    "array from outside": lambda rng, x: x + torch.tensor(filled(rng.normal(size=4))),
    "argument of a function": lambda rng, x: x + torch.tensor(np.add(rng.random(4), 1, out=KEPT)),
    "shuffled": lambda rng, x: x + torch.tensor(shuffled_array(rng)),
}
KEPT = np.zeros(4)


def aliased(noise):
    view = np.asarray(noise)
    view[1:] *= 3
    np.clip(noise, -1, 1, out=noise)
    return noise


def mixed(x, weight):
    weight = max(weight, 1 - weight)
    return weight * x + (1 - weight) * x.flip(0)


def filled(noise):
    KEPT[:] = noise
    return KEPT


def shuffled_array(rng):
    numbers = np.arange(4)
    rng.shuffle(numbers)
    return numbers


@pytest.mark.parametrize("name", [*ARRAYS, *PLAIN_ARRAYS])
def test_arrays_are_those_of_the_uncompiled_function(name):
    use = (ARRAYS | PLAIN_ARRAYS)[name]

    def build(world):
        return lambda x: use(world.rng, x)

    check(build, 2 if name in ARRAYS else None)


def test_an_array_that_is_returned_is_the_callers():
    rng = np.random.default_rng(0)
    f = torch.jit(lambda x: (x * 2, rng.normal(size=2)))
    arrays = [f(X)[1] for _ in range(3)]
    assert all(type(array) is np.ndarray for array in arrays)
    arrays[1][:] = 0
    assert arrays[0].any() and arrays[2].any()
