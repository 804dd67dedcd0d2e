"""The rows of a summary: the calls of a model's modules, as they are recorded."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence

import jax
import numpy

from ..frontend.settings import synchronize
from ..nn.module import Module
from ..nn.parameter import is_lazy
from ..tape.tensor import Tensor
from . import summary_cost

# a module calls what is under this name in place of its `forward`; no counter of changes sees it
_CALL = "_compiled_call_impl"


class Layer:
    """A row of a summary: a call of a module, or a module that was not called.

    name: the attribute that holds the module; path: the names from the model on, joined by points;
        both are empty for the model.
    type_name: the class of the module.
    depth: how many rows it is inside of; index: its number among the rows of this depth.
    children: the rows inside of it.
    has_parameters: whether the module, or one inside of it, has any.
    is_called: whether the forward pass called it. is_recursive: whether an earlier row has the same
        module, and thus its parameters.
    input_size, output_size: the shape of the first tensor among the arguments and in the result, as
        a list; None if there is none.
    input_bytes, output_bytes: the bytes of all of them.
    parameters: the shapes of the parameters that the module itself has, by name.
    own_params, own_trainable: the numbers of elements of those that no earlier row has.
    own_mult_adds: the multiply-adds of the call, without those of the rows inside of it.
    kernel_size: the attribute of this name, None if the module has none.
    time: seconds for one call, None if they were not measured.
    """

    def __init__(self, module: Module, path: str, parent: Layer | None):
        self.module: Module | None = module  # until all rows are there
        self.path, self.parent = path, parent
        self.name, self.type_name = path.rpartition(".")[2], module._get_name()
        self.depth, self.index = 0 if parent is None else parent.depth + 1, 0
        self.children: list[Layer] = []
        self.is_called = self.is_recursive = False
        self.input_size = self.output_size = None
        self.input_bytes = self.output_bytes = 0
        self.parameters: dict[str, list[int]] = {}
        self.own_params = self.own_trainable = self.own_bytes = self.own_mult_adds = 0
        self.has_parameters = False  # itself or a module inside of it
        self.kernel_size = getattr(module, "kernel_size", None)
        self.time: float | None = None
        if parent is not None:
            parent.children.append(self)

    def __repr__(self):
        return f"<{self.type_name} {self.path or 'model'}: {self.num_params:,} parameters>"

    @property
    def is_leaf(self) -> bool:
        """Whether there is no row inside of it."""
        return not self.children

    def within(self) -> list[Layer]:
        """This row and all rows inside of it, in order."""
        return [self, *(row for child in self.children for row in child.within())]

    @property
    def num_params(self) -> int:
        """The number of elements of the parameters that no earlier row has."""
        return sum(row.own_params for row in self.within())

    @property
    def trainable_params(self) -> int:
        """The part of `num_params` that requires grad."""
        return sum(row.own_trainable for row in self.within())

    @property
    def mult_adds(self) -> int:
        """The multiply-adds of the call."""
        return sum(row.own_mult_adds for row in self.within())

    def count_params(self, seen: set):
        """Count the module's own parameters; seen: those of the rows before, to which it adds."""
        self.has_parameters = next(self.module.parameters(), None) is not None
        for name, parameter in self.module._parameters.items():
            if parameter is None or is_lazy(parameter):
                continue
            self.parameters[name] = list(parameter.shape)
            if id(parameter) not in seen:
                seen.add(id(parameter))
                self.own_params += parameter.numel()
                self.own_trainable += parameter.numel() if parameter.requires_grad else 0
                self.own_bytes += parameter.numel() * parameter.element_size()


def tensors_in(value):
    """Yield the tensors of a tensor, or of nested sequences and dicts, in order."""
    if isinstance(value, Tensor | jax.ShapeDtypeStruct):
        yield value
    elif isinstance(value, Mapping):
        for element in value.values():
            yield from tensors_in(element)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for element in value:
            yield from tensors_in(element)


