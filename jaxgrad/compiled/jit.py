"""`jaxgrad.jit`: a function of tensors, its `.backward()` calls included, as one XLA program.

The tape runs while JAX traces: what it records and computes becomes part of the program, so hooks,
modes and gradients of any order compile unchanged. Captured tensors are inputs of the program
(capture/scope.py), and side effects are replayed after each call (capture/side_effects.py). When
the function is traced again is decided in capture/guards.py.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence

import jax

from ..capture.argument_containers import Leaves
from ..capture.guards import ProgramCache
from ..core import executor
from ..core.tracebacks import hide_frames, users_stacklevel
from ..tape import handle_lock, interception, mode, pytree, torch_function
from ..tape.tensor import Tensor
from . import one_shot, script_names, stance
from . import verify as verification
from .fallback import Fallback
from .stages import StagedFunction
from .traced_function import TracedFunction, has_numbers_of

AUTO = "auto"

ONLY_TENSORS = frozenset([Tensor])


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
    program: variables, attributes, elements of containers; so are numbers of captured tensors that
    it looks at, as in an `if`. A change of what it read causes a new trace, and so does a hook that
    is added or removed. A number that the function itself changes at each call becomes an input.
    `explain()` tells why it was traced. Random numbers of Python and NumPy, the time, and elements
    of iterators and queues are drawn anew at each call. Dicts keep the order of their keys, so
    there is a program for each order.

    On one CPU device NumPy makes the first calls where XLA takes as long to compile the program as
    a hundred of them or longer (`set_eager`).

    A Python int or float argument is a constant too, until a call passes another value: then it
    becomes an input, whose value cannot be inspected. If the function does inspect it, it stays a
    constant. A call with tangents of forward mode runs uncompiled, and so does one with tensors of
    the device meta; `lower` takes those in the place of inputs.

    A verified call first runs the function uncompiled, undoes what that changed, and raises
    RuntimeError if the compiled call then does something else, by more than rounding: with results
    and their gradients, tensors, `.grad`, generators, or Python objects. Effects that it cannot
    undo, such as printing, happen twice, and the memory of donated arguments is not reused.

    Generator functions and coroutine functions run uncompiled, with a warning: compile the
    functions that they call.

    Raises TypeError for an argument that cannot be hashed, and for generators, coroutines and other
    iterators as arguments or results; ValueError for a name in `donate` or `static_argnames` that
    is no argument, and for a `verify` that is no number of calls; RuntimeError where the function
    looks at numbers of tensors (`item()`, an `if` on a tensor) that depend on arguments or on what
    it changes at each call, and where a verified call differs. After an error every tensor is what
    it was before the call.

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
        compiled = VerifiedFunction(function, donate, static_argnames, interval)
    else:
        compiled = CompiledFunction(function, donate, static_argnames)
    compiled.fallback = Fallback(compiled.__name__, function) if fallback else None
    compiled.options |= {"donate": donate, "static_argnames": static_argnames}
    compiled.options |= {"verify": interval, "fallback": fallback}
    return compiled


vars(jit).update(script_names.NAMES)  # those of torch.jit


class CompiledFunction(TracedFunction, StagedFunction):
    """A compiled function.

    `function`: the function itself; `donates`: whether its programs take the memory of inputs, and
    `donate`: of which arguments besides; `sees_order`: whether it may see the order of its keyword
    arguments; `options`: the arguments of `jit`.
    """

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
        self.sees_order, self.options = _sees_order(function), {}
        self.begin(ProgramCache(self.__name__, static))

    def __call__(self, *args, **kwargs):
        try:
            if (
                mode.scope.get() is not None
                or executor.is_traced()
                or (interception.calls is not None and torch_function.modes.get())
                or (verification.running and self.is_inside_uncompiled())
            ):
                # a part of what is under way, or seen call by call by a mode
                return self.function(*args, **kwargs)
            try:
                leaves, structure = self.flatten(args, kwargs)
            except pytree.ContainsItself:
                return self.without_leaves(args, kwargs)
            # calls that change state are ordered, and what a call reads is of one moment
            with handle_lock.lock:
                program, tensors = self.cache.find(leaves, structure)
                if program is not None:
                    self.traces_in_a_row = 0
                else:
                    program, tensors = self.traced(leaves, structure, had_program=bool(tensors))
                if program is not None and program.host is not None:
                    program.host.choose(program, leaves)
                if program is not None and program.changes_state:
                    return program.change(leaves, tensors)
                inputs = program and program.inputs_of(leaves, tensors)
            if program is None:
                # the arguments themselves, which it may change
                result = self.undrawn.run(self, args, kwargs)
                if tensors is not None:
                    self.fallback.note(self.cache.key(leaves, structure), tensors)
                return result
            return program(leaves, tensors, inputs)
        except Exception as error:
            if self.fallback is None or not hasattr(error, "is_of_key"):
                hide_frames(error)
                raise
            self.fallback.tell(error)
        # an argument has no key under which a program could be filed
        return self.undrawn.run(self, args, kwargs)

    def rename(self, name: str):
        """Give it a name for messages, HLO and profiles."""
        self.__name__ = self.cache.name = name
        vars(self).pop("undrawn", None)
        if self.fallback is not None:
            self.fallback.name = name

    def flatten(self, args, kwargs):
        if not kwargs and ONLY_TENSORS.issuperset(map(type, args)):
            return [*args], _structure_of(len(args))
        if not self.sees_order and not pytree.is_sorted(tuple(kwargs)):
            # one program for all orders of the keywords
            kwargs = dict(sorted(kwargs.items()))
        leaves, structure = pytree.flatten((args, kwargs))
        leaves = Leaves(leaves)
        leaves.arguments = args, kwargs
        return leaves, structure

    def without_leaves(self, args, kwargs):
        """Call the function uncompiled, since an argument has no leaves to file a program by."""
        warnings.warn(
            f"{self.__name__}, compiled by jaxgrad.jit, runs uncompiled where a list or a dict "
            "among its arguments contains itself",
            stacklevel=users_stacklevel(),
        )
        return self.function(*args, **kwargs)

    def uncompiled(self, args, kwargs):
        """Call the function uncompiled."""
        return self.function(*args, **kwargs)

    def is_inside_uncompiled(self) -> bool:
        """Whether the caller runs uncompiled for a comparison, or all functions are to run
        uncompiled.
        """
        return verification.within.get() or stance.current == "force_eager"

    def __getattr__(self, name):
        if name == "function":
            raise AttributeError(name)  # of a copy under construction
        return getattr(self.function, name)

    def __deepcopy__(self, memo):
        function = copy.deepcopy(self.function, memo)  # another one if it is a method or a module
        return self if function is self.function else _remade(function, *self.settings())

    def settings(self) -> tuple:
        """The attributes for a copy: the name, the limit of traces, and the arguments of `jit`."""
        return self.__name__, self.most_in_a_row, self.options

    def __get__(self, instance, owner=None):
        # the instance becomes the first argument, so each has programs of its own
        return self if instance is None else BoundFunction(self, instance)

    def __repr__(self):
        return f"<jitted {self.__name__}>"


class BoundFunction(functools.partial):
    """A compiled method of an instance, with the attributes of the compiled function."""

    def lower(self, *args, **kwargs):
        """See `CompiledFunction.lower`."""
        return self.func.lower(*self.args, *args, **kwargs)

    def trace(self, *args, **kwargs):
        """See `CompiledFunction.trace`."""
        return self.func.trace(*self.args, *args, **kwargs)

    def profile(self, *args, **kwargs):
        """See `CompiledFunction.profile`."""
        return self.func.profile(*self.args, *args, **kwargs)

    def eval_shape(self, *args, **kwargs):
        """See `CompiledFunction.eval_shape`."""
        return self.func.eval_shape(*self.args, *args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.func, name)


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

    trace = eval_shape = lower


class VerifiedFunction(CompiledFunction):
    """A compiled function that is compared with the uncompiled one (compiled/verify.py): at its
    first call, and at each further `interval` calls.
    """

    def __init__(self, function, donate, static_argnames, interval: int):
        super().__init__(function, donate, static_argnames)
        self.interval, self.calls = interval, 0

    def __call__(self, *args, **kwargs):
        inside = mode.scope.get() is not None or executor.is_traced() or self.is_inside_uncompiled()
        if inside or not all(map(has_numbers_of, pytree.flatten((args, kwargs))[0])):
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


def _sees_order(function) -> bool:
    """Whether a function may see in which order its keyword arguments are given."""
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return True
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _remade(function, name: str, most_in_a_row: int, options: dict):
    """A compiled function like another one, of another function."""
    compiled = jit(function, **options)
    compiled.rename(name)
    compiled.most_in_a_row = most_in_a_row
    return compiled


def _pickled(function: CompiledFunction):
    """How a compiled function is pickled: by name where it stands under its name, as decorated
    functions do, else as its function.
    """
    value = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        value = getattr(value, part, None)
    if value is function:
        return function.__qualname__
    return _remade, (function.function, *function.settings())


for _kind in (CompiledFunction, UncompiledFunction, VerifiedFunction):
    copyreg.dispatch_table[_kind] = _pickled


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
