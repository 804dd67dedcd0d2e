"""`jaxgrad.jit`: a function of tensors, `.backward()` and all, as one XLA program.

The tape runs while JAX traces: what it records and computes becomes part of the program, so hooks,
modes and gradients of any order compile as they are. State goes in as arguments and comes out as
results.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence

import jax

from . import avals, dtypes, execution, noting
from .autograd import compiled
from .modes import mode
from .nodes import ProgramNode
from .programs import Reverse, bare
from .tangents import mark
from .tensor import Tensor, edge_of, standing, wrap


def jit(function: Callable | None = None, *, donate: int | str | Sequence[int | str] = ()):
    """`function`, compiled for each kind of arguments: shapes, dtypes, `requires_grad`, grad mode,
    hooks, and the values of all that is no tensor.

    Arguments and results are tensors, JAX arrays, or lists, tuples and dicts of them; anything else
    must be hashable and is part of the program. Within, a tensor argument is a leaf of its own: its
    `.grad` starts at None, and what the function computes is returned, not left behind. A tensor
    reached from outside is a constant, as it was when the function was traced. Hooks run while the
    function is traced, and what they do to gradients is part of the program; to add one, or to take
    one away, has the function traced anew.

    Within, forward mode works as it does outside; a tangent cannot come in or go out: make duals
    and unpack them inside.

    donate: positions or names of arguments whose memory the results may take; their tensors cannot
    be used afterwards. Raises TypeError for an argument that cannot be hashed, RuntimeError where
    the function reads numbers (`item()`, an `if` on a tensor), accumulates into a leaf that is
    not its argument, or has an argument or a result with a tangent of forward mode.

    >>> @jaxgrad.jit
    ... def slope(x):
    ...     (x * x).sum().backward()
    ...     return x.grad
    >>> slope(jaxgrad.tensor([1.0, 2.0], requires_grad=True))
    tensor([2., 4.])
    """
    if function is None:
        return functools.partial(jit, donate=donate)
    return Jitted(function, (donate,) if isinstance(donate, int | str) else tuple(donate))


class Jitted:
    """A compiled function: a `Trace` for each kind of arguments it was called with."""

    def __init__(self, function, donate):
        self.__name__ = type(function).__name__  # where the function has none, as a partial one
        functools.update_wrapper(self, function)
        self.function = function
        self.donate = _positions(function, donate)
        self.traces: dict[tuple, Trace] = {}

    def __call__(self, *args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
        settings = mode.get(), dtypes.get_default_dtype(), noting.settings()
        key = (structure, settings, *map(_key, leaves))
        try:
            trace = self.traces.get(key)
        except TypeError as error:
            raise TypeError(
                f"{self.__name__}: an argument is neither a tensor nor hashable: {error}"
            ) from None
        if trace is None or trace.outside.has_changed():
            if any(isinstance(_array(leaf), jax.core.Tracer) for leaf in leaves):
                return self.function(*args, **kwargs)  # part of the trace that is under way
            self.refuse_moving(leaves, "is called with")
            self.forget()
            trace = self.traces[key] = Trace(self, leaves, structure)
        return trace(leaves)

    def refuse_moving(self, values, what):
        for tensor in filter(_is_tensor, values):
            standing(tensor, f"{self.__name__}, compiled by jaxgrad.jit, {what}")

    def forget(self):
        """Drop the programs that cannot be called again, as hooks that they have were removed."""
        for key, trace in list(self.traces.items()):
            if trace.is_over():
                self.traces.pop(key, None)

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
            return trace.program.lower(*trace.inputs(leaves))

    def __repr__(self):
        return f"<jitted {self.__name__}>"


class Trace:
    """One compiled program, and how its arrays are the function's arguments and results."""

    def __init__(self, jitted: Jitted, leaves, structure):
        self.jitted, self.structure = jitted, structure
        self.constants = [None if _is_data(leaf) else leaf for leaf in leaves]
        self.positions = [i for i, leaf in enumerate(leaves) if _is_data(leaf)]
        # None for a JAX array, else whether the tensor requires grad
        self.required = [
            leaves[i]._requires_grad if _is_tensor(leaves[i]) else None for i in self.positions
        ]
        self.strides = {i: leaves[i]._aval.strides for i in self.positions if _is_tensor(leaves[i])}
        hooks = {i: compiled.OfArgument(leaves[i]) for i in self.strides}
        self.hooks = {i: of_argument for i, of_argument in hooks.items() if of_argument.numbers}
        self.outside = compiled.Outside()
        self.donation = self.donated()
        self.program = jax.jit(self.run, donate_argnums=self.donation)
        self.results = None
        self.name, self.mode = jitted.__name__, avals.IMMEDIATE
        execution.adopt(self, execution.with_wide_types(self.program))

    def donated(self):
        """The inputs of the program that belong to a donated argument."""
        args, kwargs = jax.tree.unflatten(self.structure, range(self.structure.num_leaves))
        chosen = {
            leaf
            for key in self.jitted.donate
            for leaf in jax.tree.leaves(_argument(args, kwargs, key))
        }
        return tuple(i for i, position in enumerate(self.positions) if position in chosen)

    def inputs(self, leaves):
        return [_array(leaves[i]) for i in self.positions]

    def __call__(self, leaves):
        arrays = self.kernel(*self.inputs(leaves))
        self.outside.pass_on()
        return self.rebuild(arrays, leaves)

    def is_over(self) -> bool:
        """Whether hooks that it has are gone."""
        return any(hooks.is_over() for hooks in self.hooks.values())

    def run(self, *arrays):
        """What JAX traces: the function on tensors of tracers. What comes out besides arrays is
        kept in `results`.
        """
        leaves = self.arguments(arrays)
        with bare():
            outputs, structure = self.call(leaves)
        for position, array in zip(self.positions, arrays, strict=True):
            self.refuse_written(leaves[position], array)
        self.results = structure, [_Result(output) for output in outputs]
        return [_array(output) for output in outputs if _is_data(output)]

    def arguments(self, arrays):
        """The leaves that the function is called with, tensors of `arrays` among them."""
        leaves, self.outside = list(self.constants), compiled.Outside()
        for position, array, required in zip(self.positions, arrays, self.required, strict=True):
            leaves[position] = (
                array if required is None else self.argument(array, required, position)
            )
        return leaves

    def call(self, leaves):
        """What the function returns, flattened, and its structure."""
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        with self.outside.meeting():
            outputs = self.jitted.function(*args, **kwargs)
        outputs, structure = jax.tree.flatten(outputs, is_leaf=_is_tensor)
        self.jitted.refuse_moving(outputs, "returns")
        return outputs, structure

    def kept(self, arrays):
        """The inputs of a run as they can be used after it, those that are donated copied."""
        with jax.enable_x64(True):
            return [
                jax.numpy.copy(array) if i in self.donation else array
                for i, array in enumerate(arrays)
            ]

    def again(self, arrays):
        """The arrays that come out where the function runs operator by operator, not compiled."""
        traced = self.outside
        try:
            outputs, _ = self.call(self.arguments(arrays))
        finally:
            self.outside = traced
        return [_array(output) for output in outputs if _is_data(output)]

    def argument(self, array, required, position):
        """A tensor argument as the function gets it: a leaf that shows the strides of the given."""
        shown = avals.with_strides(avals.aval_of(array), self.strides[position])
        made = wrap(array, shown, required)
        if position in self.hooks:
            self.hooks[position].share(self.outside, made)
        return made

    def refuse_written(self, argument, array):
        if _is_tensor(argument) and (argument._array is not array or argument._version):
            raise RuntimeError(
                f"{self.jitted.__name__}: an argument of shape {list(argument.shape)} is written "
                "to in place, which its owner would not see: write to its clone() and return that"
            )

    def rebuild(self, arrays, leaves):
        structure, results = self.results
        supply = iter(arrays)
        return jax.tree.unflatten(
            structure, [result.rebuild(supply, leaves, self) for result in results]
        )