def size_and_bytes(value) -> tuple[list[int] | None, int]:
    """The shape of the first tensor in a value, and the bytes of all."""
    tensors = [tensor for tensor in tensors_in(value) if not is_lazy(tensor)]
    total = sum(_nbytes(tensor) for tensor in tensors)
    return (list(tensors[0].shape) if tensors else None), total


def _nbytes(tensor) -> int:
    if isinstance(tensor, jax.ShapeDtypeStruct):
        return tensor.size * numpy.dtype(tensor.dtype).itemsize
    return tensor.numel() * tensor.element_size()


class Recorder:
    """Records the calls of a model's modules inside of its `with` block.

    is_timed: whether to measure how long a call takes until its results are computed.
    """

    def __init__(self, model: Module, is_timed: bool = False):
        self.model, self.is_timed = model, is_timed
        self.paths = {module: path for path, module in model.named_modules()}
        self.start()

    def start(self):
        """Forget the rows."""
        self.root: Layer | None = None
        self.calls: list[Layer] = []  # in the order of the calls
        self.open: list[Layer] = []
        self.failed: Layer | None = None  # the innermost call that an error has left

    def __enter__(self):
        self.replaced = [(vars(module), vars(module).get(_CALL)) for module in self.paths]
        for module in self.paths:
            vars(module)[_CALL] = functools.partial(self.call, module)
        return self

    def __exit__(self, *_):
        for attributes, call in self.replaced:
            del attributes[_CALL]
            if call is not None:
                attributes[_CALL] = call

    def call(self, module, *args, **kwargs):
        """Call a module, uncompiled, and record it."""
        if module is self.model and not self.open:
            self.start()
        row = self.row(module)
        row.is_called = True
        row.input_size, row.input_bytes = size_and_bytes((args, kwargs))
        self.calls.append(row)
        self.open.append(row)
        begun = time.perf_counter()
        try:
            with jax.named_scope(summary_cost.tag(len(self.calls) - 1)):
                output = module._call_impl(*args, **kwargs)
        except Exception:
            self.failed = self.failed or row
            raise
        finally:
            self.open.pop()
        self.failed = None
        if self.is_timed:
            synchronize()
            row.time = time.perf_counter() - begun
        row.output_size, row.output_bytes = size_and_bytes(output)
        return output

    def row(self, module) -> Layer:
        """A new row, inside of that of the call which is running."""
        path = self.paths[module]
        if not self.open:
            row = Layer(module, path, None)
            self.root = self.root or row
            return row
        parent = self.open[-1]
        between = path[len(parent.path) :].strip(".").split(".")[:-1]
        if not _is_below(path, parent.path):
            between = []  # a module from elsewhere in the model
        for name in between:
            parent = self.container(parent, name)
        return Layer(module, path, parent)

    def container(self, parent: Layer, name: str) -> Layer:
        """The row of a module that holds others and is not called itself, such as a ModuleList."""
        path = f"{parent.path}.{name}".strip(".")
        for child in parent.children:
            if child.path == path:
                return child
        return Layer(self.model.get_submodule(path), path, parent)


def _is_below(path: str, parent: str) -> bool:
    return not parent or path.startswith(f"{parent}.")


def complete(root: Layer) -> list[Layer]:
    """Add rows for the modules that were not called, and count the parameters of all rows; returns
    them in order.
    """
    there = {id(row.module) for row in root.within()}
    first = {}
    for row in root.within():
        row.is_recursive = first.setdefault(id(row.module), row) is not row
    for row in list(first.values()):
        _add_uncalled(row, there)
    rows, seen, counts = root.within(), set(), {}
    for row in rows:
        counts[row.depth] = row.index = counts.get(row.depth, 0) + 1
        row.count_params(seen)
    for row in rows:
        row.module = None  # a summary keeps no model alive
    return rows


def _add_uncalled(row: Layer, there: set[int]):
    for name, module in row.module.named_children():
        if id(module) not in there:
            there.add(id(module))
            _add_uncalled(Layer(module, f"{row.path}.{name}".strip("."), row), there)
