"""`jaxgrad.summary`: a table of a model's layers, with their shapes, parameters and costs."""

from __future__ import annotations

import copy
import statistics
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy

from ..autograd._engine.observers import Watch
from ..compiled.jit import jit
from ..compiled.stance import set_stance
from ..core import dtypes as all_dtypes
from ..core.pytorch_tensors import type_name
from ..frontend import factories, random
from ..frontend.tensor_data import as_tensor
from ..nn.module import Module
from ..nn.parameter import is_lazy
from ..tape import mode as modes
from ..tape.pytree import flatten
from ..tape.tensor import Tensor
from . import summary_cost, summary_text
from .summary_rows import Layer, Recorder, complete, tensors_in

RUNS = 5  # the time of a layer is their median

RAISED = "summary: {} raised {}: {}"
HINT = (
    "\nThis forward pass ran without numbers. If it needs those of a tensor, as in an `if`, pass "
    "tensors with data in place of sizes. If an input must have another dtype, pass dtypes=[...]"
)


class ModelSummary:
    """What `jaxgrad.summary` returns; prints as a table, which notebooks show as HTML.

    layers: a row for each call of a module, and for each module that was not called; a list.
    input_size: the shape of the first tensor among the inputs, None without inputs.
    total_params, trainable_params: the numbers of elements of all parameters, and of those that
        require grad. A parameter that several modules share counts once.
    total_mult_adds: the multiply-adds of the forward pass.
    total_input, total_output_bytes, total_param_bytes: the bytes of the inputs; of the results of
        layers with parameters, twice, for their gradients; of the parameters.
    """

    def __init__(self, layers: list[Layer], settings: summary_text.Settings):
        self.layers, self.settings = layers, settings
        root = layers[0]
        self.input_size: list[int] | None = root.input_size
        self.total_params: int = root.num_params
        self.trainable_params: int = root.trainable_params
        self.total_mult_adds: int = root.mult_adds
        self.total_input: int = root.input_bytes
        self.total_param_bytes: int = sum(layer.own_bytes for layer in layers)
        self.total_output_bytes: int = 2 * sum(
            layer.output_bytes for layer in layers if layer.is_leaf and layer.has_parameters
        )

    @property
    def has_run(self) -> bool:
        """Whether there was an input, and so a forward pass."""
        return self.layers[0].is_called

    def figures(self):
        """The sums below the table: groups of pairs of a description and a number."""
        frozen = self.total_params - self.trainable_params
        counts = [
            ("Total params", f"{self.total_params:,}"),
            ("Trainable params", f"{self.trainable_params:,}"),
            ("Non-trainable params", f"{frozen:,}"),
        ]
        if not self.has_run:
            return [counts]
        sizes = {
            "Input size": self.total_input,
            "Forward/backward pass size": self.total_output_bytes,
            "Params size": self.total_param_bytes,
        }
        sizes["Estimated Total Size"] = sum(sizes.values())
        counts.append(_in_units("Total mult-adds", self.total_mult_adds))
        return [counts, [(f"{what} (MB)", f"{n / 1e6:,.2f}") for what, n in sizes.items()]]

    def __str__(self):
        return summary_text.text(self)

    __repr__ = __str__

    def _repr_html_(self):
        return summary_text.as_html(self)


def _in_units(what: str, count: int) -> tuple[str, str]:
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if count >= size:
            return f"{what} ({unit})", f"{count / size:,.2f}"
    return what, f"{count:,}"


