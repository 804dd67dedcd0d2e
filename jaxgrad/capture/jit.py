"""`jaxgrad.jit`: a function of tensors, its `.backward()` calls included, as one XLA program.

The tape runs while JAX traces: what it records and computes becomes part of the program, so hooks,
modes and gradients of any order compile unchanged. Captured tensors are inputs of the program
(capture/scope.py), and side effects are replayed after each call (capture/side_effects.py). When
the function is traced again is decided in capture/guards.py.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence

import jax

from ..core import executor
from ..core.tracebacks import api_boundary, hide_frames, users_stacklevel
from ..tape import handle_lock, mode, pytree
from ..tape.tensor import Tensor, has_tangent, held
from . import one_shot, script_names
from . import verify as verification
from .compiled_program import CompiledProgram
from .fallback import Fallback
from .frozen import FrozenReads
from .guards import ProgramCache
from .scope import ReadsTangent

AUTO = "auto"

ONLY_TENSORS = frozenset([Tensor])

# How many traces in a row trigger a warning: of programs that leave tensors behind and so serve
# only once, and of others for arguments of one kind.
MOST_ESCAPING_IN_A_ROW, MOST_IN_A_ROW = 3, 8


def jit(
    function: Callable | None = None,
    *,
    donate: int | str | Sequence[int | str] = AUTO,
    static_argnames: str | Sequence[str] = (),
    verify: int | None = None,
    fallback: bool = False,
):
    """Compile `function` to one XLA program, with everything that it reads and changes.

    function: takes and returns tensors, JAX arrays, anything hashable, and lists, tuples, dicts and
    dataclasses of them; also an `nn.Module`, whose attributes and methods stay available. Without
    it `jit` returns a decorator.
    donate: arguments, by position or name, whose memory the results may take; their tensors cannot
    be used afterwards. By default the memory of tensors that the function overwrites is reused, as
    far as nothing else refers to their arrays; `()` donates nothing.
    static_argnames: names of arguments whose numbers are always constants of the program.
    verify: compare the first call and every `verify`-th call after it with the uncompiled function;
    0 compares none. By default the environment variable `JAXGRAD_JIT_VERIFY` gives the number.

    fallback: whether a call runs uncompiled where the function cannot be traced, with a warning
    that names the line; else it raises.

    Captured tensors, which the function reaches by closure, attribute or global, are inputs of the
    program and have their current values at each call. Side effects are replayed after each call:
    writes to captured tensors and arguments, `.grad`, what it changes in Python objects
    (attributes, variables, lists, dicts), `train()` and `eval()`, draws from generators. Views that
    it returns or leaves behind share memory with their base, as if it were not compiled.

    There is one program for each kind of arguments and captured tensors (shape, dtype,
    requires_grad, whether a `.grad` that is read is set, hooks), for each grad mode, and for the
    values of all other arguments. Other Python values that the function reads are constants of the
    program: variables, attributes, elements of containers. A change of what it read causes a new
    trace, and so does a hook that is added or removed. A number that the function itself changes at
    each call becomes an input. `explain()` tells why it was traced. A warning tells of
    random numbers of Python and NumPy, of the time, files, the environment, iterators and queues: a
    program repeats what they gave. Dicts keep the order of their keys, so there is a program for
    each order.

    A Python int or float argument is a constant too, until a call passes another value: then it
    becomes an input, whose value cannot be inspected. If the function does inspect it, it stays a
    constant. A call with tangents of forward mode runs uncompiled.

    A verified call first runs the function uncompiled, undoes what that changed, and raises
    RuntimeError if the compiled call then does something else, by more than rounding: with results
    and their gradients, tensors, `.grad`, generators, or Python objects. Effects that it cannot
    undo, such as printing, happen twice, and the memory of donated arguments is not reused.

    Generator functions and coroutine functions run uncompiled, with a warning: compile the
    functions that they call.

    Raises TypeError for an argument that cannot be hashed, and for generators, coroutines and other
    iterators as arguments or results; ValueError for a name in `donate` or `static_argnames` that
    is no argument, and for a `verify` that is no number of calls; RuntimeError where the function
    reads values of tensors (`item()`, an `if` on a tensor), and where a verified call differs.
    After an error every tensor is what it was before the call.

    >>> weight = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> @jaxgrad.jit
    ... def step(x):
    ...     weight.grad = None
    ...     loss = (weight * x).sum()
    ...     loss.backward()
    ...     with jaxgrad.no_grad():
    ...         weight.sub_(weight.grad)
    ...     return loss.detach()
    >>> step(jaxgrad.tensor([3.0, 4.0])), weight
    (tensor(11.), tensor([-2., -2.], requires_grad=True))
    """
    if function is None:
        return functools.partial(
            jit, donate=donate, static_argnames=static_argnames, verify=verify, fallback=fallback
        )
    interval, kind = verification.interval(verify), one_shot.kind_of_function(function)
    if kind is not None:
        return UncompiledFunction(function, kind)
    if interval:
        made = VerifiedFunction(function, donate, static_argnames, interval)
    else:
        made = CompiledFunction(function, donate, static_argnames)
    made.fallback = Fallback(made.__name__) if fallback else None
    return made


vars(jit).update(script_names.NAMES)  # those of torch.jit


class CompiledFunction:
    """A compiled function.

    `function`: the function itself; `count`: how often it was traced; `traces_in_a_row`: how many
    of the last calls were traced although there was a program for their kind of arguments;
    `fallback`: for which arguments it runs uncompiled, None where it raises.
    """

    fallback: Fallback | None = None

    def __init__(self, function, donate, static_argnames):
        self.__name__ = type(function).__name__  # for a function without a name, such as a partial
        # its other attributes, such as the parameters of a module, are found by `__getattr__`
        functools.update_wrapper(self, function, updated=())
        self.function = function
        # `is False`, since 0 equals it and is a position
        self.donates = donate not in ((), None) and donate is not False
        donate = () if donate in (AUTO, None) or donate is False else donate
        self.donate = _positions(function, donate, "donate")
        static = _positions(function, static_argnames, "static_argnames")
        self.cache, self.sees_order = ProgramCache(self.__name__, static), _sees_order(function)
        self.count, self.why, self.traces_in_a_row = 0, "it has not been called", 0
        self.told: set[str] = set()

    @property
    def traces(self) -> list[CompiledProgram]:
        """All programs."""
        return [program for programs in self.cache.programs.everything() for program in programs]

    def __call__(self, *args, **kwargs):
        try:
            if (
                mode.scope.get() is not None
                or executor.is_traced()
                or (verification.running and self.is_inside_uncompiled())
            ):
                return self.function(*args, **kwargs)  # a part of what is under way
            leaves, structure = self.flatten(args, kwargs)
            # calls that change state are ordered, and what a call reads is of one moment
            with handle_lock.lock:
                program, tensors = self.cache.find(leaves, structure)
                if program is not None:
                    self.traces_in_a_row = 0
                else:
                    program, tensors = self.traced(leaves, structure, had_program=bool(tensors))
                if program is not None and program.changes_state:
                    return program.change(leaves, tensors)
                inputs = program and program.inputs_of(leaves, tensors)
            if program is None:
                result = self.uncompiled(leaves, structure)
                if tensors is not None:
                    self.fallback.note(self.cache.key(leaves, structure), tensors)
                return result
            return program(leaves, tensors, inputs)
        except Exception as error:
            hide_frames(error)
            raise

    def flatten(self, args, kwargs):
        if not kwargs and ONLY_TENSORS.issuperset(map(type, args)):
            return [*args], _structure_of(len(args))
        if not self.sees_order and not pytree.is_sorted(tuple(kwargs)):
            # one program for all orders of the keywords
            kwargs = dict(sorted(kwargs.items()))
        return pytree.flatten((args, kwargs))

    def explain(self) -> str:
        """Why the function was last traced: what differed from the trace before.

        >>> double = jaxgrad.jit(lambda x: x * 2)
        >>> _ = double(jaxgrad.ones(2)), double(jaxgrad.ones(3))
        >>> double.explain().partition(" because ")[2]
        'argument 0 was torch.float32[2], and is torch.float32[3]'
        """
        return f"traced {self.count} times, the last time because {self.why}"

    def traced(self, leaves, structure, had_program: bool):
        """A new program and its captured tensors. Where the function must run uncompiled, None, and
        what its trace raised, or None.
        """
        if self.fallback is not None and self.fallback.holds(self.cache.key(leaves, structure)):
            return None, None
        # after the search, so that warm calls need not look: no program serves a tracer
        if any(map(_is_tracer, leaves)):
            return None, None
        # a program cannot take tangents of forward mode
        if any(isinstance(leaf, Tensor) and has_tangent(leaf) for leaf in leaves):
            return None, None
        try:
            return self.trace(leaves, structure, had_program)
        except ReadsTangent:
            return None, None
        except Exception as error:
            if self.fallback is None:
                raise
            return None, error  # what is wrong uncompiled too is raised there

    def trace(self, leaves, structure, had_program: bool):
        """Trace the function; gives the program and its captured tensors."""
        one_shot.refuse_arguments(self.function, leaves, structure)
        # before the trace, which changes variables and attributes that guards compare
        self.why = self.cache.reason(leaves, structure)
        self.count += 1
        # here, where time is lost anyway: it looks at all programs
        self.cache.drop_expired()
        reads = FrozenReads(self.function)
        program = self.traced_program(leaves, structure)
        tensors = program.take_tensors(leaves)
        program.record_guards(tensors)
        # a program that leaves tensors behind runs this once, and freezes nothing
        if program.escaped is not None or self.may_freeze(list(reads.told(program)), program):
            self.cache.add(program, leaves, structure)
        self.warn_of_traces(program, had_program)
        return program, tensors

    def may_freeze(self, reads: list[str], program: CompiledProgram) -> bool:
        """Whether a program is kept that repeats what the function read, after a warning of it."""
        for message in reads:
            if message not in self.told:
                self.told.add(message)
                warnings.warn(message, stacklevel=users_stacklevel())
        return True

    def warn_of_traces(self, program, had_program):
        """Count the traces in a row, and warn once there are many."""
        is_once = program.escaped is not None
        self.traces_in_a_row = self.traces_in_a_row + 1 if had_program or is_once else 0
        if self.traces_in_a_row == (MOST_ESCAPING_IN_A_ROW if is_once else MOST_IN_A_ROW):
            warnings.warn(
                f"{self.__name__}, compiled by jaxgrad.jit, is traced at every call, this time "
                f"because {self.why}. A number that changes is best an argument, or read by "
                "jaxgrad.tracing.number",
                stacklevel=users_stacklevel(),
            )

    def traced_program(self, leaves, structure) -> CompiledProgram:
        """The program of a call. Where the function looks at a number that varies, it is traced
        once more with that number as a constant.
        """
        cache = self.cache
        numbers = cache.numbers_in(leaves, structure)
        while True:
            cache.inspected.clear()
            try:
                program = self.new_program(leaves, structure, numbers.varying)
            except ReadsTangent:
                raise
            except Exception:
                # whatever was raised: libraries refuse symbolic numbers with errors of their own
                if not cache.give_up(numbers):
                    raise
                continue
            # code may also go another way where a number is refused
            if not (cache.inspected and cache.give_up(numbers)):
                cache.rebound |= program.changed_numbers - cache.looked_at
                return program
            program.discard()

    def new_program(self, leaves, structure, varying) -> CompiledProgram:
        return CompiledProgram(self, leaves, structure, varying)

    def uncompiled(self, leaves, structure):
        """Call the function uncompiled."""
        args, kwargs = jax.tree.unflatten(structure, leaves)
        return self.function(*args, **kwargs)

    def is_inside_uncompiled(self) -> bool:
        """Whether it is called by a function that runs uncompiled for a comparison."""
        return verification.within.get()

    def __getattr__(self, name):
        if name == "function":
            raise AttributeError(name)  # of a copy under construction
        return getattr(self.function, name)

    def __get__(self, instance, owner=None):
        # the instance becomes the first argument, so each has programs of its own
        return self if instance is None else functools.partial(self, instance)

    @api_boundary
    def lower(self, *args, **kwargs):
        """The program for these arguments as JAX lowers it: a `jax.stages.Lowered`, with
        `.as_text()` and `.compile().cost_analysis()`. The function is traced, and not run.

        Its inputs have the names by which the function reaches them, as `model.0.weight`; its
        operations are in a scope of the operator's name, those of a gradient in one of the node's.

        >>> double = jaxgrad.jit(lambda x: x * 2)
        >>> "multiply" in double.lower(jaxgrad.ones(2)).as_text()
        True
        """
        leaves, structure = self.flatten(args, kwargs)
        one_shot.refuse_arguments(self.function, leaves, structure)
        # not filed: it has no guards, and its side effects are not applied
        program = CompiledProgram(self, leaves, structure)
        with jax.enable_x64(True):
            inputs = program.inputs_of(leaves, program.take_tensors(leaves))
            return program.program.lower(*inputs)

    def __repr__(self):
        return f"<jitted {self.__name__}>"


class UncompiledFunction(CompiledFunction):
    """A function that `jit` leaves uncompiled: a generator or coroutine function, whose code runs
    when its caller goes on, and not in the call.
    """

    def __init__(self, function, kind: str):
        super().__init__(function, (), ())
        self.why = f"it is {kind}, and runs uncompiled"
        warnings.warn(
            f"{self.__name__} is {kind}, which runs while its caller does other things, so "
            "jaxgrad.jit leaves it uncompiled: compile the functions that it calls instead",
            stacklevel=users_stacklevel(),
        )

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def explain(self):
        return f"not traced, because {self.why}"

    def lower(self, *args, **kwargs):
        """Raises TypeError: there is no program."""
        raise TypeError(f"{self.__name__} has no program, because {self.why}")


class VerifiedFunction(CompiledFunction):
    """A compiled function that is compared with the uncompiled one (capture/verify.py): at its
    first call, and at each further `interval` calls.
    """

    def __init__(self, function, donate, static_argnames, interval: int):
        super().__init__(function, donate, static_argnames)
        self.interval, self.calls = interval, 0

    def __call__(self, *args, **kwargs):
        inside = mode.scope.get() is not None or executor.is_traced() or verification.within.get()
        if inside or any(map(_is_tracer, pytree.flatten((args, kwargs))[0])):
            return super().__call__(*args, **kwargs)
        self.calls += 1
        if (self.calls - 1) % self.interval:
            return super().__call__(*args, **kwargs)
        try:
            return verification.verified(self, super().__call__, args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise


@functools.cache
def _structure_of(count: int):
    """The structure of so many tensors as arguments."""
    return jax.tree.structure(((0,) * count, {}))


def _is_tracer(leaf) -> bool:
    return isinstance(held(leaf) if isinstance(leaf, Tensor) else leaf, jax.core.Tracer)


def _sees_order(function) -> bool:
    """Whether a function may see in which order its keyword arguments are given."""
    try:
        given = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return True
    return any(each.kind is each.VAR_KEYWORD for each in given)


def _positions(function, wanted, what) -> tuple[int | str, ...]:
    """Arguments that are given by position or name, each by both. Raises ValueError for one that
    the function does not take.
    """
    wanted = (wanted,) if isinstance(wanted, int | str) else tuple(wanted)
    if not wanted:
        return ()
    names = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_POSITIONAL
    ]
    for key in wanted:
        if key not in names and not (isinstance(key, int) and 0 <= key < max(len(names), 1)):
            raise ValueError(f"{what}={key!r}: {function.__name__} takes the arguments {names}")
    positions = [names.index(key) if isinstance(key, str) else key for key in wanted]
    return (*positions, *(names[position] for position in positions if position < len(names)))
