"""Runs random programs (program_grammar.py) uncompiled, compiled, and with PyTorch, and compares
what can be observed after each call.
"""

import collections
import dataclasses
import functools
import linecache
import math
import re
import textwrap
import types
import warnings
from typing import NamedTuple

import numpy as np

import jaxgrad

from .program_grammar import Program, random_program

# ---- what the source of a program names


@dataclasses.dataclass
class Config:
    rate: object
    steps: object
    extra: dict


class Slots:
    __slots__ = ("k", "t")

    def __init__(self, k, t):
        self.k, self.t = k, t


class Point(NamedTuple):
    k: object
    t: object


class Held:
    """Another value of an attribute while the block runs."""

    def __init__(self, holder, name, value):
        self.holder, self.name, self.value = holder, name, value

    def __enter__(self):
        self.before = getattr(self.holder, self.name)
        setattr(self.holder, self.name, self.value)

    def __exit__(self, *_):
        setattr(self.holder, self.name, self.before)


class State:
    pass


def scale_input(module, inputs, outputs):
    return None if inputs[0] is None else (inputs[0] * 0.5,)


def helper(rate, config, x):
    return x * rate + config.steps


def functions(torch):
    """Functions with derivatives of their own: not those of their values, so that it is seen which
    were used.
    """

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    class Remembered(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x.sin() * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * x * y, (grad * 0.5).sum(0)

    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x + 1

        @staticmethod
        def backward(ctx, one, other):
            return other if one is None else one if other is None else one - other

    return {"Scaled": Scaled, "Remembered": Remembered, "Split": Split}


def modules(torch, numbers):
    nn = torch.nn

    def filled(module):
        module = module.double()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(numbers(*parameter.shape) * 0.5)
        return module

    def network(BatchNorm1d=False):
        norm = [nn.BatchNorm1d(3, eps=0.5)] if BatchNorm1d else []
        return filled(nn.Sequential(nn.Linear(3, 3), *norm, nn.Tanh(), nn.Linear(3, 3)))

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.h, self.calls, self.linear = None, 0, nn.Linear(3, 3)
            self.register_buffer("mean", torch.zeros(3))
            filled(self)

        def forward(self, x):
            self.calls += 1
            self.h = x.detach() if self.h is None else (0.5 * self.h + x).detach()
            if self.training:
                self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
            return self.linear(x + self.h).tanh() * 0.5 - self.mean / self.calls

    return {"network": network, "Cell": Cell}


def namespace(torch, jit, seed):
    """The globals of a program."""
    drawn = np.random.RandomState(seed)

    def numbers(*shape):
        values = drawn.uniform(-1, 1, shape).tolist()
        return torch.tensor(values, dtype=torch.float64)

    def leaf(*shape):
        return numbers(*shape).requires_grad_()

    def total_of(out):
        tensors = []
        observe({}, "out", out, torch, {}, tensors)
        differentiable = [tensor for tensor in tensors if tensor.requires_grad]
        return sum((tensor * tensor).sum() for tensor in differentiable) + leaf() * 0

    def descend(parameter):
        with torch.no_grad():
            parameter.sub_(0.1 * parameter.grad)

    def halve(parameter):
        parameter.grad.mul_(0.5)

    return (
        {"__name__": "program", "torch": torch, "jit": jit, "np": np, "types": types}
        | {"nn": torch.nn, "F": torch.nn.functional, "optim": torch.optim}
        | {"collections": collections, "dataclasses": dataclasses}
        | functions(torch)
        | modules(torch, numbers)
        | {value.__name__: value for value in (Config, Slots, Point, Held, helper, scale_input)}
        | {function.__name__: function for function in (numbers, leaf, total_of, descend, halve)}
        | {"checkpoint": torch.utils.checkpoint.checkpoint}
    )


# ---- what is observed


def observe(observation, path, value, torch, seen, tensors):
    """Note everything below `value` in `observation`, by path; objects met before by their first
    path, but for tuples, which cannot change.

    tensors: a list that all tensors are added to.
    """
    atoms = str | int | float | complex | None
    if isinstance(value, atoms):
        observation[path] = value
    elif id(value) in seen and not isinstance(value, tuple):
        observation[path] = "same as " + seen[id(value)][0]
    else:
        # and the object, so that its id is not given away
        seen[id(value)] = path, value
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            note_tensor(observation, path, value)
        else:
            observation[path] = "callable" if callable(value) else type(value).__name__
            for name, part in parts(value, torch):
                observe(observation, f"{path}{name}", part, torch, seen, tensors)


def note_tensor(observation, path, tensor):
    observation[path] = str(tensor.dtype), tuple(tensor.shape), tensor.requires_grad, tensor.is_leaf
    observation[f"{path}.values"] = np.array(tensor.tolist())
    if tensor.is_leaf:
        grad = tensor.grad
        observation[f"{path}.grad"] = None if grad is None else np.array(grad.tolist())


def parts(value, torch):
    """What a container or object holds, with the suffix of each path."""
    if isinstance(value, np.ndarray):
        return [(".tolist()", value.tolist())]
    if isinstance(value, dict):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, set):
        return [(f"[{part!r}]", part) for part in sorted(value)]
    if isinstance(value, list | tuple | collections.deque):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    if isinstance(value, torch.optim.Optimizer):
        groups = [{**group, "params": None} for group in value.param_groups]
        return [(".param_groups", groups), (".state", value.state_dict()["state"])]
    if isinstance(value, torch.optim.lr_scheduler.LRScheduler):
        return [(".last_epoch", value.last_epoch)]
    if isinstance(value, torch.nn.Module):
        held = {"h": getattr(value, "h", None), "calls": getattr(value, "calls", None)}
        named = [*value.named_parameters(), *value.named_buffers(), *held.items()]
        return [("." + name, part) for name, part in [*named, ("training", value.training)]]
    if isinstance(value, Slots):
        return [(".k", value.k), (".t", value.t)]
    if isinstance(value, Config | State | types.SimpleNamespace):
        return [("." + name, vars(value)[name]) for name in sorted(vars(value))]
    return []


