"""The table of speed: jaxgrad, torch, JAX by hand, HIPS autograd and mlx side by side, each where
it is installed. `python tests/benchmarks/run.py table --rows chain jvp` chooses rows by a part of
their names.

Each time is the median over rounds in which all columns take turns, and in brackets the least. A
call includes the wait for its result. Traces and first calls are made anew each time, in turns too.
"""

from __future__ import annotations

import functools
import importlib
import os
import statistics
import time

import figures
import jax
import jax.numpy as jnp
import numpy as np
import training

import jaxgrad

ROUNDS, SECONDS = figures.rounds(15, 5), 0.02  # of each column in a round
COLD_ROUNDS = figures.rounds(5, 2)  # of traces and first calls
WARM = 40  # eager calls that repeat are compiled after 32 times


def optional(name):
    """A module, None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


torch, mlx = optional("torch"), optional("mlx.core")
# not `autograd` itself, which is a folder of the tests too
hips = None if optional("autograd.numpy") is None else optional("autograd")

rng = np.random.default_rng(0)
SQUARE = rng.uniform(0.1, 0.9, (8, 8)).astype(np.float32)
VECTOR = rng.uniform(0.1, 0.9, 64).astype(np.float32)


def frameworks():
    """The modules whose tensors have `backward`, by the name of their column."""
    return {"jaxgrad": jaxgrad} | ({} if torch is None else {"torch": torch})


def chain(x, y, sin, tanh):
    for _ in range(15):
        x = tanh(sin(x * y) + y)
    return x


# ---- the rows: each gives by column a function that waits for its result


def chain_forward():
    """Eager chain of 60 operators 8x8, forward recorded."""
    calls = {}
    for name, module in frameworks().items():
        x, y = module.tensor(SQUARE, requires_grad=True), module.tensor(SQUARE.T.copy())
        calls[name] = lambda m=module, x=x, y=y: chain(x, y, m.sin, m.tanh).detach().numpy()
    return calls


def chain_both():
    """The same, forward and backward."""
    calls = {}
    for name, module in frameworks().items():
        x, y = module.tensor(SQUARE, requires_grad=True), module.tensor(SQUARE.T.copy())

        def both(module=module, x=x, y=y):
            x.grad = None
            chain(x, y, module.sin, module.tanh).sum().backward()
            return x.grad.numpy()

        calls[name] = both
    if hips is not None:
        numpy = hips.numpy
        of_hips = hips.grad(lambda x: numpy.sum(chain(x, SQUARE.T, numpy.sin, numpy.tanh)))
        calls["HIPS"] = lambda: of_hips(SQUARE)
    if mlx is not None:
        of_mlx, y = mlx.grad(lambda x: chain(x, y, mlx.sin, mlx.tanh).sum()), mlx.array(SQUARE.T)
        square = mlx.array(SQUARE)
        calls["mlx"] = lambda: np.array(of_mlx(square))
    return calls


def backward(count):
    """Backward alone, as often as the graph is kept."""
    calls = {}
    for name, module in frameworks().items():
        x = y = module.tensor(SQUARE, requires_grad=True)
        for _ in range(count // 2):
            y = module.sin(y) * 0.5
        total = y.sum()

        def run(x=x, total=total):
            x.grad = None
            total.backward(retain_graph=True)
            return x.grad.numpy()

        calls[name] = run
    return calls


def residual(blocks):
    """The parameters of a residual network of width 64, and a batch."""
    shapes = [(64, 64), (64,)] * (2 * blocks)
    draw = np.random.default_rng(0)
    arrays = [0.1 * draw.standard_normal(shape).astype(np.float32) for shape in shapes]
    return arrays, draw.standard_normal((32, 64)).astype(np.float32)


def residual_loss(parameters, x, tanh):
    for w, b, v, c in zip(*[iter(parameters)] * 4, strict=True):
        x = x + tanh(x @ w + b) @ v + c
    return (x * x).mean()


def residual_eager(blocks):
    """A training step of a residual MLP of width 64, eager."""
    calls = {}
    for name, module in frameworks().items():
        arrays, x = residual(blocks)
        parameters = [module.tensor(array, requires_grad=True) for array in arrays]
        optimizer, x = module.optim.SGD(parameters, lr=1e-3), module.tensor(x)

        def step(module=module, x=x, parameters=parameters, optimizer=optimizer):
            optimizer.zero_grad()
            loss = residual_loss(parameters, x, module.tanh)
            loss.backward()
            optimizer.step()
            return parameters[0].detach().numpy()

        calls[name] = step
    return calls


def residual_step(blocks):
    """The same compiled, and its batch."""
    arrays, x = residual(blocks)
    parameters = [jaxgrad.tensor(array, requires_grad=True) for array in arrays]
    optimizer = jaxgrad.optim.SGD(parameters, lr=1e-3)

    @jaxgrad.jit
    def step(x):
        optimizer.zero_grad()
        loss = residual_loss(parameters, x, jaxgrad.tanh)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, jaxgrad.tensor(x)


def residual_by_hand(blocks):
    """The same in JAX, with its parameters and its batch."""
    arrays, x = residual(blocks)

    @functools.partial(jax.jit, donate_argnums=0)
    def plain(arrays, x):
        loss, gradients = jax.value_and_grad(residual_loss)(arrays, x, jnp.tanh)
        # the gradients too, which a step of jaxgrad leaves in `.grad`
        return [a - 1e-3 * g for a, g in zip(arrays, gradients, strict=True)], gradients, loss

    return plain, list(map(jnp.array, arrays)), jnp.asarray(x)


def residual_compiled(blocks):
    """The same compiled, to jax.jit."""
    step, tensor = residual_step(blocks)
    plain, arrays, array = residual_by_hand(blocks)
    kept = [arrays, None]

    def by_hand():
        kept[0], kept[1], loss = plain(kept[0], array)
        return loss.block_until_ready()

    return {"jaxgrad": lambda: step(tensor).item(), "JAX": by_hand}


def demo():
    """A training step of the demo's network with a module and an optimizer, compiled."""
    labels = rng.integers(0, 10, 64)
    images = rng.standard_normal((64, 64)).astype(np.float32)
    nn, shapes = jaxgrad.nn, [(64, 64), (32, 64), (10, 32)]
    layers = [nn.Linear(*shape[::-1]) for shape in shapes]
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    optimizer = jaxgrad.optim.SGD(model.parameters(), lr=0.1)

    @jaxgrad.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def loss_of(arrays, x, y):
        *hidden, (last, bias) = zip(arrays[::2], arrays[1::2], strict=True)
        for w, b in hidden:
            x = jax.nn.relu(x @ w.T + b)
        return training.cross_entropy(x @ last.T + bias, y)

    @functools.partial(jax.jit, donate_argnums=0)
    def plain(arrays, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(arrays, x, y)
        return [a - 0.1 * g for a, g in zip(arrays, gradients, strict=True)], gradients, loss

    kept = [[jnp.array(parameter.detach().numpy()) for parameter in model.parameters()], None]
    inputs, tensors = (
        (jnp.asarray(images), jnp.asarray(labels)),
        map(jaxgrad.tensor, (images, labels)),
    )
    x, y = tensors

    def by_hand():
        kept[0], kept[1], loss = plain(kept[0], *inputs)
        return loss.block_until_ready()

    return {"jaxgrad": lambda: step(x, y).item(), "JAX": by_hand}


def network(name):
    """A training step with Adam, eager."""
    case = training.cases()[name]
    weights, calls = training.initial_weights(case), {}
    for column, module in frameworks().items():
        step, batch = training.script(module, case, weights)
        calls[column] = lambda step=step, batch=batch: step(*batch).item()
    return calls


def network_compiled(name):
    """The same compiled, to JAX and optax by hand."""
    case = training.cases()[name]
    weights = training.initial_weights(case)
    _, (ours, hand), _ = training.first_calls(case, weights)
    return {"jaxgrad": ours, "JAX": hand}


# ---- traces and first calls: each gives by column a function that gives the seconds of one


def seconds(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def forgotten(make):
    """What is made once JAX and jaxgrad have forgotten their traces and programs."""
    jax.clear_caches()
    jaxgrad.compiler.reset()
    result = make()
    jaxgrad.synchronize()  # or what is pending would run in the time that is measured
    return result


def mlp(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def mlp_loss(weights, x, labels):
    for number in (0, 2):
        x = jax.nn.relu(training.linear(weights, str(number), x))
    return training.cross_entropy(training.linear(weights, "4", x), labels)


def steps(name):
    """A new training step and its arguments, by column."""
    if name == "128 blocks":
        return steps_of_blocks(128)
    batch = rng.standard_normal((32, 64)).astype(np.float32), rng.integers(0, 10, 32)
    case = training.Case(mlp, mlp_loss, batch) if name == "MLP" else training.cases()[name]
    weights = training.initial_weights(case)

    def ours():
        step, batch = training.script(jaxgrad, case, weights)
        return jaxgrad.jit(step), batch

    def by_hand():
        step, arrays, batch = training.by_hand(case, weights)
        return step, (arrays, training.optax.adam(training.RATE).init(arrays), *batch)

    return {"jaxgrad": ours, "JAX": by_hand}


def steps_of_blocks(count):
    def ours():
        step, tensor = residual_step(count)
        return step, (tensor,)

    def by_hand():
        step, arrays, x = residual_by_hand(count)
        return step, (arrays, x)

    return {"jaxgrad": ours, "JAX": by_hand}


def trace(name):
    """The trace of a training step, lowered and not compiled."""

    def timed(make):
        step, arguments = forgotten(make)
        return seconds(lambda: step.lower(*arguments))

    return {column: functools.partial(timed, make) for column, make in steps(name).items()}


def first_call(name):
    """The first call of a compiled training step."""

    def timed(make):
        step, arguments = forgotten(make)
        return seconds(lambda: jax.block_until_ready(step(*arguments)))

    return {column: functools.partial(timed, make) for column, make in steps(name).items()}


# ---- derivatives of functions


def transform(module, functional, name):
    """A transform of a function that is written anew at each call, as a function of a vector."""
    if name == "jvp":
        return lambda x: functional.jvp(lambda x: module.sin(x) * x, (x,), (x,))[1]
    if name == "hessian":
        return lambda x: functional.hessian(lambda x: (module.sin(x) * x).sum())(x)
    return lambda x: getattr(functional, name)(lambda x: module.sin(x) * x)(x)


def derivative(name):
    """A transform of a function of 64 variables, written anew at each call."""
    calls = {}
    for column, module in frameworks().items():
        run, x = transform(module, module.func, name), module.tensor(VECTOR)
        calls[column] = lambda run=run, x=x: run(x).numpy()
    if hips is not None and name == "jvp":
        np_, differential = hips.numpy, hips.differential_operators

        def forward():
            return differential.make_jvp(lambda x: np_.sin(x) * x)(VECTOR)(VECTOR)[1]

        calls["HIPS"] = forward
    return calls


def derivative_compiled(name):
    """The same compiled."""
    ours = jaxgrad.jit(transform(jaxgrad, jaxgrad.func, name))
    plain = jax.jit(transform(jnp, jax, name))
    x, array = jaxgrad.tensor(VECTOR), jnp.asarray(VECTOR)
    return {
        "jaxgrad": lambda: ours(x).numpy(),
        "JAX": lambda: np.asarray(plain(array)),
    }


ROWS = {
    "chain of 60 operators, forward": chain_forward,
    "chain of 60 operators, both": chain_both,
    **{f"backward of {n} nodes": functools.partial(backward, n) for n in (100, 1000, 10_000)},
    **{f"residual MLP {n}, eager": functools.partial(residual_eager, n) for n in (8, 32)},
    **{f"residual MLP {n}, compiled": functools.partial(residual_compiled, n) for n in (8, 128)},
    **{f"{n}, anew": functools.partial(derivative, n) for n in ("jacrev", "jacfwd", "hessian")},
    "the demo, compiled": demo,
    "jvp, anew": functools.partial(derivative, "jvp"),
    **{
        f"{n}, compiled": functools.partial(derivative_compiled, n)
        for n in ("jacrev", "jacfwd", "hessian", "jvp")
    },
    **{f"{n}, eager": functools.partial(network, n) for n in ("cnn", "transformer")},
    **{f"{n}, compiled": functools.partial(network_compiled, n) for n in ("cnn", "transformer")},
}


COLD_ROWS = {
    **{f"trace, {n}": functools.partial(trace, n) for n in ("transformer", "128 blocks")},
    **{f"first call, {n}": functools.partial(first_call, n) for n in ("MLP", "128 blocks")},
}


# ---- measuring


def measured_cold(calls) -> dict:
    """By column the median and the least time of what measures itself, in microseconds."""
    times = {name: [] for name in calls}
    for _ in range(COLD_ROUNDS):
        for name, call in calls.items():
            times[name].append(call() * 1e6)
    return {name: (statistics.median(samples), min(samples)) for name, samples in times.items()}


def measured(calls) -> dict:
    """By column the median and the least time of one call, in microseconds."""
    counts, times = {}, {name: [] for name in calls}
    for name, call in calls.items():
        for _ in range(WARM):
            call()
        begun = time.perf_counter()
        call()
        counts[name] = max(1, int(SECONDS / (time.perf_counter() - begun)))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begun = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - begun) / counts[name] * 1e6)
    return {name: (statistics.median(samples), min(samples)) for name, samples in times.items()}


def note(name, times):
    kind = "Traces and first calls" if name in COLD_ROWS else "Eager"
    kind = {"compiled": "Compiled", "anew": "Derivatives of a new function"}.get(
        name.rpartition(", ")[2], kind
    )
    times = {{"JAX": "JAX by hand", "HIPS": "HIPS autograd"}.get(k, k): v for k, v in times.items()}
    base = "JAX by hand" if "JAX by hand" in times else "torch"
    figures.note("p", kind, "us", base, {name: times})


def table(chosen=()):
    """Prints the rows whose names contain one of the words, by default all."""
    print(f"(p) the table: us, the median of {ROUNDS} rounds in turns, and (the least)")
    elapsed, used = time.perf_counter(), time.process_time()
    for name, row in (ROWS | COLD_ROWS).items():
        if chosen and not any(word in name for word in chosen):
            continue
        # NumPy would make the first calls of compiled functions
        jaxgrad.set_eager("deferred,compiled" if name.endswith(", compiled") else "deferred")
        times = (measured_cold if name in COLD_ROWS else measured)(row())
        cells = [
            f"{column} {median:9.1f} ({least:.1f})" for column, (median, least) in times.items()
        ]
        note(name, {column: median for column, (median, _) in times.items()})
        jaxgrads, *others = [median for median, _ in times.values()]
        ratio = f"{jaxgrads / min(others):6.2f} of the best other" if others else ""
        print(f"    {name:<34}{'  '.join(cells)}  {ratio}", flush=True)
    elapsed, used = time.perf_counter() - elapsed, time.process_time() - used
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(
        f"    the machine: {os.cpu_count()} cores, load {loads} over 1, 5 and 15 minutes; this "
        f"process computed for {used / elapsed:.2f} of the time"
    )
