"""Exported programs as modules."""

from __future__ import annotations

import functools

import jax

from ..autograd import grad_mode
from ..frontend.generator import default_generator
from ..frontend.jax_interop import wide_operator
from ..fx.graph_module import HOOKS, GraphModule, copied_body
from ..nn.module import Module
from ..tape.symbolic_size import exporting
from ..tape.tensor import Tensor, wrap
from ._graph import LateGraph
from ._signature import Signature
from ._state import Slot, holder_of
from ._tracing import ARGUMENT, CONDITION, KEY, NUMBER
from ._unlifted import unlifted
from .graph_signature import InputKind

NO_DERIVATIVE = (
    "this program was saved without its derivative: export it with with_vjp=True to have gradients "
    "after it is loaded, or call it under torch.no_grad()"
)


def new_words() -> Tensor:
    """The key of a call, drawn of the default generator: uint32 of shape (4,)."""
    return wrap(jax.numpy.asarray(default_generator.next_key()))


def caller_of(exported):
    """A program as an operator on a dict and a tuple of tensors."""

    def backward(known, cotangents):
        if not exported.has_vjp():
            raise RuntimeError(NO_DERIVATIVE)
        with exporting(), jax.enable_x64(True):  # the derivative may be traced here
            return jax.vjp(exported.call, *known)[1](cotangents)

    call = jax.custom_vjp(exported.call)
    call.defvjp(lambda *known: (exported.call(*known), known), backward)
    return wide_operator(call)


class Runner(Module):
    """A module that runs an exported program; its parameters and buffers are those of the module
    that was exported, under the same names.

    Its code is that of the mode in which it was exported. Each call of a program with random
    numbers draws one key of the default generator.
    """

    def __init__(self, call, signature: Signature, tensors: dict[Slot, Tensor]):
        Module.__init__(self)
        self._program, self._signature = call, signature
        for slot, tensor in tensors.items():
            for path in slot.paths:
                _put(self, slot, path, tensor)

    def forward(self, *args, **kwargs):
        """The results of the program. Raises as `Signature.tensors_of` says for other arguments."""
        signature = self._signature
        inputs = signature.tensors_of(args, kwargs)
        state = {}
        for slot in signature.slots:
            holder, name = holder_of(self, slot, slot.path)
            state[slot.path] = holder[name]
        return signature.results_of(run_program(self._program, signature, state, inputs))

    def train(self, mode: bool = True):
        """Raise NotImplementedError: a program is that of one mode."""
        raise NotImplementedError(
            f"Calling {'train' if mode else 'eval'}() is not supported yet: a program is that of "
            "the mode in which the module was exported"
        )

    def extra_repr(self) -> str:
        """The arguments and their shapes."""
        return ", ".join(self._signature.tensor_names())


class ProgramModule(Runner, GraphModule):
    """A module that runs an exported program, with its graph.

    After a change of `graph` and `recompile()`, it runs the graph in place of the program.
    """

    def __init__(self, call, signature: Signature, tensors: dict[Slot, Tensor], graph: LateGraph):
        super().__init__(call, signature, tensors)
        type(self).__name__ = "GraphModule"
        self._lifted_graph, self.meta, self._runs_graph = graph, {}, False
        for name in HOOKS:
            object.__setattr__(self, name, [])

    @functools.cached_property
    def _graph(self):
        known = self._lifted_graph.graph
        for name, tensor in known.lifted.items():
            self.register_buffer(name, tensor, persistent=False)
        graph = unlifted(known, self._signature)
        graph.owning_module = self
        self._in_spec, self._out_spec = self._signature.in_spec, self._signature.results.spec
        return graph

    @property
    def code(self) -> str:
        """The code of the graph."""
        return self._graph.python_code(root_module="self").src

    def recompile(self):
        """Write the code of the graph, and run it from now on; return it."""
        self._runs_graph = True
        return super().recompile()

    def __deepcopy__(self, memo):
        copied = copied_body(self, ProgramModule, memo)
        if self._runs_graph:
            copied.recompile()
        return copied


def run_program(call, signature: Signature, state: dict[str, Tensor], inputs: list) -> tuple:
    """The tensors among the results of a program. What it changes is written to the state and to
    the inputs.
    """
    drawn = {KEY: new_words()} if signature.results.draws else {}
    known = {slot.path: _known(slot, state[slot.path], signature) for slot in signature.slots}
    outputs, changed = signature.tracked(state, inputs, *call({**known, **drawn}, tuple(inputs)))
    names = [f"{ARGUMENT}{name}" for name in signature.tensor_names()]
    _write(changed, {**state, **dict(zip(names, inputs, strict=True))})
    return outputs


def _known(slot: Slot, tensor: Tensor, signature: Signature) -> Tensor:
    """A tensor of the state as an argument of the program. Raises RuntimeError if the program lacks
    the gradient of it.
    """
    if slot.kind is InputKind.PARAMETER or not tensor.requires_grad:
        return tensor
    if slot.path not in signature.results.carried:
        raise RuntimeError(
            f"the program has no gradient of {slot.path}, which is no parameter: make it one, or "
            "an argument, before the export"
        )
    is_read = any(slot.path in origins for origins in signature.results.origins)
    return tensor if is_read else tensor.detach()


def run_flat(call, signature: Signature, values) -> tuple:
    """The same for the inputs of the graph of a program: state, and the leaves of arguments."""
    count = len(signature.slots)
    state = {slot.path: t for slot, t in zip(signature.slots, values[:count], strict=True)}
    inputs = [value for value in values[count:] if isinstance(value, Tensor)]
    outputs = iter(run_program(call, signature, state, inputs))
    leaves = signature.results.leaves
    return tuple([_leaf(leaf, next(outputs)) for leaf in leaves if not isinstance(leaf, tuple)])


def _leaf(kind, tensor):
    return tensor.item() if kind == NUMBER else tensor


def _write(changed, tensors):
    """Give tensors the values that the program has changed. Raises RuntimeError where a condition
    of the program does not hold; nothing is changed then.
    """
    for key, value in changed.items():
        if key.startswith(CONDITION) and not value:
            raise RuntimeError(key.removeprefix(CONDITION).partition(": ")[2])
    for key, value in changed.items():
        if key.startswith(CONDITION):
            continue
        tensor = tensors[key]
        if value.requires_grad:
            tensor.copy_(value)
            continue
        with grad_mode.no_grad():
            tensor.copy_(value)


def _put(module, slot, path, tensor):
    owner, _, name = path.rpartition(".")
    inner = module
    for part in filter(None, owner.split(".")):
        if part not in inner._modules:
            inner.add_module(part, Module())
        inner = inner._modules[part]
    if slot.kind is InputKind.BUFFER:
        inner.register_buffer(name, tensor, persistent=slot.persistent)
    else:
        setattr(inner, name, tensor)
