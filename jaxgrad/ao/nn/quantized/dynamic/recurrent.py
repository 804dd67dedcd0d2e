"""Recurrent layers that quantize their input and their state at each step."""

from __future__ import annotations

from typing import NamedTuple

from ..... import nn, ops
from .....autograd.grad_mode import no_grad
from .....core import dtypes, named_dtypes
from .....frontend.factories import zeros
from .....functions.quantization import quantize_per_tensor
from .....functions.quantized_kernels import PackedParams
from .....names.not_provided import names_of
from .....nn.utils.rnn import PackedSequence
from ..linear import dynamic_weight, packed, product


class CellParams(NamedTuple):
    """The weights and biases of a cell: those of the input, and those of the state."""

    ih: PackedParams
    hh: PackedParams


def _lstm(gates_of_input, gates_of_state, state):
    i, f, g, o = (gates_of_input + gates_of_state).chunk(4, -1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru(gates_of_input, gates_of_state, state):
    (r, z, n), (hr, hz, hn) = gates_of_input.chunk(3, -1), gates_of_state.chunk(3, -1)
    n = (n + (r + hr).sigmoid() * hn).tanh()
    z = (z + hz).sigmoid()
    return ((state[0] - n) * z + n,)


_GATES = {"LSTM": (4, _lstm), "GRU": (3, _gru)}


@no_grad()
def _run(params, step, inputs, sizes, state, is_reverse):
    """One direction of a layer: the outputs of all rows, and the last state.

    inputs: the rows of all steps, one step after the other; sizes: how many examples every step
    has, those with the most steps first.
    """
    gates = product(inputs, params.ih).split(sizes)  # of all steps, which have one range
    outputs = [None] * len(sizes)
    for place in reversed(range(len(sizes))) if is_reverse else range(len(sizes)):
        running = tuple(part[: sizes[place]] for part in state)
        after = step(gates[place], product(running[0], params.hh), running)
        outputs[place] = after[0]
        ended = (part[sizes[place] :] for part in state)
        state = tuple(ops.cat(parts) for parts in zip(after, ended, strict=True))
    return ops.cat(outputs), state


class PackedParameter(nn.Module):
    """The parameters of a cell, in `param`."""

    def __init__(self, param):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = tuple(part.unpack() for part in self.param)

    def _load_from_state_dict(self, state_dict, prefix, *others):
        parts = state_dict.pop(prefix + "param")
        self.param = CellParams(*(packed(*part) for part in parts))
        super()._load_from_state_dict(state_dict, prefix, *others)


class _Layers(nn.Module):
    """The base of `LSTM` and `GRU`. Arguments: those of the layers of `nn`, and the dtype of the
    weights.
    """

    _version, mode = 2, "LSTM"
    _has_cell = True

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        dtype=named_dtypes.qint8,
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.dtype, self.version = bidirectional, dtype, 2
        self.training = False
        gates, _ = _GATES[self.mode]
        ends = [input_size] + [hidden_size * (1 + bidirectional)] * (num_layers - 1)
        self._all_weight_values = nn.ModuleList(
            PackedParameter(
                CellParams(
                    *(_empty(gates * hidden_size, extent, dtype) for extent in (end, hidden_size))
                )
            )
            for end in ends
            for _ in range(1 + bidirectional)
        )

    def _get_name(self):
        return f"DynamicQuantized{self.mode}"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        for name, value in {**usual, "bidirectional": False}.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            sizes = batch_sizes.tolist()
            outputs, state = self._layers(data, sizes, self._state(hx, data, sizes[0], order))
            outputs = PackedSequence(outputs, batch_sizes, order, back)
        else:
            if input.ndim != 3:
                raise RuntimeError(f"input must have 3 dimensions, got {input.ndim}")
            steps = input.transpose(0, 1) if self.batch_first else input
            count, batch = steps.shape[:2]
            state = self._state(hx, steps, batch, None)
            outputs, state = self._layers(steps.flatten(0, 1), [batch] * count, state)
            outputs, back = outputs.unflatten(0, (count, batch)), None
            outputs = outputs.transpose(0, 1) if self.batch_first else outputs
        if back is not None:
            state = tuple(part.index_select(1, back) for part in state)
        return outputs, state if self._has_cell else state[0]

    def _state(self, hx, inputs, batch, order):
        """The first state, with the examples in the order of a packed sequence."""
        if inputs.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {inputs.shape[-1]}"
            )
        shape = (self.num_layers * (1 + self.bidirectional), batch, self.hidden_size)
        if hx is None:
            return (zeros(shape, dtype=inputs.dtype),) * (1 + self._has_cell)
        state = tuple(hx) if self._has_cell else (hx,)
        for part in state:
            if part.shape != shape:
                raise RuntimeError(f"Expected hidden size {shape}, got {list(part.shape)}")
        return state if order is None else tuple(part.index_select(1, order) for part in state)

    def _layers(self, inputs, sizes, state):
        _, step = _GATES[self.mode]
        finals = []
        for layer in range(self.num_layers):
            directions = []
            for direction in range(1 + self.bidirectional):
                place = layer * (1 + self.bidirectional) + direction
                start = tuple(part[place] for part in state)
                params = self._all_weight_values[place].param
                outputs, last = _run(params, step, inputs, sizes, start, direction == 1)
                directions.append(outputs)
                finals.append(last)
            inputs = ops.cat(directions, -1)
        return inputs, tuple(ops.stack(parts) for parts in zip(*finals, strict=True))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of `nn.LSTM` or `nn.GRU` with a `qconfig`."""
        if type(mod) is not getattr(nn, cls.mode):
            raise AssertionError(
                "nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU"
            )
        if not mod.bias:
            raise AssertionError("a layer without bias is not supported: mod.bias must be True")
        names = ("num_layers", "bias", "batch_first", "dropout", "bidirectional")
        options = {name: getattr(mod, name) for name in names}
        dtype = mod.qconfig.weight().dtype
        layer = cls(mod.input_size, mod.hidden_size, **options, dtype=dtype)
        for place, parameter in enumerate(layer._all_weight_values):
            number, direction = divmod(place, 1 + mod.bidirectional)
            end = f"_l{number}" + "_reverse" * direction
            parameter.param = CellParams(
                *(_of_float(mod, kind, end) for kind in CellParams._fields)
            )
        return layer

    def get_weight(self) -> dict:
        """The weights, by the names of the layer of `nn`."""
        return self._named("weight", 0)

    def get_bias(self) -> dict:
        """The biases, by the names of the layer of `nn`."""
        return self._named("bias", 1)

    def _named(self, what, part):
        result = {}
        for place, parameter in enumerate(self._all_weight_values):
            number, direction = divmod(place, 1 + self.bidirectional)
            for kind, params in zip(CellParams._fields, parameter.param, strict=True):
                name = f"{what}_{kind}_l{number}" + "_reverse" * direction
                result[name] = params.unpack()[part]
        return result


def _of_float(mod, kind, end=""):
    weight, bias = (getattr(mod, f"{name}_{kind}{end}") for name in ("weight", "bias"))
    return packed(dynamic_weight(weight, mod.qconfig), bias)


def _empty(rows, columns, dtype):
    weight = zeros(rows, columns)
    if dtype is named_dtypes.qint8:
        weight = quantize_per_tensor(weight, 0.1, 0, dtype)
    elif dtype is not dtypes.float16:
        raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")
    return packed(weight, zeros(rows))


class LSTM(_Layers):
    """`nn.LSTM` with weights of 8 bits.

    Arguments, inputs and results: those of `nn.LSTM`; weights have the dtype `dtype`.
    """


class GRU(_Layers):
    """`nn.GRU` with weights of 8 bits.

    Arguments, inputs and results: those of `nn.GRU`; weights have the dtype `dtype`.
    """

    mode, _has_cell = "GRU", False


class _Cell(nn.Module):
    """The base of cells. Arguments: those of the cells of `nn`, and the dtype of the weights."""

    _gates, _has_cell = 1, False

    def __init__(self, input_size, hidden_size, bias=True, dtype=named_dtypes.qint8):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_dtype = dtype
        rows = self._gates * hidden_size
        self._param = CellParams(*(_empty(rows, n, dtype) for n in (input_size, hidden_size)))

    def _get_name(self):
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"

    def forward(self, input, hx=None):
        if hx is None:
            hx = (zeros(len(input), self.hidden_size, dtype=input.dtype),) * (1 + self._has_cell)
        state = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
        with no_grad():
            gates = product(input, self._param.ih), product(state[0], self._param.hh)
            after = self._step(*gates, state)
        return after if self._has_cell else after[0]

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The cell of one of `nn` with a `qconfig`."""
        layer = cls(mod.input_size, mod.hidden_size, mod.bias, mod.qconfig.weight().dtype)
        layer._param = CellParams(*(_of_float(mod, kind) for kind in CellParams._fields))
        if hasattr(mod, "nonlinearity"):
            layer.nonlinearity = mod.nonlinearity
        return layer


class LSTMCell(_Cell):
    """`nn.LSTMCell` with weights of 8 bits."""

    _gates, _has_cell, _step = 4, True, staticmethod(_lstm)


class GRUCell(_Cell):
    """`nn.GRUCell` with weights of 8 bits."""

    _gates, _step = 3, staticmethod(_gru)


class RNNCell(_Cell):
    """`nn.RNNCell` with weights of 8 bits."""

    nonlinearity = "tanh"

    def _step(self, gates_of_input, gates_of_state, state):
        return (getattr(gates_of_input + gates_of_state, self.nonlinearity)(),)


__getattr__, __dir__ = names_of(__name__)
