"""Records the operators that a module calls while it is traced, as a graph of `torch.ops.aten`."""

from __future__ import annotations

import contextlib
import functools
import operator
import sys

import jax
import numpy as np

from .. import ops
from ..amp import autocast_mode
from ..autograd import grad_mode
from ..core import dtypes
from ..core.device import device, layout, memory_format
from ..core.symbolic_extents import is_symbolic
from ..late import LateModule
from ..nn.module import Module
from ..state.ownership import is_internal
from ..tape import mode
from ..tape.mode import is_grad_enabled
from ..tape.symbolic_number import Varying, has_open
from ..tape.tensor import Tensor, current, is_concrete
from ..tape.torch_function import NOT_OVERRIDDEN, inside
from ._fake import fake, fake_of
from ._python_calls import call_of
from ._symbols import Symbols

fx_graph = LateModule("jaxgrad.fx.graph")
linecache = LateModule("linecache")

_PLAIN = (
    *(int, float, complex, str, slice, type(None), type(...)),
    *(dtypes.dtype, device, layout, memory_format),
)

# functions that PyTorch writes of operators, as jaxgrad does: the graph has these
_OPEN = frozenset(("__getitem__", "__setitem__", "__rtruediv__", "multi_head_attention_forward"))


class Unknown(Exception):
    """An argument comes from something that is no operator."""


