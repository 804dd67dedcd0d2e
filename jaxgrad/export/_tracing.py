"""The trace of a module or function, as one function of arrays, and its program in StableHLO."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..autograd import grad as gradients_of
from ..autograd import grad_mode
from ..frontend.draw import fold
from ..frontend.jax_interop import to_jax
from ..frontend.tensor_data import tensor_of_number
from ..late import LateModule
from ..nn.module import Module
from ..tape import mode
from ..tape.mode import is_grad_enabled
from ..tape.requirements import requirements
from ..tape.symbolic_number import is_open
from ..tape.symbolic_size import exporting
from ..tape.tensor import Tensor, current, held, wrap
from ..utils import _pytree as pytree
from ._errors import UserError
from ._recorder import Recorder
from ._state import installed, members_of, node_name, refuse_replaced
from .graph_signature import InputKind

jax_export = LateModule("jax.export")

# an argument that a program changes has this before its name, among what it changes
ARGUMENT = "argument:"


# the key of the random numbers of a call has this name among the state
KEY = "random key"
KEY_STRUCT = jax.ShapeDtypeStruct((4,), np.uint32)

# stands for a number among the results that varies, such as a size
NUMBER = "size"
# a condition on numbers that the program computes has this before what its error says, among what
# the program changes
CONDITION = "condition:"

# among the origins of a result: parameters
PARAMETERS = ""

_NOTHING = contextlib.nullcontext()


class Results(NamedTuple):
    """What a trace knows of the results of a function.

    spec: their structure; leaves: a constant for each, None for a tensor, `NUMBER` for a number
    that varies; changed: the keys of what it has changed, in order, and its conditions; origins:
    for each tensor among the leaves, and what it has changed, with respect to what it has
    derivatives: `PARAMETERS`, numbers of inputs, and paths of `carried`; draws: whether it draws
    random numbers, of a key that is an input; carried: the paths of buffers and constants to which
    it writes what has a derivative, so that a later call may differentiate through them.
    """

    spec: Any
    leaves: list
    changed: list[str]
    origins: list[list[int | str]]
    draws: bool = False
    carried: Sequence[str] = ()


class KeyNeeded(Exception):
    """A program that is traced without a key draws random numbers."""


class CarriedState(Exception):
    """A program writes to buffers what has a derivative, which is not among `Traced.carried`."""


class Traced:
    """A function of state and inputs, as dict and tuple of tensors.

    target: a module or function; slots: of its state; names: of the leaves of the arguments;
    leaves: those of the example; spec: the structure of `(args, kwargs)`.
    """

    def __init__(self, target, slots, names, leaves, spec):
        self.target, self.slots, self.names = target, slots, names
        self.leaves, self.spec = leaves, spec
        self.results: Results | None = None
        self.recorder: Recorder | None = None  # of the last run that was to be recorded
        self.is_recording, self.draws = is_grad_enabled(), False
        self.carried: list[str] = []
        # of the last recorded run: the paths of constants that it has replaced, and texts of what
        # else it has left in the module
        self.replaced: set[str] = set()
        self.new_tensors: list[str] = []
        self.is_module = isinstance(target, Module)
        # a derivative may be traced later, when the module is in another mode
        self.members = members_of(target) if self.is_module else []

    def input_names(self) -> list[str]:
        """The names of the tensors among the arguments."""
        pairs = zip(self.names, self.leaves, strict=True)
        return [name for name, leaf in pairs if isinstance(leaf, Tensor)]

    def __call__(self, state: dict[str, Tensor], inputs: tuple, records=False):
        """The tensors among the results, and by key those that the function has changed.

        records: keep the operators that run as a graph.
        """
        supply = iter(inputs)
        leaves = [next(supply) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        watched = {
            **state,
            **{
                f"{ARGUMENT}{name}": tensor
                for name, tensor in zip(self.input_names(), inputs, strict=True)
            },
        }
        before = {key: held(current(tensor)) for key, tensor in watched.items()}
        tensors = {slot: state[slot.path] for slot in self.slots}
        is_module = self.is_module
        block = installed(self.target, self.members, tensors) if is_module else _NOTHING
        recorder = self.new_recorder(state, leaves) if records else None
        assigned: dict[int, Tensor] = {}
        with block as installation:
            with recorder.inside() if records else _NOTHING, requirements() as conditions:
                results = self.target(*args, **kwargs)
            if is_module:
                installation.end()
                members = {slot.path: installation.tensor_of(slot) for slot in self.slots}
                pairs = enumerate(members.items())
                assigned = {n: tensor for n, (path, tensor) in pairs if tensor is not state[path]}
                watched |= members
            after = {key: current(tensor) for key, tensor in watched.items()}
        changed = {key: t for key, t in after.items() if held(t) is not before[key]}
        for number, (array, text) in enumerate(conditions):
            changed[f"{CONDITION}{number}: {text}"] = wrap(array)
        if records:
            recorder.end(pytree.tree_leaves(results), assigned)
            self.recorder = recorder
            if is_module:
                self._check_assigned(installation)
        return self.opened(results, changed), changed

    def _check_assigned(self, installation):
        """Raise UserError for a constant that the recorded code reads and replaces."""
        placeholders = self.recorder.graph.find_nodes(op="placeholder")
        nodes = {s.path: n for s, n in zip(self.slots, placeholders, strict=False)}
        is_known = self.recorder.reason is None
        texts = installation.replaced.items()
        refuse_replaced([text for path, text in texts if nodes[path].users or not is_known])
        self.replaced, self.new_tensors = {*installation.replaced}, installation.new

    def new_recorder(self, state, leaves) -> Recorder:
        """A recorder that knows the state and the leaves of the arguments."""
        recorder = Recorder(self.target if self.is_module else None)
        for slot in self.slots:
            recorder.placeholder(node_name(slot), state[slot.path])
        for name, leaf in zip(self.names, leaves, strict=True):
            recorder.input(name, leaf)
        return recorder

    def opened(self, results, changed) -> tuple:
        """The tensors among the results; notes what else there is."""
        leaves, spec = pytree.tree_flatten(results)
        outputs: list[Tensor] = []
        constants: list = []
        for leaf in leaves:
            if isinstance(leaf, Tensor | jax.Array):
                # a size that varies, minus a tensor, is an array of JAX
                outputs.append(leaf if isinstance(leaf, Tensor) else wrap(leaf))
                constants.append(None)
            elif is_open(leaf):
                outputs.append(tensor_of_number(leaf))
                constants.append(NUMBER)
            elif leaf is None or isinstance(leaf, bool | int | float | str):
                constants.append((leaf,))
            else:
                raise UserError(
                    f"It looks like one of the outputs with type `{type(leaf)}` is not supported "
                    "or pytree-flattenable: return tensors, numbers, texts, None, or containers "
                    "of these; torch.export.register_dataclass makes a dataclass a container"
                )
        self.results = Results(spec, constants, [*changed], [], self.draws, self.carried)
        return tuple(outputs)


@contextlib.contextmanager
def drawing_of(key: Tensor | None):
    """A block in which the default generator draws of a key. Raises KeyNeeded without one."""
    number = 0

    def words(count):
        nonlocal number
        if key is None:
            raise KeyNeeded
        first, number = number, number + count
        return jax.numpy.concatenate([fold(held(key)), np.array([first, 0], np.uint32)])

    token = mode.key_source.set(words)
    try:
        yield
    finally:
        mode.key_source.reset(token)


class Recorded(NamedTuple):
    """A run that the tape has recorded: its leaves by path or number, its results, what it has
    changed.
    """

    leaves: dict
    outputs: tuple
    changed: dict

    def of(self, outputs, changed) -> list[tuple]:
        """The results that have a derivative, with what belongs to them."""
        pairs = [
            *zip(self.outputs, outputs, strict=True),
            *[(tensor, changed[key]) for key, tensor in self.changed.items()],
        ]
        return [(tensor, other) for tensor, other in pairs if tensor.requires_grad]


def recorded(traced: Traced, state, inputs, *, records=False) -> Recorded:
    """A run on parameters and inputs that require grad. records: as a call of `Traced` has it."""
    parameters = {slot.path for slot in traced.slots if slot.kind is InputKind.PARAMETER}
    members = {path: state[path] for path in state if path in parameters or path in traced.carried}
    leaves = {
        key: tensor.detach().requires_grad_()
        for key, tensor in (*members.items(), *enumerate(inputs))
        if tensor.is_floating_point() or tensor.is_complex()
    }
    with grad_mode.set_grad_enabled(traced.is_recording):
        # all but parameters may be written to in place, which a leaf may not
        known = {key: leaf if key in parameters else leaf.clone() for key, leaf in leaves.items()}
        arguments = [known.get(number, tensor) for number, tensor in enumerate(inputs)]
        tensors = {path: known.get(path, tensor) for path, tensor in state.items()}
        run = Recorded(leaves, *traced(tensors, tuple(arguments), records))
    keys = {id(leaf): PARAMETERS if key in parameters else key for key, leaf in leaves.items()}
    origins = [_origins(tensor, keys) for tensor in (*run.outputs, *run.changed.values())]
    written = zip(run.changed, origins[len(run.outputs) :], strict=True)
    known = {*traced.carried, *parameters}
    new = [key for key, keys in written if keys and key in state and key not in known]
    if new:
        traced.carried += new
        raise CarriedState
    traced.results = traced.results._replace(origins=origins)
    return run


def _origins(tensor: Tensor, keys: dict[int, int | str]) -> list[int | str]:
    """The keys of the leaves with respect to which a tensor has a derivative; keys: by identity."""
    if tensor.grad_fn is None:
        return [keys[id(tensor)]] if id(tensor) in keys else []
    nodes, visited, origins = [tensor.grad_fn], set(), set()
    while nodes:
        node = nodes.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        leaf = id(getattr(node, "variable", None))
        origins |= {keys[leaf]} if leaf in keys else set()
        nodes += [target for target, _ in node.next_functions]
    return sorted(origins, key=str)


def differentiable(traced: Traced):
    """The function of arrays of a trace; its derivative is that of the tape, with `no_grad`, hooks
    and Functions as they are when the module itself is called.
    """

    @to_jax
    def plain(state, inputs):
        with drawing_of(state.get(KEY)):
            run = recorded(traced, state, inputs, records=True)
            return run.outputs, run.changed

    @to_jax
    def pullback(state, inputs, cotangents):
        with drawing_of(state.get(KEY)):
            return _gradients(traced, state, inputs, cotangents)

    program = jax.custom_vjp(plain)

    def forward(state, inputs):
        return plain(state, inputs), (state, inputs)

    def backward(known, cotangents):
        return pullback(*known, jax.tree.map(_without_empty, cotangents))

    program.defvjp(forward, backward)
    return program


def _gradients(traced: Traced, state, inputs, cotangents):
    """The gradients of the state and of the inputs, by the tape."""
    expected = traced.results.origins
    run = recorded(traced, state, inputs)
    if traced.results.origins != expected:
        raise UserError(
            "the code goes another way when it is traced again, for the derivative: export a "
            "module whose code depends on its arguments alone"
        )
    slopes = [None] * len(run.leaves)
    pairs = run.of(*cotangents)
    if pairs:
        results, others = zip(*[(t, _conjugate(c)) for t, c in pairs], strict=True)
        leaves = [*run.leaves.values()]
        slopes = gradients_of(results, leaves, others, allow_unused=True)
    by_key = {
        key: None if slope is None else _conjugate(slope)
        for key, slope in zip(run.leaves, slopes, strict=True)
    }
    of_state = {path: by_key.get(path) for path in state}
    return of_state, tuple([by_key.get(number) for number in range(len(inputs))])


def _conjugate(tensor):
    return tensor.conj().resolve_conj() if tensor.is_complex() else tensor


def _without_empty(cotangent):
    """A cotangent; None of a result of ints, for which JAX has an array without data."""
    return None if cotangent.dtype == jax.dtypes.float0 else cotangent


def lowered(traced: Traced, state, inputs, platforms):
    """The `jax.export.Exported` of a trace, for arrays of these kinds. It has a key among its state
    if the function draws random numbers.
    """
    known = {**state, KEY: KEY_STRUCT} if traced.draws else state
    try:
        return _lowered(traced, known, inputs, platforms)
    except KeyNeeded:
        traced.draws = True
    except CarriedState:
        pass  # it is noted
    return lowered(traced, state, inputs, platforms)


def _lowered(traced, state, inputs, platforms):
    """The same, for as many of the platforms as it can be lowered for."""
    ended = []

    def program(state, inputs):
        results = function(state, inputs)
        ended.append(True)
        return results

    function = differentiable(traced)

    def exported(names):
        with exporting(), jax.enable_x64(True):
            jitted = jax.jit(program)
            return jax_export.export(jitted, platforms=names)(state, inputs)

    try:
        return exported(platforms)
    except Exception:
        if not ended or len(platforms) == 1:
            raise
    usable = [name for name in platforms if _lowers(exported, name)]
    return exported(usable or platforms[:1])


def _lowers(exported, platform) -> bool:
    try:
        exported([platform])
    except NotImplementedError:
        return False
    return True