class Run:
    """A run of a program, statement by statement.

    `states`: what is observed before the first and after each statement; `watched`: the tensors of
    the first, whose versions are observed; `error`: the exception of the statement after these;
    `changed`: a difference that a call which raised has made.
    """

    def __init__(self, program: Program, seed, torch, jit):
        self.program, self.torch, self.names = program, torch, namespace(torch, jit, seed)
        name, source = f"<program {seed}>", program.source()
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        torch.manual_seed(seed)
        exec(compile(source, name, "exec"), self.names)
        self.state = self.names["s"] = State()
        self.names["setup"](self.state)
        function, self.variables = self.names["make"](self.state)
        self.names["step"], self.names["out"] = jit(function), None
        self.watched, self.error, self.changed = [], None, None
        self.states = [self.observed()]
        self.watched = self.tensors
        for line in program.script:
            self.run(line)
            if self.error is not None:
                break

    def observed(self):
        """Everything, by path."""
        observation, self.tensors = {}, []
        roots, seen = {"out": self.names["out"], "s": self.state, "variables": self.variables()}, {}
        for path, root in roots.items():
            observe(observation, path, root, self.torch, seen, self.tensors)
        if not self.program.plain:
            observation["random state"] = self.torch.get_rng_state().tolist()
        for number, tensor in enumerate(self.watched):
            observation[f"version of tensor {number}"] = tensor._version
        return observation

    def run(self, line):
        before = self.observed()
        try:
            exec(line, self.names)
        except Exception as error:
            self.error = error
            if line.startswith("out"):
                self.changed = difference(before, without_begun(before, self.observed()))
            return
        try:
            self.states.append(self.observed())
        except RuntimeError as error:  # PyTorch finds a view out of date when it is looked at
            self.error = error


def plain(function):
    return function


# ---- comparison

# of numbers, where XLA adds up in another order: those of random steps (test_random_steps.py)
RTOL, ATOL = 1e-10, 1e-12

# PyTorch counts other writes of optimizers, and none through `data`
OWN = re.compile(r"^version of|\.state\b")

# what an optimizer keeps for a parameter
BEGUN = re.compile(r"\.(sgd|adam|adamw)\.state\[")

# beyond these, rounding grows from call to call
LARGEST = 1e3

# errors of one kind of run where the other goes on (docs/conventions.md)
COMPILED = re.compile(
    "that share memory, and writes to one|that shares its memory|that shares memory with another"
    "|leaves behind a tensor of shape .* with a history|leaves behind a leaf of shape"
    "|There schedulers step"
)
REFUSED = {
    "compiled": COMPILED,
    "verified": COMPILED,
    "uncompiled": re.compile("more than one element of the written-to tensor"),
    "PyTorch": re.compile(
        "modified by an inplace operation|a leaf Variable that requires grad is being used"
        "|more than one element of the written-to tensor|refer to a single memory location"
        "|nested_tensorlist|backward through the graph a second time"
        "|view size is not compatible|another view of its base has been modified inplace"
        "|A different number of tensors was saved"
    ),
}


# a compiled function saves a number or an index that varies, and so a pass uses up its graph
VARYING = re.compile(r"[\[ ]\(?(s\.(idx|order|mask|count)|k|n)\b")
USED_UP = "backward through the graph a second time"


