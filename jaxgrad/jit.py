"""`jaxgrad.jit`: a function of tensors, `.backward()` and all, as one XLA program.

The tape runs while JAX traces: what it records and computes becomes part of the program, so hooks,
modes and gradients of any order compile as they are. What the function reads from outside goes into
the program at every call, and what it changes there comes out of it (tracing.py, outcomes.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence

import jax

from . import avals, dtypes, execution, modes, noting
from .compiling import Trace
from .modes import mode
from .tangents import mark
from .tensor import Tensor, standing

AUTO = "auto"


def jit(function: Callable | None = None, *, donate: int | str | Sequence[int | str] = AUTO):
    """`function`, compiled: as it is, with all that it reads and changes.

    Tensors that it reaches by closure, attribute or global go into the program at every call with
    the values that they have then; writes to them, and to arguments, their `.grad`, and what is
    kept of the tensors that it makes, come out. There is a program for each kind of arguments and
    of such tensors (shapes, dtypes, `requires_grad`, whether a `.grad` that is read is there,
    hooks), for grad mode, and for the values of all arguments that are no tensors, which must be
    hashable. Other Python values are part of the program, as they were when it was traced.

    Arguments and results are tensors, JAX arrays, or lists, tuples and dicts of them, and anything
    hashable. Hooks run while the function is traced, and what they do to gradients is part of the
    program; to add one, or to take one away, has the function traced anew.

    donate: whose memory the results may take. By default that of tensors that are overwritten, as
    far as nobody else has their arrays; besides, arguments by position or by name, whose tensors
    cannot be used afterwards; `()` for nobody's. Raises TypeError for an argument that cannot be
    hashed, RuntimeError where the function reads numbers (`item()`, an `if` on a tensor). After an
    error every tensor is what it was before the call.

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
        return functools.partial(jit, donate=donate)
    return Jitted(function, donate)


class Jitted:
    """A compiled function: its `Trace`s, by the kinds of arguments that it was called with."""

    def __init__(self, function, donate):
        self.__name__ = type(function).__name__  # where the function has none, as a partial one
        functools.update_wrapper(self, function)
        self.function = function
        self.donates = donate == AUTO or bool(donate)
        self.donate = _positions(function, donate)
        self.known: dict[tuple, list[Trace]] = {}

    @property
    def traces(self) -> list[Trace]:
        """All programs."""
        return [trace for traces in self.known.values() for trace in traces]

    def __call__(self, *args, **kwargs):
        if modes.scope.get() is not None or execution.is_traced():
            return self.function(*args, **kwargs)  # part of the trace that is under way
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
        key = (structure, self.settings(), *map(_key, leaves))
        try:
            known = self.known.get(key, ())
        except TypeError as error:
            raise TypeError(
                f"{self.__name__}: an argument is neither a tensor nor hashable: {error}"
            ) from None
        for trace in known:
            tensors = trace.find(leaves)
            if tensors is not None:
                return trace(leaves, tensors)
        if any(isinstance(_array(leaf), jax.core.Tracer) for leaf in leaves):
            return self.function(*args, **kwargs)
        return self.trace(key, leaves, structure)

    def settings(self):
        return mode.get(), dtypes.get_default_dtype(), noting.settings()

    def trace(self, key, leaves, structure):
        """Trace the function, and run what came of it."""
        self.refuse_moving(leaves, "is called with")
        self.forget()
        trace = Trace(self, leaves, structure)
        tensors = trace.found
        trace.found = None
        if not trace.is_once:
            self.known.setdefault(key, []).insert(0, trace)
        return trace(leaves, tensors)

    def refuse_moving(self, values, what):
        for tensor in filter(_is_tensor, values):
            standing(tensor, f"{self.__name__}, compiled by jaxgrad.jit, {what}")

    def forget(self):
        """Drop the programs that cannot be called again."""
        for key, traces in list(self.known.items()):
            traces[:] = [trace for trace in traces if not trace.is_over()]
            if not traces:
                self.known.pop(key, None)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def lower(self, *args, **kwargs):
        """The program for these arguments as JAX lowers it: `.as_text()`,
        `.compile().cost_analysis()`.
        """
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
        self.refuse_moving(leaves, "is called with")
        trace = Trace(self, leaves, structure)
        with jax.enable_x64(True):
            return trace.program.lower(*trace.inputs_of(leaves, trace.found))

    def __repr__(self):
        return f"<jitted {self.__name__}>"


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)


def _array(value):
    return value._raw if isinstance(value, Tensor) else value


def _key(leaf):
    """What of an argument decides which program serves."""
    if isinstance(leaf, Tensor):
        if leaf._aval.dual:
            mark(leaf)
        return leaf._aval
    if isinstance(leaf, jax.Array):
        return avals.aval_of(leaf), leaf.weak_type
    return type(leaf), leaf


def _positions(function, donate) -> tuple[int | str, ...]:
    """Where donated arguments may be found: each by position and by name."""
    if donate == AUTO or (not isinstance(donate, int) and not donate):
        return ()
    donate = (donate,) if isinstance(donate, int | str) else tuple(donate)
    names = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    for key in donate:
        if key not in names and not (isinstance(key, int) and 0 <= key < max(len(names), 1)):
            raise ValueError(f"donate={key!r}: {function.__name__} takes the arguments {names}")
    positions = [names.index(key) if isinstance(key, str) else key for key in donate]
    return (*positions, *(names[position] for position in positions if position < len(names)))