class _Result:
    """How one result comes out: as a tensor, a JAX array, or a constant of the trace."""

    def __init__(self, output):
        self.data, self.tensor = _is_data(output), _is_tensor(output)
        self.constant = None if self.data else output
        if self.tensor:
            shown = output._aval
            self.aval = avals.aval(tuple(shown.shape), shown.dtype, strides=shown.strides)
            self.requires_grad, self.leaf = output._requires_grad, output.is_leaf

    def rebuild(self, supply, leaves, trace):
        if not self.data:
            return self.constant
        array = next(supply)
        if not self.tensor:
            return array
        if not self.requires_grad or self.leaf:
            return wrap(array, self.aval, self.requires_grad)
        sources = [
            leaves[i]
            for i, required in zip(trace.positions, trace.required, strict=True)
            if required
        ]
        reverse = _Inside(trace.jitted.__name__, self.aval, len(sources))
        return wrap(
            array,
            self.aval,
            True,
            ProgramNode(reverse, (), [edge_of(source) for source in sources]),
        )


class _Inside(Reverse):
    """The reverse of a compiled function, which is not there: gradients are taken inside."""

    def __init__(self, name, output, count):
        self.program = _Compiled(name, output, count)
        super().__init__(self.program, (True,) * count)
        self.saved_inputs = self.saved_outputs = ()

    @property
    def outputs(self):
        raise RuntimeError(
            f"{self.program.name}: the result of a jaxgrad.jit function cannot be differentiated "
            f"from outside yet: call "
            "backward() or autograd.grad inside it and return the gradients, or detach() the result"
        )


class _Compiled:
    """A compiled function as the node of its result describes it."""

    mode = avals.IMMEDIATE
    single = True

    def __init__(self, name, output, count):
        self.name, self.outputs, self.inputs = name, (output,), (output,) * count
        self.differentiable_outputs = (0,)


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)


def _is_data(value) -> bool:
    return isinstance(value, Tensor | jax.Array)


def _array(value):
    return value._array if isinstance(value, Tensor) else value


def _key(leaf):
    """What of an argument decides which program serves."""
    if isinstance(leaf, Tensor):
        if leaf._aval.dual:
            mark(leaf)
        hooks = None if leaf._leaf is leaf._node is None else compiled.numbers_of(leaf)
        return (leaf._aval, leaf._requires_grad, *(hooks or ()))
    if isinstance(leaf, jax.Array):
        return avals.aval_of(leaf), leaf.weak_type
    return type(leaf), leaf


def _positions(function, donate) -> tuple[int | str, ...]:
    """Where donated arguments may be found: each by position and by name."""
    if not donate:
        return ()
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


def _argument(args, kwargs, key):
    if isinstance(key, str):
        return kwargs.get(key)
    return args[key] if key < len(args) else None
