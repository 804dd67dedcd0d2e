"""`jaxgrad.jit`: a function of tensors, `.backward()` and all, as one XLA program.

The tape runs while JAX traces: what it records and computes becomes part of the program, so hooks,
modes and gradients of any order compile as they are. What the function reads from outside goes into
the program at every call, and what it changes there comes out of it (capture/scope.py,
capture/side_effects.py).
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence

import jax

from ..core import dtypes, executor
from ..core.aval import Aval, aval_of
from ..tape import mode, node_annotations, pytree
from ..tape.dual import mark
from ..tape.mode import current_mode
from ..tape.tensor import Tensor, is_moving
from .compiled_program import Trace, argument_at
from .scope import ReadsTangent

AUTO = "auto"

# so many traces in a row for arguments of one kind have the user told: of those that can serve but
# once, of others; and so many programs are kept
MOST_THAT_SERVE_ONCE, MOST_IN_A_ROW, MOST_KEPT = 3, 8, 32
LEFT = (
    "it leaves behind {} that another run would have to make anew: write into a tensor that is "
    "there, as `state.copy_(new)`, or return it"
)


def jit(
    function: Callable | None = None,
    *,
    donate: int | str | Sequence[int | str] = AUTO,
    static_argnames: str | Sequence[str] = (),
):
    """`function`, compiled: as it is, with all that it reads and changes.

    Tensors that it reaches by closure, attribute or global go into the program at every call with
    the values that they have then; writes to them, and to arguments, their `.grad`, and what is
    kept of the tensors that it makes, come out. There is a program for each kind of arguments and
    of such tensors (shapes, dtypes, `requires_grad`, whether a `.grad` that is read is there,
    hooks), for grad mode, and for the values of all arguments that are no tensors, which must be
    hashable. Other Python values are part of the program, as they were when it was traced. A call
    in which tangents of forward mode go in or come out runs as it is, uncompiled.

    A Python int or float among the arguments is part of the program too, until a call brings
    another one: from then on it is an input, of which there may be no `if`; where the function
    needs to look at it, it stays part of the program.

    A compiled `nn.Module` has the attributes and methods of the module as well. `train()` and
    `eval()` of modules within the function are made so at every call.

    Arguments and results are tensors, JAX arrays, or lists, tuples, dicts and dataclasses of them,
    and anything hashable. Hooks run while the function is traced, and what they do to gradients is
    part of the program; to add one, or to take one away, has the function traced anew.

    donate: whose memory the results may take. By default that of tensors that are overwritten, as
    far as nobody else has their arrays; besides, arguments by position or by name, whose tensors
    cannot be used afterwards; `()` for nobody's. static_argnames: names of arguments whose numbers
    are always part of the program. Raises TypeError for an argument that cannot be
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
        return functools.partial(jit, donate=donate, static_argnames=static_argnames)
    return Jitted(function, donate, static_argnames)