def may_raise(kind, run):
    """Whether a run of this kind may raise where the other goes on."""
    text = str(run.error)
    varies = REFUSED[kind] is COMPILED and VARYING.search("\n".join(run.program.body))
    return bool(REFUSED[kind].search(text) or (varies and USED_UP in text))


class Differs(AssertionError):
    """Two runs of a program differ. `place`: where, which is the same in a smaller program."""

    def __init__(self, place, text):
        super().__init__(f"{place}: {text}")
        self.place = place


def difference(one, other):
    """The first path at which two observations differ, with both values; None for none."""
    for path in [*one, *(path for path in other if path not in one)]:
        a, b = one.get(path, "absent"), other.get(path, "absent")
        if not is_same(a, b):
            return path, a, b
    return None


def is_same(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and np.allclose(a, b, RTOL, ATOL, equal_nan=True)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RTOL, abs_tol=ATOL) or (a != a and b != b)
    return type(a) is type(b) and a == b


def without_own(observation):
    """Without what each library keeps in its own way."""
    return {path: value for path, value in observation.items() if not OWN.search(path)}


def without_begun(before, after):
    """Without the zeros that a step of an optimizer begins with, which the optimizer may keep."""
    return {
        path: value for path, value in after.items() if path in before or not BEGUN.search(path)
    }


def is_large(observation):
    values = [value for value in observation.values() if isinstance(value, float | np.ndarray)]
    return any(np.size(value) and not np.all(np.abs(value) < LARGEST) for value in values)


def compare(one: Run, other: Run, kind):
    """Raises Differs where two runs differ. The one that may refuse a statement comes first."""
    lines = ["the beginning", *one.program.script]
    for line, a, b in zip(lines, one.states, other.states, strict=False):
        if kind == "PyTorch":
            a, b = without_own(a), without_own(b)
        mismatch = difference(a, b)
        if mismatch:
            raise Differs(
                f"{kind}, {mismatch[0]}", f"{mismatch[1]} for {mismatch[2]} after\n{line}"
            )
        if is_large(b):
            return
    if one.changed and kind != "PyTorch":
        path, before, after = one.changed
        raise Differs(f"{kind}, after an error {path}", f"{after} for {before}") from one.error
    names = [type(run.error).__name__ for run in (one, other)]
    if names[0] != names[1] and not (may_raise(kind, one) or may_raise("uncompiled", other)):
        told = "".join(f"\n{type(e).__name__}: {e}" for e in (one.error, other.error))
        raise Differs(f"{kind}, raises {names}", told) from (one.error or other.error)


def check(program, seed, torch=None, verify=False):
    """Raises Differs where a program does not do the same compiled as uncompiled, nor as with
    PyTorch.

    torch: PyTorch, None for none; verify: compare once more, with a function that compares itself.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        uncompiled = Run(program, seed, jaxgrad, plain)
        compare(Run(program, seed, jaxgrad, jaxgrad.jit), uncompiled, "compiled")
        if verify:
            verified = functools.partial(jaxgrad.jit, verify=1)
            compare(Run(program, seed, jaxgrad, verified), uncompiled, "verified")
        if torch is not None and program.plain:
            compare(Run(program, seed, torch, plain), uncompiled, "PyTorch")


def check_seed(seed, **options):
    """Check the program of a seed. A failure shows the part of it that fails."""
    program = random_program(seed)
    try:
        check(program, seed, **options)
    except Differs as failure:
        what = failure.place
    else:
        return

    def fails(part):
        try:
            check(part, seed, **options)
        except Differs as failure:
            return failure if failure.place == what else None
        except Exception:
            # what is left is no program, such as one whose state is not made
            return None

    program = smaller(program, fails)
    failure = fails(program)
    raise AssertionError(f"seed {seed}: {failure}\n\n{program}") from failure


# ---- smaller programs


def smaller(program, fails):
    """A program without anything that it fails without."""
    for part in ("script", "body", "state") * 2:
        number = 0
        while number < len(getattr(program, part)):
            shorter = next(filter(fails, reductions(program, part, number)), None)
            program, number = shorter or program, number + (shorter is None)
    return program


def reductions(program, part, number):
    """Programs without a statement, or without a line of it."""
    statements = getattr(program, part)
    is_return = part == "body" and number == len(statements) - 1
    instead = ["return None"] if is_return and statements[-1] != "return None" else []
    if instead or not is_return:
        yield program._replace(
            **{part: [*statements[:number], *instead, *statements[number + 1 :]]}
        )
    lines = statements[number].split("\n")
    for place in range(len(lines) if len(lines) > 1 else 0):
        rest = textwrap.dedent("\n".join(lines[:place] + lines[place + 1 :]))
        yield program._replace(**{part: [*statements[:number], rest, *statements[number + 1 :]]})