def summary(
    model: Module,
    input: Any = None,
    *,
    input_size=None,
    input_data=None,
    dtypes: Sequence | None = None,
    depth: int = 3,
    col_names: Iterable[str] | None = None,
    row_settings: Iterable[str] = ("depth",),
    col_width: int = 0,
    device=None,
    mode: str | None = "eval",
    verbose: int = 0,
    **kwargs,
) -> ModelSummary:
    """Return a table of a model's layers, with their shapes, numbers of parameters and costs, as
    the package torchinfo gives it.

    The forward pass runs on shapes alone: it computes nothing and needs no memory, so models of any
    size can be summarized, also on the device meta. Model, buffers, gradients and random state stay
    as they are. If that raises, and the inputs have data, a copy of the model runs on them.

    model: a Module, compiled or not, also a lazy one.
    input: the arguments of the forward pass: a tensor, a size such as `(1, 3, 32, 32)`, a sequence
        with one of these for each argument, or a dict of them by name. An array of numpy or JAX and
        a `jax.ShapeDtypeStruct` stand for a tensor. Without it only parameters are shown.
    input_size, input_data: other names of `input`, as in torchinfo. kwargs: further arguments.
    dtypes: the dtypes of inputs that are given by sizes, in order; by default that of the model's
        parameters.
    depth: rows deeper than this are left out; the row around them then shows their sums.
    col_names: the columns: "input_size", "output_size", "num_params", "params_percent",
        "kernel_size", "mult_adds", "trainable" and "time"; by default "output_size" and
        "num_params". "time" runs a copy of the model, uncompiled, on the inputs, or on random
        numbers of their sizes, and shows the median of 5 runs.
    row_settings: what names show: "depth", "var_names" and "ascii_only".
    col_width: the least width of a column.
    device: taken and not used, for code of torchinfo: the model stays where it is.
    mode: "eval" or "train" for the forward pass; None leaves each module in its mode.
    verbose: 1 also prints the table; 2 prints it with a row for each parameter.

    "Param #" shows what a row has beside the rows inside of it, in parentheses if all of it is
    frozen. A module that is called again is "(recursive)", one whose parameters an earlier module
    has is "(shared)"; a module that was not called has no output. Multiply-adds are those of matrix
    products and convolutions, also outside of modules, and the additions of their biases. Operators
    whose results are not used do not count, and a `while_loop` counts once. torchinfo counts a
    Linear once for each sample, whatever the other dimensions, and the elements of norms and
    embeddings.

    Raises TypeError for a model that is no Module; ValueError for an unknown column, setting or
    mode, for a column that needs an input without one, and for "time" on the device meta;
    RuntimeError, with the layer, if the forward pass raises.

    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(4, 3), jaxgrad.nn.ReLU())
    >>> jaxgrad.summary(model, (2, 4))
    =============================================
    Layer (type:depth-idx)  Output Shape  Param #
    =============================================
    Sequential              [2, 3]        --
    ├─Linear: 1-1           [2, 3]        15
    ├─ReLU: 1-2             [2, 3]        --
    =============================================
    Total params: 15
    Trainable params: 15
    Non-trainable params: 0
    Total mult-adds: 30
    =============================================
    Input size (MB): 0.00
    Forward/backward pass size (MB): 0.00
    Params size (MB): 0.00
    Estimated Total Size (MB): 0.00
    =============================================
    >>> jaxgrad.summary(model, (2, 4)).total_mult_adds
    30
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary() takes a Module, but got {type_name(model)}")
    if modes.scope.get() is not None:
        raise RuntimeError(
            "summary() cannot be called in a function that jaxgrad.jit is tracing: call it outside"
        )
    specs = [spec for spec in (input, input_size, input_data) if spec is not None]
    if len(specs) > 1:
        raise ValueError("pass one of input, input_size and input_data")
    has_input = bool(specs or kwargs)
    settings = _settings(has_input, depth, col_names, row_settings, col_width, verbose)
    if mode not in ("eval", "train", None):
        raise ValueError(f'summary: mode is {mode!r}, must be "eval", "train" or None')
    if has_input:
        inputs = _inputs(specs[0] if specs else (), kwargs, dtypes, model)
        layers = _Forward(model, *inputs, mode).layers("time" in settings.columns)
    else:
        layers = complete(Layer(model, "", None))
    table = ModelSummary(layers, settings)
    if verbose:
        print(table)
    return table


def _settings(has_input, depth, columns, rows, width, verbose) -> summary_text.Settings:
    default = ("output_size", "num_params") if has_input else ("num_params",)
    columns, rows = tuple(default if columns is None else columns), tuple(rows)
    for name in columns:
        if name not in summary_text.COLUMNS:
            known = ", ".join(map(repr, summary_text.COLUMNS))
            raise ValueError(f"summary: {name!r} is no column, use {known}")
        if summary_text.COLUMNS[name].needs_input and not has_input:
            raise ValueError(f"summary: the column {name!r} needs an input")
    for name in rows:
        if name not in summary_text.ROW_SETTINGS:
            known = ", ".join(map(repr, summary_text.ROW_SETTINGS))
            raise ValueError(f"summary: {name!r} is no row setting, use {known}")
    if verbose not in (0, 1, 2):
        raise ValueError(f"summary: verbose is {verbose!r}, must be 0, 1 or 2")
    return summary_text.Settings(depth, columns, rows, width, verbose == 2)


# ---- the inputs


def _inputs(spec, kwargs, dtypes, model) -> tuple[tuple, dict]:
    """The arguments of the forward pass, with a `jax.ShapeDtypeStruct` for each size."""
    kinds = iter(dtypes or ())
    parameter_dtypes = (
        parameter.dtype for parameter in model.parameters() if parameter.dtype.is_floating_point
    )
    default = next(parameter_dtypes, all_dtypes.get_default_dtype())

    def converted(value):
        if _is_size(value):
            return jax.ShapeDtypeStruct(tuple(value), next(kinds, default).numpy)
        if isinstance(value, Mapping):
            return {name: converted(entry) for name, entry in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(converted, value))
        return as_tensor(value) if isinstance(value, numpy.ndarray | jax.Array) else value

    if isinstance(spec, Mapping):
        return (), {**converted(spec), **kwargs}
    is_several = isinstance(spec, Sequence) and not _is_size(spec)
    return tuple(map(converted, spec if is_several else (spec,))), kwargs


def _is_size(value) -> bool:
    is_sequence = isinstance(value, list | tuple) and len(value) > 0
    return is_sequence and all(type(extent) is int for extent in value)


# ---- the forward pass


class _Forward:
    """A forward pass of a model, which leaves the model as it was."""

    def __init__(self, model: Module, args: tuple, kwargs: dict, mode: str | None):
        self.model, self.mode = model, mode
        self.leaves, self.structure = flatten((args, kwargs))
        self.places = [at for at, leaf in enumerate(self.leaves) if _is_input(leaf)]
        self.tensors = [self.leaves[at] for at in self.places]
        held = [*model.parameters(), *model.buffers()]
        self.is_lazy = any(map(is_lazy, held))
        inside = [*self.tensors, *(tensor for tensor in held if not is_lazy(tensor))]
        self.has_data = all(isinstance(tensor, Tensor) and not tensor.is_meta for tensor in inside)
        self.is_meta = any(isinstance(tensor, Tensor) and tensor.is_meta for tensor in inside)

    def layers(self, is_timed: bool) -> list[Layer]:
        """The rows of the summary; is_timed: with the times of the calls."""
        if is_timed and self.is_meta:
            raise ValueError("summary: the device meta has no data, so no call can be timed")
        try:
            recorder = self.traced()
        except Exception:
            if not self.has_data:
                raise
            recorder = self.run()
        if is_timed:
            self.measure(recorder.calls)
        return complete(recorder.root)

    def traced(self) -> Recorder:
        """Trace the model; a lazy one is replaced by a copy on the device meta."""
        model, tensors = self.model, self.tensors
        if self.is_lazy:
            model = self.initialized()
        if self.is_lazy or self.is_meta:
            tensors = [_struct(tensor) for tensor in tensors]

        def forward(*arguments):
            return list(tensors_in(self.call(model, arguments)))

        recorder = Recorder(model)
        with _quietly(), _in_mode(model, self.mode), recorder, _with_layer(recorder, HINT):
            jaxpr = jit(forward).trace(*tensors).jaxpr
        for number, count in summary_cost.by_layer(jaxpr.jaxpr).items():
            recorder.calls[number].own_mult_adds = count
        return recorder

    def call(self, model, arguments):
        """Call a model with these arguments in the places of the tensors."""
        leaves = list(self.leaves)
        for at, argument in zip(self.places, arguments, strict=True):
            leaves[at] = argument
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        return model(*args, **kwargs)

    def initialized(self) -> Module:
        """A copy of a lazy model on the device meta, with parameters."""
        model = copy.deepcopy(self.model).to("meta")
        arguments = []
        for struct in map(_struct, self.tensors):
            kind = all_dtypes.from_numpy(struct.dtype)
            arguments.append(factories.empty(struct.shape, dtype=kind, device="meta"))
        with _quietly(), _in_mode(model, self.mode):
            self.call(model, arguments)
        return copy.deepcopy(model)  # its tensors share no memory

    def run(self) -> Recorder:
        """Run a copy of the model."""
        model = copy.deepcopy(self.model)
        with _quietly(), _in_mode(model, self.mode), Recorder(model) as recorder:
            costs = _Costs(recorder)
            costs.start()
            try:
                with _with_layer(recorder):
                    self.call(model, self.tensors)
            finally:
                costs.stop()
        return recorder

    def measure(self, calls: list[Layer]):
        """Set the times of calls, those of a copy of the model."""
        model = copy.deepcopy(self.model)
        arguments = list(map(_data, self.tensors))
        times = []
        with _quietly(), _in_mode(model, self.mode), Recorder(model, True) as recorder:
            for _ in range(1 + RUNS):
                self.call(model, arguments)
                times.append([row.time for row in recorder.calls])
        if all(len(durations) == len(calls) for durations in times):
            for row, *several in zip(calls, *times[1:], strict=True):
                row.time = statistics.median(several)


class _Costs(Watch):
    """Adds the multiply-adds of each operator to those of the layer that runs it."""

    def __init__(self, recorder: Recorder):
        super().__init__()
        self.recorder, self.thread = recorder, threading.get_ident()

    def wanted(self) -> bool:
        return False  # of backward passes

    def kernel(self, program, kernel, *arrays):
        if self.recorder.open and threading.get_ident() == self.thread:
            self.recorder.open[-1].own_mult_adds += summary_cost.of_program(program)
        return kernel(*arrays)


def _is_input(leaf) -> bool:
    return isinstance(leaf, Tensor | jax.ShapeDtypeStruct)


def _struct(tensor) -> jax.ShapeDtypeStruct:
    if isinstance(tensor, jax.ShapeDtypeStruct):
        return tensor
    return jax.ShapeDtypeStruct(tuple(tensor.shape), tensor.dtype.numpy)


def _data(tensor) -> Tensor:
    """A tensor with data: the given one, or one of a struct with numbers from 0 to 1, or zeros."""
    if isinstance(tensor, Tensor):
        return tensor
    kind = all_dtypes.from_numpy(tensor.dtype)
    if not (kind.is_floating_point or kind.is_complex):
        return factories.zeros(tuple(tensor.shape), dtype=kind)
    return as_tensor(numpy.random.default_rng(0).random(tensor.shape), dtype=kind)


@contextmanager
def _in_mode(model: Module, mode: str | None):
    """Set the modes of all modules in the block, unknown to compiled programs."""
    owners = [vars(module) for module in model.modules() if "training" in vars(module)]
    modes = [attributes["training"] for attributes in owners]
    try:
        for attributes in owners if mode is not None else ():
            attributes["training"] = mode == "train"
        yield
    finally:
        for attributes, training in zip(owners, modes, strict=True):
            attributes["training"] = training


@contextmanager
def _quietly():
    """Run compiled modules uncompiled, show no warnings, and keep the random state."""
    state = random.get_rng_state()
    try:
        with set_stance("force_eager"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.set_rng_state(state)


@contextmanager
def _with_layer(recorder: Recorder, hint: str = ""):
    """Name the layer in which an error arises. hint: what follows."""
    try:
        yield
    except Exception as error:
        row = recorder.failed
        where = "the model" if row is None else f"{row.type_name} {row.path}".rstrip()
        raise RuntimeError(RAISED.format(where, type(error).__name__, error) + hint) from error
