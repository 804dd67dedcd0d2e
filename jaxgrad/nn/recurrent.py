"""Recurrent layers over whole sequences: RNN, LSTM and GRU."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

from ..core import dtypes
from ..core.device import DeviceLike
from ..core.tracebacks import users_stacklevel
from ..frontend import factories
from ..frontend.array_creation import along
from ..functions import recurrent
from ..tape.mode import casting
from ..tape.tensor import Tensor
from . import init
from .module import Module
from .parameter import new_parameter
from .utils.rnn import PackedSequence, batch_of

_FUNCTIONS = {
    "LSTM": recurrent.lstm,
    "GRU": recurrent.gru,
    "RNN_TANH": recurrent.rnn_tanh,
    "RNN_RELU": recurrent.rnn_relu,
}
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _check_arguments(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size):
    is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            f"being zeroed, but it is {dropout!r}"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=users_stacklevel(),
        )
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
            )
    sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
    for name, value in sizes.items():
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNNBase(Module):
    """The base class of `RNN`, `LSTM` and `GRU`: weights, checks of arguments, and `forward`.

    mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU". The other arguments are those of `LSTM`. Raises
    TypeError and ValueError for arguments that do not fit.

    >>> layer = jaxgrad.nn.RNNBase("GRU", 3, 4, bidirectional=True)
    >>> list(layer.state_dict())[4:6]
    ['weight_ih_l0_reverse', 'weight_hh_l0_reverse']
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        _check_arguments(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.proj_size, self._all_weights = proj_size, []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                names = self._add_weights(layer, suffix, device, dtype)
                self._all_weights.append(names)
        self.reset_parameters()

    def _add_weights(self, layer, suffix, device, dtype):
        """Make the weights of one layer in one direction, and return their names."""
        rows, outputs = _GATES[self.mode] * self.hidden_size, self._outputs
        width = self._directions * outputs if layer else self.input_size
        shapes = {"weight_ih": (rows, width), "weight_hh": (rows, outputs)}
        if self.bias:
            # two biases, of which most modes need one, as PyTorch has them
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        weights = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
        for name, shape in weights.items():
            setattr(self, name, new_parameter(shape, device, dtype))
        return list(weights)

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    @property
    def _outputs(self):
        """The size of the hidden states."""
        return self.proj_size or self.hidden_size

    def __getstate__(self):
        weights = {"_flat_weights_names": self._flat_weights_names}
        return super().__getstate__() | weights | {"_flat_weights": self._flat_weights}

    def __setstate__(self, state):
        state = {name: value for name, value in state.items() if name[:12] != "_flat_weight"}
        super().__setstate__(state)

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list:
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: the weights of every layer are read where they are."""

    def reset_parameters(self) -> None:
        """Draw all weights again from U(-b, b), `b = 1 / sqrt(hidden_size)`."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # ---- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise ValueError or RuntimeError unless `input` has the dtype and the shape."""
        wanted = self._flat_weights[0].dtype
        if input.dtype is not wanted and casting.get() is None:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({wanted}). Convert "
                f"input: input.to({wanted}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Return the shape of the hidden states: (layers * directions, batch, outputs)."""
        return self.num_layers * self._directions, self._batch(input, batch_sizes), self._outputs

    def _batch(self, input, batch_sizes):
        if batch_sizes is not None:
            return batch_of(PackedSequence(input, batch_sizes))
        return input.size(0 if self.batch_first else 1)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: Sequence[int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise RuntimeError unless a state has the shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(
        self, input: Tensor, hidden: Tensor | tuple[Tensor, Tensor], batch_sizes: Tensor | None
    ) -> None:
        """Raise ValueError or RuntimeError unless input and states fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return the states in the order of `permutation`; as they are for None."""
        return hx if permutation is None else hx.index_select(1, along(permutation, hx))

    # ---- the call

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._of_packed(input, hx)
        kind = self.mode.partition("_")[0]
        if input.dim() not in (2, 3):
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        is_batched, dim = input.dim() == 3, 0 if self.batch_first else 1
        if hx is not None:
            self._check_dimensions(hx, is_batched)
        if not is_batched:
            input = input.unsqueeze(dim)
            hx = None if hx is None else self._map_states(hx, lambda state: state.unsqueeze(1))
        if hx is None:
            hx = self._first_states(input, input.size(dim))
        self.check_forward_args(input, hx, None)
        output, hidden = self._call(input, hx, None)
        if is_batched:
            return output, hidden
        return output.squeeze(dim), self._map_states(hidden, lambda state: state.squeeze(1))

    def _of_packed(self, sequence, hx):
        input, batch_sizes, order, first_order = sequence
        if hx is None:
            hx = self._first_states(input, batch_of(sequence))
        else:
            hx = self.permute_hidden(hx, order)
        self.check_input(input, batch_sizes)
        # the batch is that of the sorted sequences, also where the batch sizes are traced
        wanted = self.num_layers * self._directions, batch_of(sequence)
        self._check_states(hx, wanted)
        output, hidden = self._call(input, hx, batch_sizes)
        packed_output = PackedSequence(output, batch_sizes, order, first_order)
        return packed_output, self.permute_hidden(hidden, first_order)

    def _check_states(self, hx, wanted):
        self.check_hidden_size(hx, (*wanted, self._outputs))

    def _call(self, input, hx, batch_sizes):
        more = (hx,) if batch_sizes is None else (batch_sizes, hx)
        last = (self.batch_first,) if batch_sizes is None else ()
        outputs = _FUNCTIONS[self.mode](
            input,
            *more,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            bool(self.bidirectional),
            *last,
        )
        return outputs[0], self._packed_states(outputs[1:])

    def _packed_states(self, states):
        return states[0]

    def _map_states(self, states, function):
        """The states after `function`."""
        return function(states)

    def _first_states(self, input, batch):
        return self._zeros(input, batch, self._outputs)

    def _zeros(self, input, batch, size):
        shape = self.num_layers * self._directions, batch, size
        return factories.zeros(shape, dtype=input.dtype, device=input.device)

    def _check_dimensions(self, hx, is_batched):
        if hx.dim() != (3 if is_batched else 2):
            kind, wanted = ("batched", 3) if is_batched else ("unbatched", 2)
            raise RuntimeError(
                f"For {kind} {wanted}-D input, hx should also be {wanted}-D but got {hx.dim()}-D "
                "tensor"
            )

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value}"
        return shown


class RNN(RNNBase):
    """A stack of layers `h = tanh(W_ih @ x + b_ih + W_hh @ h + b_hh)` over sequences.

    nonlinearity: "tanh" or "relu". The other arguments, the input and the results are those of
    `LSTM`, with one state and no projection. Source: Elman, "Finding Structure in Time", 1990.

    >>> layer = jaxgrad.nn.RNN(3, 4, num_layers=2)
    >>> [tuple(each.shape) for each in layer(jaxgrad.ones(5, 2, 3))]
    [(5, 2, 4), (2, 2, 4)]
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """A stack of gated recurrent units over sequences: with gates r and z,
    `n = tanh(W_in @ x + b_in + r * (W_hn @ h + b_hn))` and `h = (1 - z) * n + z * h`.

    The arguments, the input and the results are those of `LSTM`, with one state and no projection.
    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical
    Machine Translation", 2014.

    >>> layer = jaxgrad.nn.GRU(3, 4, bidirectional=True)
    >>> [tuple(each.shape) for each in layer(jaxgrad.ones(5, 2, 3))]
    [(5, 2, 8), (2, 2, 4)]
    """

    def __init__(self, *args: Any, **kwargs: Any):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """A stack of LSTM layers over sequences: with gates i, f and o, `c = f * c + i * g` and
    `h = o * tanh(c)`.

    input_size: of an element of a sequence. hidden_size: of a state. num_layers: each layer has the
    outputs of the one before for input. bias: whether gates have biases. batch_first: sequences
    are (batch, steps, size) and not (steps, batch, size). dropout: the probability with which an
    output between layers is dropped in training. bidirectional: each layer reads the sequences
    backwards too. proj_size: if positive, the size to which hidden states are projected.

    input: (steps, batch, input_size), (steps, input_size) or a `PackedSequence`. hx: the first
    hidden and cell states, (layers * directions, batch, size) each; zeros by default. Returns the
    outputs of the last layer, and the last states. Raises ValueError, TypeError and RuntimeError
    for arguments that do not fit. Source: Hochreiter and Schmidhuber, "Long Short-Term Memory",
    1997.

    >>> layer = jaxgrad.nn.LSTM(3, 4, num_layers=2, batch_first=True)
    >>> y, (h, c) = layer(jaxgrad.ones(5, 6, 3))
    >>> tuple(y.shape), tuple(h.shape), tuple(c.shape)
    ((5, 6, 4), (2, 5, 4), (2, 5, 4))
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Return the shape of the cell states: (layers * directions, batch, hidden_size)."""
        count = self.num_layers * self._directions
        return count, self._batch(input, batch_sizes), self.hidden_size

    def check_forward_args(
        self, input: Tensor, hidden: Tensor | tuple[Tensor, Tensor], batch_sizes: Tensor | None
    ) -> None:
        self.check_input(input, batch_sizes)
        self._check_states(hidden, self.get_expected_cell_size(input, batch_sizes)[:2])

    def _check_states(self, hx, wanted):
        for number, size in enumerate((self._outputs, self.hidden_size)):
            words = f"Expected hidden[{number}] size {{}}, got {{}}"
            self.check_hidden_size(hx[number], (*wanted, size), words)

    def permute_hidden(
        self, hx: tuple[Tensor, Tensor], permutation: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if permutation is None:
            return hx
        return self._map_states(hx, lambda state: state.index_select(1, along(permutation, state)))

    def _packed_states(self, states):
        return tuple(states)

    def _map_states(self, states, function):
        return tuple(map(function, states))

    def _first_states(self, input, batch):
        return (
            self._zeros(input, batch, self._outputs),
            self._zeros(input, batch, self.hidden_size),
        )

    def _check_dimensions(self, hx, is_batched):
        kind, wanted = ("batched", 3) if is_batched else ("unbatched", 2)
        if isinstance(hx, Tensor) and hx.dim() == wanted:  # PyTorch takes its rows for the pair
            error = IndexError if len(hx) < 2 else RuntimeError
            raise error(
                "LSTM: hx is a pair of tensors (h_0, c_0), not one tensor of shape "
                f"{list(hx.shape)}"
            )
        if any(state.dim() != wanted for state in hx[:2]):
            raise RuntimeError(
                f"For {kind} {wanted}-D input, hx and cx should also be {wanted}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )


# ---- cells


class RNNCellBase(Module):
    """The base class of `RNNCell`, `LSTMCell` and `GRUCell`.

    num_chunks: the number of gates. The other arguments are those of `RNNCell`.

    >>> jaxgrad.nn.RNNCellBase(3, 2, True, num_chunks=4).weight_ih.shape
    torch.Size([8, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = new_parameter((rows, input_size), device, dtype)
        self.weight_hh = new_parameter((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, new_parameter((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights again from U(-b, b), `b = 1 / sqrt(hidden_size)`."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return shown if nonlinearity == "tanh" else f"{shown}, nonlinearity={nonlinearity}"

    def _step(self, function, input, *states):
        """The results of a function on a batch of inputs and states, or on one of each."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        is_batched = input.dim() == 2
        if not is_batched:
            input = input.unsqueeze(0)
            states = [None if state is None else state.unsqueeze(0) for state in states]
        shape = input.size(0), self.hidden_size
        options = {"dtype": input.dtype, "device": input.device}
        states = [factories.zeros(shape, **options) if state is None else state for state in states]
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        result = function(input, states[0] if len(states) == 1 else states, *weights)
        if is_batched:
            return result
        return (
            result.squeeze(0) if isinstance(result, Tensor) else tuple(x.squeeze(0) for x in result)
        )

    def _check_state(self, state, words):
        if state is not None and state.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {words} to be 1D or 2D, got {state.dim()}D "
                "instead"
            )


class RNNCell(RNNCellBase):
    """One step `tanh(W_ih @ x + b_ih + W_hh @ h + b_hh)`.

    input_size, hidden_size: of input and state. bias: whether there are biases. nonlinearity:
    "tanh" or "relu". input: (batch, input_size) or (input_size,). hx: (batch, hidden_size) or
    (hidden_size,), zeros by default. Returns the next state. Raises ValueError and RuntimeError
    for arguments that do not fit.

    >>> jaxgrad.nn.RNNCell(3, 4)(jaxgrad.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check_state(hx, "hidden")
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        is_tanh = self.nonlinearity == "tanh"
        return self._step(
            recurrent.rnn_tanh_cell if is_tanh else recurrent.rnn_relu_cell, input, hx
        )


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`. hx: hidden and cell state, zeros by default; returns both.

    The other arguments and errors are those of `RNNCell`.

    >>> h, c = jaxgrad.nn.LSTMCell(3, 4)(jaxgrad.ones(2, 3))
    >>> h.shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        if isinstance(hx, Tensor):
            raise TypeError(
                "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
            )
        states = (None, None) if hx is None else hx
        for number, state in enumerate(states):
            self._check_state(state, f"hx[{number}]")
        return self._step(recurrent.lstm_cell, input, *states)


class GRUCell(RNNCellBase):
    """One step of a `GRU`; arguments and errors are those of `RNNCell`.

    >>> jaxgrad.nn.GRUCell(3, 4)(jaxgrad.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check_state(hx, "hidden")
        return self._step(recurrent.gru_cell, input, hx)
