"""Measures jaxgrad, JAX by hand and torch side by side in one process: `make bench`.

`make bench ARGUMENTS="eager step"` chooses among eager, step, import, writes, watching, functions,
forward, training, networks, loading, calls, table, gpt2, start, scripts, new_shapes and packages.
Times are the least of many repetitions, in microseconds unless a column says otherwise. On a shared
machine only the ratios are reliable.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import pathlib
import statistics
import subprocess
import sys
import time

import figures
import gpt2
import jax
import jax.numpy as jnp
import loading
import networks
import new_shapes
import numpy as np
import packages
import scripts
import start
import table
import training

import jaxgrad

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "docs" / "examples"))


LONGEST = figures.rounds(4.0, 1.0)


def least(function, repetitions=200, seconds=LONGEST):
    """The least time of one call, in microseconds."""
    function()
    best, end = float("inf"), time.perf_counter() + seconds
    for _ in range(repetitions):
        begun = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begun)
        if time.perf_counter() > end:
            break
    return best * 1e6


def least_of(functions, rounds=5, **options):
    """The least time of each, measured in turns: a slow moment of the machine then hits all."""
    rounds = figures.rounds(rounds, min(rounds, 2))
    return [
        min(times)
        for times in zip(
            *([least(f, **options) for f in functions] for _ in range(rounds)), strict=True
        )
    ]


# (a) a chain of 60 pointwise operators on 8x8 float32

STEPS = 15  # of four operators


def chain(x, y, sin, tanh):
    for _ in range(STEPS):
        x = tanh(sin(x * y) + y)
    return x


def eager():
    array = np.random.default_rng(0).uniform(0.1, 0.9, (8, 8)).astype(np.float32)
    raw = {
        name: jax.jit(f)
        for name, f in {
            "mul": jnp.multiply,
            "sin": jnp.sin,
            "add": jnp.add,
            "tanh": jnp.tanh,
        }.items()
    }
    a, b = jnp.asarray(array), jnp.asarray(array.T.copy())
    x, y = jaxgrad.tensor(array, requires_grad=True), jaxgrad.tensor(array.T)
    ones = jaxgrad.ones(8, 8)

    def raw_calls():
        z = a
        for _ in range(STEPS):
            z = raw["tanh"](raw["add"](raw["sin"](raw["mul"](z, b)), b))
        return z

    def plain():
        with jaxgrad.no_grad():
            chain(x, y, jaxgrad.sin, jaxgrad.tanh)

    def forward():
        return chain(x, y, jaxgrad.sin, jaxgrad.tanh)

    def both():
        forward().backward(ones)
        x.grad = None

    leaf = jaxgrad.ones(3, requires_grad=True)

    def sum_of_sines():
        leaf.grad = None
        jaxgrad.sum(jaxgrad.sin(leaf)).backward()

    def unjitted():
        jax.grad(lambda z: chain(z, b, jnp.sin, jnp.tanh).sum())(a)

    base, *times, small = least_of([raw_calls, plain, forward, both, sum_of_sines])
    slow = least(unjitted, repetitions=20)
    count = 4 * STEPS
    print(f"(a) {count} pointwise operators on 8x8 float32, per operator")
    print(f"    {'raw jitted calls':<38}{base / count:8.2f} us")
    names = ["jaxgrad under no_grad", "jaxgrad forward, recorded", "jaxgrad forward and backward"]
    for name, duration in zip(names, times, strict=True):
        print(f"    {name:<38}{duration / count:8.2f} us {duration / base:8.2f} raw calls")
    in_calls = small / (base / count)
    print(f"    {'sum(sin(x)).backward(), in all':<38}{small:8.2f} us {in_calls:8.2f} raw calls")
    print(
        f"    {'jax.grad without jit':<38}{slow / count:8.2f} us {slow / base:8.2f} raw calls, "
        f"{slow / times[-1]:.1f} of jaxgrad"
    )
    rows = {name: {"jaxgrad": t / count} for name, t in zip(names, times, strict=True)}
    for name, duration in torch_chain(array, base, count).items():
        rows[name.replace("torch forward", "jaxgrad forward")]["torch"] = duration / count
    rows[names[2]]["jax.grad without jit"] = slow / count
    raw = "raw jitted calls, forward"
    chart = {
        name.removeprefix("jaxgrad "): {**row, raw: base / count} for name, row in rows.items()
    }
    figures.note("a", "60 pointwise operators on 8x8 float32, each", "us", raw, chart)
    chart = {"sum(sin(x)).backward()": {"jaxgrad": small, "one raw jitted call": base / count}}
    figures.note("a", "A small backward pass in all", "us", "one raw jitted call", chart)


def torch_chain(array, base, count):
    """Prints what torch takes, and gives it."""
    try:
        import torch
    except ImportError:
        print("    torch is not installed here: .venv-torch has it (make oracle)")
        return {}
    torch.set_num_threads(1)
    x, y = torch.tensor(array, requires_grad=True), torch.tensor(array.T.copy())
    ones = torch.ones(8, 8)

    def forward():
        return chain(x, y, torch.sin, torch.tanh)

    def both():
        forward().backward(ones)
        x.grad = None

    names = ["torch forward, recorded", "torch forward and backward"]
    durations = dict(zip(names, least_of([forward, both]), strict=True))
    for name, duration in durations.items():
        print(f"    {name:<38}{duration / count:8.2f} us {duration / base:8.2f} raw calls")
    return durations


# (b) the demo's step


def step():
    import digits

    (images, labels), _ = digits.digits(np.float32)
    start = digits.initial_weights(np.float32)
    x, y = images[: digits.BATCH], labels[: digits.BATCH]
    leaves = [jaxgrad.tensor(weight, requires_grad=True) for weight in start]
    arrays = [jnp.asarray(weight) for weight in start]
    tensors = jaxgrad.tensor(x), jaxgrad.tensor(y)
    inputs = jnp.asarray(x), jnp.asarray(y)
    print("(b) the demo's step: four matrices, batch of 64")
    jit_step = jaxgrad.jit(digits.imperative_step)
    functional = jaxgrad.jit(digits.functional_step)
    plain_weights = [leaf.detach() for leaf in leaves]
    traces = least_of(
        [
            lambda: traced(lambda: jaxgrad.jit(digits.imperative_step).lower(leaves, *tensors)),
            lambda: traced(
                lambda: jaxgrad.jit(digits.functional_step).lower(plain_weights, *tensors)
            ),
            lambda: traced(lambda: jax.jit(digits.plain_step.__wrapped__).lower(arrays, *inputs)),
        ],
        rounds=3,
        repetitions=10,
    )
    compiled = [
        compile_time(jit_step.lower(leaves, *tensors)),
        compile_time(functional.lower(plain_weights, *tensors)),
        compile_time(digits.plain_step.lower(arrays, *inputs)),
    ]
    steps = least_of(
        [
            lambda: jax.block_until_ready(jit_step(leaves, *tensors)),
            lambda: jax.block_until_ready(functional(plain_weights, *tensors)),
            lambda: jax.block_until_ready(digits.plain_step(arrays, *inputs)),
        ],
        repetitions=400,
    )
    print(f"    {'':<38}{'trace ms':>10}{'compile ms':>12}{'call us':>10}")
    names = [
        "backward() under jaxgrad.jit",
        "func.grad under jaxgrad.jit",
        "jax.jit(jax.value_and_grad) by hand",
    ]
    for name, *row in zip(names, traces, compiled, steps, strict=True):
        trace, compiling, duration = row
        print(f"    {name:<38}{trace / 1e3:10.1f}{compiling / 1e3:12.1f}{duration:10.0f}")
    subjects = ["jaxgrad", "jaxgrad, func.grad", "JAX by hand"]
    columns = {
        "trace": [figure / 1e3 for figure in traces],
        "compilation": [figure / 1e3 for figure in compiled],
        "a call": [figure / 1e3 for figure in steps],
    }
    chart = {what: dict(zip(subjects, column, strict=True)) for what, column in columns.items()}
    figures.note("b", "A step of three layers, a batch of 64", "ms", subjects[-1], chart)
    ratios = [[ours / times[-1] for ours in times[:2]] for times in (traces, steps)]
    print(
        f"    to the one by hand: trace {ratios[0][0]:.2f} and {ratios[0][1]:.2f}, call "
        f"{ratios[1][0]:.2f} and {ratios[1][1]:.2f}"
    )


def traced(lower):
    jax.clear_caches()
    return lower()


def compile_time(lowered):
    jax.clear_caches()
    begun = time.perf_counter()
    lowered.compile()
    return (time.perf_counter() - begun) * 1e6


# (d) writing in place, and views


def writes():
    jaxgrad.manual_seed(0)
    x, y, z = (jaxgrad.randn(8, 8) for _ in range(3))
    tracked = jaxgrad.randn(8, 8).requires_grad_() * 1
    chain_end = [tracked * 1]
    view = jaxgrad.randn(2, 8, 8)[1]
    copied = view.clone()
    buffer = jaxgrad.zeros(8, 8)

    def tracked_write():
        chain_end[0].add_(y)

    def seen_from_the_base():
        view.add_(z)
        return view._base._array

    calls = {
        "x + y": lambda: x + y,
        "x.add_(y)": lambda: x.add_(y),
        "x + y, recorded": lambda: tracked + y,
        "x.add_(y), recorded": tracked_write,
        "copy + z, the copy of a view": lambda: copied + z,
        "view + z, the view untouched": lambda: view + z,
        "view.add_(z)": lambda: view.add_(z),
        "view.add_(z), then a read of the base": seen_from_the_base,
        "x[1]": lambda: x[1],
        "x.detach()": lambda: x.detach(),
        "buffer[3] = z[3]": lambda: buffer.__setitem__(3, z[3]),
    }
    print("(d) writing in place and views, 8x8 float32")
    times = least_of([repeated(call) for call in calls.values()], rounds=9, repetitions=20)
    durations = dict(zip(calls, times, strict=True))
    for name, duration in durations.items():
        print(f"    {name:<38}{duration / 100:8.2f} us")
    note_writes({name: duration / 100 for name, duration in durations.items()})
    ratios = [
        durations["x.add_(y)"] / durations["x + y"],
        durations["x.add_(y), recorded"] / durations["x + y, recorded"],
        durations["view + z, the view untouched"] / durations["copy + z, the copy of a view"],
    ]
    print(
        f"    add_ to +: {ratios[0]:.2f}, recorded {ratios[1]:.2f}; a view read to a copy read: "
        f"{ratios[2]:.3f}"
    )


def note_writes(times):
    pairs = {
        "x.add_(y)": "x + y",
        "x.add_(y), recorded": "x + y, recorded",
        "view + z, the view untouched": "copy + z, the copy of a view",
    }
    plain = "without the write or view"
    chart = {own: {"jaxgrad": times[own], plain: times[other]} for own, other in pairs.items()}
    figures.note("d", "Beside the same without", "us", plain, chart)
    others = [name for name in times if name not in {*pairs, *pairs.values()}]
    chart = {name: {"jaxgrad": times[name]} for name in ("x + y", *others)}
    figures.note("d", "Other writes and views", "us", "x + y", chart)


def repeated(call, count=100):
    """A function that makes `count` calls."""

    def many():
        for _ in range(count):
            call()

    return many


# (e) anomaly mode and profiles


def watched():
    x = jaxgrad.randn(8, 8).requires_grad_()
    y, ones = jaxgrad.randn(8, 8), jaxgrad.ones(8, 8)
    profile, anomaly = jaxgrad.autograd.profiler.profile, jaxgrad.autograd.set_detect_anomaly

    def both():
        chain(x, y, jaxgrad.sin, jaxgrad.tanh).backward(ones)
        x.grad = None

    def inside(mode):
        def run():
            with mode():
                both()

        return run

    calls = {
        "no mode": both,
        "profile()": inside(profile),
        "profile(record_shapes, with_stack)": inside(
            lambda: profile(record_shapes=True, with_stack=True)
        ),
        "profile(profile_memory)": inside(lambda: profile(profile_memory=True)),
        "anomaly mode": inside(lambda: anomaly(True)),
        "anomaly mode, check_nan=False": inside(lambda: anomaly(True, check_nan=False)),
        "no mode, afterwards": both,
    }
    times = least_of(list(calls.values()), rounds=7, repetitions=40)
    print("(e) modes: 60 pointwise operators on 8x8 float32, forward and backward, each")
    for name, duration in zip(calls, times, strict=True):
        ratio = duration / times[0]
        print(f"    {name:<38}{duration / (4 * STEPS):8.2f} us {ratio:8.3f} of no mode")
    pairs = zip(calls, times, strict=True)
    chart = {name: {"jaxgrad": duration / (4 * STEPS)} for name, duration in pairs}
    figures.note("e", "An operator, forward and backward", "us", "no mode", chart)


# (f) Functions, and hooks


class Sin(jaxgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()


class Mul(jaxgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x


def functions():
    x, y = (jaxgrad.rand(8, 8).requires_grad_() for _ in range(2))
    ones = jaxgrad.ones(8, 8)

    def forward(step):
        def run():
            z = x
            for _ in range(STEPS):
                z = step(z)
            return z

        return run

    def both(step):
        def run():
            forward(step)().backward(ones)
            x.grad = y.grad = None

        return run

    def hooked(z):
        z = z.sin()
        z.register_hook(_nothing)
        return z

    steps = {
        "x.sin()": lambda z: z.sin(),
        "a Function of it": Sin.apply,
        "x.sin() with a hook": hooked,
        "x * y": lambda z: z * y,
        "a Function of it ": lambda z: Mul.apply(z, y),
    }
    calls = [make(step) for step in steps.values() for make in (forward, both)]
    times = least_of(calls, rounds=7, repetitions=60)
    print("(f) Functions and hooks, 8x8 float32, per call")
    print(f"    {'':<30}{'forward us':>12}{'ratio':>8}{'both us':>12}{'ratio':>8}")
    for number, name in enumerate(steps):
        pair, base = times[2 * number : 2 * number + 2], times[:2] if number < 3 else times[6:8]
        columns = "".join(f"{t / STEPS:12.2f}{t / b:8.2f}" for t, b in zip(pair, base, strict=True))
        print(f"    {name:<30}{columns}")
    tables = [dict(zip(steps, times[way::2], strict=True)) for way in (0, 1)]
    for title, durations in zip(("Forward, recorded", "Forward and backward"), tables, strict=True):
        figures.note("f", title, "us", "the operator", chart_of_functions(durations))


def chart_of_functions(durations):
    durations = {name: duration / STEPS for name, duration in durations.items()}
    pairs = {
        "a Function of x.sin()": ("a Function of it", "x.sin()"),
        "a Function of x * y": ("a Function of it ", "x * y"),
        "x.sin() with a hook": ("x.sin() with a hook", "x.sin()"),
    }
    return {
        row: {"jaxgrad": durations[own], "the operator": durations[other]}
        for row, (own, other) in pairs.items()
    }


# (g) forward mode


def forward():
    jaxgrad.manual_seed(0)
    forward_ad = jaxgrad.autograd.forward_ad
    x, y = (jaxgrad.rand(8, 8) for _ in range(2))
    tracked = x.clone().requires_grad_()

    def chained(x, y):
        return lambda: chain(x, y, jaxgrad.sin, jaxgrad.tanh)

    before = least(chained(x, y))
    with forward_ad.dual_level():
        dual, other = forward_ad.make_dual(x, y), forward_ad.make_dual(y, x)
        calls = {
            "plain operators, within a level": chained(x, y),
            "a dual": chained(dual, y),
            "both arguments are duals": chained(dual, other),
            "a dual that requires grad": chained(forward_ad.make_dual(tracked, y), y),
            "the view of a dual": repeated(lambda: dual[0].sin(), 4 * STEPS),
            "the view of a plain tensor": repeated(lambda: x[0].sin(), 4 * STEPS),
            "make_dual and unpack_dual": repeated(
                lambda: forward_ad.unpack_dual(forward_ad.make_dual(x, y)), 4 * STEPS
            ),
        }
        with forward_ad.dual_level():
            calls["a dual of two levels"] = chained(forward_ad.make_dual(dual, y), y)
            times = least_of(calls.values(), repetitions=50)
    after = least(chained(x, y))
    print(f"(g) forward mode: {4 * STEPS} pointwise operators on 8x8 float32, per operator")
    costs = {"plain operators": before, **dict(zip(calls, times, strict=True)), "afterwards": after}
    chart = {name: {"jaxgrad": duration / (4 * STEPS)} for name, duration in costs.items()}
    figures.note("g", "An operator in forward mode", "us", "plain operators", chart)
    for name, duration in costs.items():
        per_operator = duration / (4 * STEPS)
        print(f"    {name:<38}{per_operator:8.2f} us {duration / before:8.2f} plain operators")


def _nothing(grad):
    return None


# (c) import


# imports without the bytecode of an earlier one; that of JAX is in use
WITHOUT_BYTECODE = (
    "import jax, os, sys; sys.dont_write_bytecode = True; sys.pycache_prefix = os.devnull; "
    "import jaxgrad"
)


def imports():
    def run(statement):
        """The processor time of a statement in a new process, in ms."""
        process = subprocess.Popen([sys.executable, "-c", statement])
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, statement
        return (usage.ru_utime + usage.ru_stime) * 1e3

    statements = ("import jax, jax.numpy", "import jax, jaxgrad", WITHOUT_BYTECODE)
    turns = [tuple(map(run, statements)) for _ in range(11)]
    plain, ours, compiled = (statistics.median(column) for column in zip(*turns, strict=True))
    names = ("import jaxgrad, with JAX", "the same, without bytecode")
    rows = zip(names, (ours, compiled), strict=True)
    chart = {name: {"jaxgrad": duration, "JAX alone": plain} for name, duration in rows}
    figures.note("c", "Import", "ms", "JAX alone", chart)
    print(
        f"(c) import, processor time: jax {plain:.0f} ms, jaxgrad {ours - plain:.0f} ms more, "
        f"without bytecode {compiled - plain:.0f} ms more"
    )


PARTS = {
    "eager": eager,
    "step": step,
    "import": imports,
    "writes": writes,
    "watching": watched,
    "functions": functions,
    "forward": forward,
    "training": lambda: training.training(least_of, training.cases),
    "networks": lambda: training.training(least_of, networks.cases, 1, "n"),
    "loading": loading.loading,
    "calls": lambda: training.overhead(least_of),
    "table": table.table,
    "gpt2": gpt2.gpt2,
    "start": start.start,
    "scripts": scripts.scripts,
    "new_shapes": new_shapes.new_shapes,
    "packages": packages.packages,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], help="what to measure; everything by default"
    )
    parser.add_argument("--rows", nargs="*", default=(), help="words in the rows of the table")
    options = parser.parse_args()
    PARTS["table"] = lambda: table.table(options.rows)
    for part in options.parts or PARTS:
        # NumPy would make the first calls of compiled functions
        is_warm = part in ("step", "training", "networks", "calls")
        jaxgrad.set_eager("deferred,compiled" if is_warm else "deferred")
        PARTS[part]()