class Jitted:
    """A compiled function: its `Trace`s, by the kinds of arguments that it was called with."""

    def __init__(self, function, donate, static_argnames):
        self.__name__ = type(function).__name__  # where the function has none, as a partial one
        # what else it has, as the parameters of a module, is looked up there (`__getattr__`)
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.donates = donate not in ((), None) and donate is not False
        donate = () if donate in (AUTO, None) or donate is False else donate
        self.donate = _positions(function, donate, "donate")
        self.static = _positions(function, static_argnames, "static_argnames")
        self.known: dict[tuple, list[Trace]] = {}
        self.numbers: dict[tuple, Numbers] = {}
        self.count, self.why, self.last = 0, "it has not been called", None
        self.in_a_row = 0  # how many of the last calls were traced though their kind had been

    @property
    def traces(self) -> list[Trace]:
        """All programs."""
        return [trace for traces in self.known.values() for trace in traces]

    def __call__(self, *args, **kwargs):
        if mode.scope.get() is not None or executor.is_traced():
            return self.function(*args, **kwargs)  # part of the trace that is under way
        leaves, structure = pytree.flatten((args, kwargs))
        varying = self.numbers[structure].varying if structure in self.numbers else ()
        key = self.key(leaves, structure, varying)
        try:
            known = self.known.get(key, ())
        except TypeError as error:
            raise TypeError(
                f"{self.__name__}: an argument is neither a tensor nor hashable: {error}. Pass its "
                "tensors in a tuple, a list, a dict or a dataclass"
            ) from None
        for trace in known:
            tensors = trace.find(leaves)
            if tensors is not None:
                self.in_a_row = 0
                return trace(leaves, tensors)
        if any(isinstance(_array(leaf), jax.core.Tracer) for leaf in leaves):
            return self.function(*args, **kwargs)
        return self.trace(leaves, structure)

    def explain(self) -> str:
        """Why the function was last traced: what was different from the calls before.

        >>> double = jaxgrad.jit(lambda x: x * 2)
        >>> _ = double(jaxgrad.ones(2)), double(jaxgrad.ones(3))
        >>> double.explain().partition(" because ")[2]
        'argument 0 was torch.float32[2], and is torch.float32[3]'
        """
        return f"traced {self.count} times, the last time because {self.why}"

    def key(self, leaves, structure, varying):
        settings = current_mode.get(), dtypes.get_default_dtype(), node_annotations.settings()
        keys = list(map(_key, leaves))
        for position in varying:
            keys[position] = type(leaves[position])
        return structure, settings, *keys

    def trace(self, leaves, structure):
        """Trace the function, and run what came of it."""
        if any(isinstance(leaf, Tensor) and is_moving(leaf) for leaf in leaves):
            return self.uncompiled(leaves, structure)
        self.why = self.reason(leaves, structure)
        self.count += 1
        self.forget()
        numbers = self.numbers.get(structure)
        if numbers is None:
            numbers = self.numbers[structure] = Numbers(self, leaves, structure)
        numbers.look(leaves)
        try:
            trace = self.new_trace(leaves, structure, numbers.varying)
        except ReadsTangent:
            return self.uncompiled(leaves, structure)
        except Exception:
            if not numbers.give_up():
                raise
            trace = self.new_trace(leaves, structure, frozenset())
        key = self.key(leaves, structure, numbers.varying)
        tensors = trace.locate(leaves)
        trace.guard(tensors)
        self.last = structure, leaves_of(leaves), trace
        known = self.known.get(key, ())
        self.in_a_row = self.in_a_row + 1 if known or trace.left else 0
        if trace.left is None:
            self.known[key] = [trace, *known[: MOST_KEPT - 1]]
        if self.in_a_row == (MOST_THAT_SERVE_ONCE if trace.left else MOST_IN_A_ROW):
            self.warn()
        return trace(leaves, tensors)

    def warn(self):
        """Say that each call is traced."""
        warnings.warn(
            f"{self.__name__}, compiled by jaxgrad.jit, is traced at every call, this time because "
            f"{self.why}. A number that changes is best an argument, or read by "
            "jaxgrad.tracing.number",
            stacklevel=4,
        )

    def new_trace(self, leaves, structure, varying) -> Trace:
        return Trace(self, leaves, structure, varying)

    def reason(self, leaves, structure) -> str:
        """What makes this call another than the last one that was traced."""
        if self.last is None:
            return "it was called for the first time"
        before, known, trace = self.last
        if trace.left is not None:
            return LEFT.format(trace.left)
        if structure != before:
            return f"the structure of the arguments was {before}, and is {structure}"
        for position, (old, new) in enumerate(zip(known, leaves_of(leaves), strict=True)):
            if old != new:
                return f"argument {position} was {old[0]}, and is {new[0]}"
        return trace.refusal(leaves) or "grad mode or another setting was changed"

    def uncompiled(self, leaves, structure):
        """Call the function as it is: tangents of forward mode cannot go in and come out."""
        args, kwargs = jax.tree.unflatten(structure, leaves)
        return self.function(*args, **kwargs)

    def forget(self):
        """Drop the programs that cannot be called again."""
        for key, traces in list(self.known.items()):
            traces[:] = [trace for trace in traces if not trace.is_over()]
            if not traces:
                self.known.pop(key, None)

    def __getattr__(self, name):
        if name == "function":
            raise AttributeError(name)  # of a copy that is being made
        return getattr(self.function, name)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def lower(self, *args, **kwargs):
        """The program for these arguments as JAX lowers it: `.as_text()`,
        `.compile().cost_analysis()`.
        """
        leaves, structure = pytree.flatten((args, kwargs))
        trace = Trace(self, leaves, structure)
        with jax.enable_x64(True):
            return trace.program.lower(*trace.inputs_of(leaves, trace.locate(leaves)))

    def __repr__(self):
        return f"<jitted {self.__name__}>"


def _array(value):
    return value._raw if isinstance(value, Tensor) else value


def leaves_of(leaves):
    """Arguments as `explain` tells them."""
    keys = map(_key, leaves)
    return [(key, None) if isinstance(key, Aval) else key[::-1] for key in keys]


def _key(leaf):
    """What of an argument decides which program serves."""
    if isinstance(leaf, Tensor):
        if leaf._aval.dual:
            mark(leaf)
        return leaf._aval
    if isinstance(leaf, jax.Array):
        return aval_of(leaf), leaf.weak_type
    return type(leaf), leaf


class Numbers:
    """The Python numbers among the arguments of one structure.

    `varying`: the positions of those that are inputs of the program.
    """

    def __init__(self, jitted, leaves, structure):
        args, kwargs = jax.tree.unflatten(structure, range(len(leaves)))
        fixed = {
            i for key in jitted.static for i in jax.tree.leaves(argument_at(args, kwargs, key))
        }
        self.first = {
            i: leaf
            for i, leaf in enumerate(leaves)
            if type(leaf) in (int, float) and i not in fixed
        }
        self.varying = frozenset()

    def look(self, leaves):
        """Note which numbers are others than they were."""
        self.varying |= {i for i, first in self.first.items() if leaves[i] != first}

    def give_up(self) -> bool:
        """Leave those that vary to be part of the program; tells whether there were any."""
        given_up, self.varying = self.varying, frozenset()
        for position in given_up:
            del self.first[position]
        return bool(given_up)


def _positions(function, wanted, what) -> tuple[int | str, ...]:
    """Where arguments may be found that are told by position or name: each by both."""
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