class Recorder:
    """Records the calls of operators inside of its block.

    graph: of what was recorded; lifted: constants that are inputs of the graph, by their names;
    outputs: the nodes of the results, or their values; reason: why the graph does not have all,
    None if it does.
    """

    def __init__(self, module: Module | None):
        self.graph = fx_graph.Graph()
        self.lifted: dict[str, np.ndarray] = {}
        self.reason: str | None = None
        self.outputs: list = []
        self._nodes: dict[int, object] = {}
        self._numbers: dict[int, object] = {}
        self._versions: dict[int, int] = {}
        self.first_user_input = None
        self._known: list = []  # so that no other object gets their identities
        self._symbols = Symbols(self._call)
        self._paths = {}
        if module is not None:
            self._paths = {id(inner): path for path, inner in module.named_modules()}
        self._records_grad = self._recorded_at_first = is_grad_enabled()
        self._casts = self._cast_at_first = mode.casting.get()
        self._autocasts: list = []  # the nodes that enter those that are on

    def inside(self):
        """The block."""
        return inside(self)

    # ---- inputs and outputs

    def placeholder(self, name: str, value):
        """Add an input."""
        node = self._placeholder(name)
        if isinstance(value, Tensor):
            self._know(value, node)
            node.meta["val"] = fake_of(value)
            self._symbols.note(node, value.shape)
        else:
            node.meta["val"] = value
        return node

    def _placeholder(self, name: str):
        node = self.graph.placeholder(name)
        names = self.graph._graph_namespace
        if node.name != name and name not in names._used_names:  # that of a function of Python
            node.name = name
            names._rename_object(node, name)
        return node

    def input(self, name: str, value):
        """Add an argument of the user."""
        node = self.placeholder(name, value)
        self.first_user_input = self.first_user_input or node

    def end(self, leaves, assigned):
        """Add the results: `outputs` has their nodes, or values of what has none.

        assigned: the tensors that code has put in the place of buffers, by the numbers of the
        placeholders of these.
        """
        with self._guarded():
            self._end([self._argument(leaf) for leaf in leaves], assigned)
        # tensors of the trace, which ends
        self._known, self._nodes, self._versions, self._paths = [], {}, {}, {}
        self._numbers = {}

    def _end(self, nodes: list, assigned):
        self.outputs = nodes
        self._set_grad_mode(self._recorded_at_first)
        self._set_casts(self._cast_at_first)
        placeholders = self.graph.find_nodes(op="placeholder")
        for number, tensor in assigned.items():
            pair, copy = (placeholders[number], self._argument(tensor)), ops.aten.copy_.default
            node = self.graph.call_function(copy, pair, name="copy__default")
            node.meta["val"] = fake_of(tensor)
        output = self.graph.output(tuple(nodes))
        output.meta["val"] = tuple(
            [node.meta.get("val") if is_node(node) else node for node in nodes]
        )

    # ---- calls

    def __torch_function__(self, public, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.reason is not None or public.__name__ in _OPEN:
            return NOT_OVERRIDDEN
        with self._guarded():
            parts = self._parts(public, args, kwargs)
        if self.reason is not None:
            return NOT_OVERRIDDEN
        result = public(*args, **kwargs)
        with self._guarded():
            is_of_sizes = public.__name__ == "as_tensor" and has_open(args)
            if type(result) is Varying:
                self._argument(result)  # before its tensor is written to
            elif public.__name__ == "tensor" or is_of_sizes:
                self._constant(public, args, kwargs, result)
            elif parts is not None and (_has_tensor(result) or _writes(public, kwargs)):
                self._record(*parts, result, (args, kwargs))
        return result

    @contextlib.contextmanager
    def _guarded(self):
        """A block in which an error ends the recording, and not the export."""
        try:
            yield
        except Exception as error:
            text = str(error) if isinstance(error, Unknown) else f"{type(error).__name__}: {error}"
            self._give_up(text)

    def _parts(self, public, args, kwargs) -> tuple | None:
        """The call that is recorded, and its arguments with nodes in the place of tensors; None if
        an argument is unknown.
        """
        call = call_of(public, args, kwargs)
        values = (args, kwargs) if call is None else (call.args, call.kwargs)
        try:
            return public, call, (self._argument(values[0]), self._argument(values[1]))
        except Unknown:
            if self.reason is not None or _writes(public, kwargs):
                raise
            return None

    def _record(self, public, call, arguments, result, values):
        tensors = [leaf for leaf in _leaves(values) if isinstance(leaf, Tensor)]
        # the graph has the operators of a Function's forward as those of any other code
        is_tracked = any(tensor.requires_grad for tensor in tensors)
        if is_tracked and mode.current_mode.get() not in (mode.MARK, mode.RULE):
            self._set_grad_mode(is_grad_enabled())
        self._set_casts(mode.casting.get())
        count = 1 if call is None else len(call.schema.returns)
        if call is not None and _fits(call.schema, result):
            target = functools.reduce(getattr, call.full_name.split("."), ops.aten)
        else:
            target, count = public, 1
            arguments = self._argument(values[0]), self._argument(values[1])
        node = self._call(target, *arguments)
        if count > 1 and isinstance(result, Tensor):
            items = [self._call(operator.getitem, (node, number)) for number in range(count)]
            node, *_ = items
        self._note_writes(values)
        self._bind(node, result, list if count == 1 else tuple)

    def _call(self, target, args, kwargs=None):
        """Add a node."""
        name = "sym_size_int" if target is ops.aten.sym_size.int else None
        name = name or getattr(target, "_opname", None)
        node = self.graph.call_function(target, args, kwargs or {}, name=name)
        node.meta.update(self._origin())
        return node

    def _bind(self, node, result, kind=tuple):
        """Note which node the tensors of a result are. kind: that of several in `meta["val"]`."""
        if isinstance(result, Tensor):
            node.meta["val"] = fake_of(result)
            self._know(result, node)
        elif isinstance(result, list | tuple):
            for number, item in enumerate(result):
                if any(isinstance(leaf, Tensor) for leaf in _leaves(item)):
                    self._bind(self._call(operator.getitem, (node, number)), item)
            node.meta["val"] = kind(
                [fake_of(item) if isinstance(item, Tensor) else item for item in result]
            )

    def _constant(self, public, args, kwargs, tensor: Tensor):
        """Record a tensor of numbers that the code makes: PyTorch copies an input."""
        constant = tensor
        if not is_concrete(current(tensor)):
            if any(isinstance(leaf, Tensor) for leaf in _leaves(args)):
                return  # its numbers are not known
            if has_open(args):
                node = self._of_sizes(args[0], tensor, tensor.shape)
                return self._bind(self._call(ops.aten.detach_.default, (node,)), tensor)
            with jax.ensure_compile_time_eval():
                constant = public(*args, **kwargs)
        copied = self._call(ops.aten.lift_fresh_copy.default, (self._lift(constant),))
        copied.meta["val"] = fake_of(tensor)
        self._bind(self._call(ops.aten.detach_.default, (copied,)), tensor)

    def _of_sizes(self, data, tensor: Tensor, shape):
        """The node of a tensor that the code makes of a size, or of lists with sizes."""
        if isinstance(data, list | tuple):
            nodes = [self._of_sizes(item, tensor, shape[1:]) for item in data]
            node = self._call(ops.aten.stack.default, (nodes,))
        else:
            options = {"dtype": tensor.dtype, "device": device("cpu"), "pin_memory": False}
            scalar = (self._argument(data),)
            node = self._call(ops.aten.scalar_tensor.default, scalar, options)
        node.meta["val"] = fake(tuple(shape), tensor.dtype)
        return node

    def _lift(self, tensor: Tensor):
        """A new input of the graph for a tensor of numbers that are known."""
        number = len(self.lifted)
        if not is_concrete(current(tensor)):
            raise Unknown("a tensor comes from code that is no operator of torch")
        with self._inserting_inputs():
            node = self.graph.placeholder(f"c_lifted_tensor_{number}")
        self.lifted[f"lifted_tensor_{number}"] = np.array(current(tensor)._array)
        node.meta["val"] = fake_of(tensor)
        return node

    def _inserting_inputs(self):
        place = self.first_user_input or next(iter(self.graph.nodes), None)
        return self.graph.inserting_before(place)

    # ---- arguments

    def _argument(self, value):
        """A value with nodes in the place of tensors. Raises Unknown for one without a node."""
        if isinstance(value, Tensor):
            return self._node_of(value)
        if is_symbolic(value):
            try:
                return self._symbols.node(value)
            except (LookupError, KeyError):
                raise Unknown(f"the size {value} is that of no argument") from None
        if type(value) is Varying:
            return self._number(value)
        if isinstance(value, list | tuple):
            items = [self._argument(item) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, dict):
            return {key: self._argument(item) for key, item in value.items()}
        if isinstance(value, _PLAIN):
            return value
        raise Unknown(f"an argument is of {type(value).__name__}")

    def _number(self, number: Varying):
        """The node of a number that is computed of the inputs."""
        known = self._numbers.get(id(number))
        if known is None:
            if number.call is None:
                raise Unknown("a number comes from code that is no operator of torch")
            function, operands = number.call
            nodes = tuple(map(self._argument, operands))
            if function is not None:
                known = self._call(function, nodes)
            elif isinstance(operands[0], Tensor):
                known = self._call(ops.aten.item.default, nodes)
            else:
                (known,) = nodes
            self.know_number(number, known)
        return known

    def know_number(self, number: Varying, node):
        """Note the node of a number that is computed of the inputs."""
        self._numbers[id(number)] = node
        self._known.append(number)

    def _node_of(self, tensor: Tensor):
        known = self._nodes.get(id(tensor))
        if known is None:
            known = self._lift(tensor)
            self._know(tensor, known)
        elif self._versions[id(tensor)] != _version_of(tensor):
            self._give_up("a tensor was written to by code that is no operator of torch")
            raise Unknown(self.reason)
        return known

    def _know(self, tensor: Tensor, node):
        self._nodes[id(tensor)] = node
        self._versions[id(tensor)] = _version_of(tensor)
        self._known.append(tensor)

    def _note_writes(self, values):
        """Note the versions of all tensors after a call that has written to an argument."""
        tensors = [leaf for leaf in _leaves(values) if isinstance(leaf, Tensor)]
        known = [tensor for tensor in tensors if id(tensor) in self._versions]
        if any(self._versions[id(tensor)] != _version_of(tensor) for tensor in known):
            tensors = [value for value in self._known if isinstance(value, Tensor)]
            self._versions = {id(tensor): _version_of(tensor) for tensor in tensors}

    def _set_grad_mode(self, wanted: bool):
        """Add a node where the program switches grad mode."""
        if wanted != self._records_grad:
            self._call(grad_mode.set_grad_enabled, (wanted,))
            self._records_grad = wanted

    def _set_casts(self, wanted):
        """Add nodes where the program switches autocast: that of the program's own is left, and the
        wanted one entered.
        """
        if wanted == self._casts:
            return
        while self._autocasts:
            self._call(autocast_mode._exit_autocast, (self._autocasts.pop(),))
        around, inside_of = dict(self._cast_at_first or ()), dict(wanted or ())
        for kind in {**around, **inside_of}:
            if around.get(kind) != inside_of.get(kind):
                dtype = inside_of.get(kind, around.get(kind))
                arguments = kind, dtype, kind in inside_of, None
                self._autocasts.append(self._call(autocast_mode._enter_autocast, arguments))
        self._casts = wanted

    def _give_up(self, reason: str):
        self.reason = self.reason or reason

    # ---- where a node comes from

    def _origin(self) -> dict:
        """The lines of the program, and the modules, of the call under way."""
        lines, modules = [], []
        frame = sys._getframe(2)
        while frame is not None:
            code, values = frame.f_code, frame.f_locals
            module = values.get("self")
            if code.co_name == "forward" and isinstance(module, Module):
                modules.append(module)
            if not is_internal(frame):
                line = linecache.getline(code.co_filename, frame.f_lineno).strip()
                head = f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'
                lines.append(f"{head}\n    {line}")
            elif values.get("traced") is not None and code.co_name == "recorded":
                break
            frame = frame.f_back
        stack = {}
        for module in reversed(modules):
            path = self._paths.get(id(module))
            if path is not None:
                stack[f"L__self__{path}" if path else "L__self__"] = (path, _kind(module))
        return {"stack_trace": "\n  ".join(reversed(lines)), "nn_module_stack": stack}


def _version_of(tensor: Tensor) -> int:
    """The number of writes to a tensor; inference tensors do not count them."""
    return 0 if tensor.is_inference() else tensor._version


def _kind(module) -> str:
    kind = type(module)
    is_layer = kind.__module__.startswith("jaxgrad.nn.")
    return f"{'torch.nn' if is_layer else kind.__module__}.{kind.__qualname__}"


def _leaves(value):
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves([*value.values()])
    else:
        yield value


def _has_tensor(value) -> bool:
    return any(isinstance(leaf, Tensor) for leaf in _leaves(value))


def _fits(schema, result) -> bool:
    """Whether a result is one of the returns of a schema, or the first of them."""
    count = len(schema.returns)
    if isinstance(result, Tensor):
        return count > 0 and not schema.returns[0].type.list
    if count == 1:
        return schema.returns[0].type.list == isinstance(result, list | tuple)
    return isinstance(result, list | tuple) and len(result) == count


def _writes(public, kwargs) -> bool:
    name = public.__name__
    is_in_place = name.endswith("_") and not name.endswith("__")
    return is_in_place or kwargs.get("out") is not None


def is_node(value) -> bool:
    """Whether a value is a node, and no constant."""
    return hasattr(value, "meta") and hasattr(value, "op")
