"""Recurrent networks, their cells, and the operators of packed sequences."""

from __future__ import annotations

import weakref

import numpy as np

from .. import ops
from ..core.pytorch_tensors import type_name
from ..frontend import factories
from ..frontend.array_creation import along, beside
from ..frontend.tensor_data import from_numpy
from ..ops.autocast import lowered
from ..tape.mode import is_grad_enabled
from ..tape.tensor import Tensor, concrete, has_tangent, is_concrete
from ..tape.torch_function import api_boundary
from .dropout import dropout as drop

# the arguments of padded sequences, and those of packed ones
_AFTER = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", *_AFTER, "batch_first")
_PACKED = ("data", "batch_sizes", *_AFTER)
_KINDS = {
    "params": (list | tuple, "tuple of Tensors"),
    "has_biases": (bool, "bool"),
    "num_layers": (int, "int"),
    "dropout": (int | float, "float"),
    "train": (bool, "bool"),
    "bidirectional": (bool, "bool"),
    "batch_first": (bool, "bool"),
}


@api_boundary
def lstm(*args, **kwargs):
    """Return the outputs of a stack of LSTM layers, and the last hidden and cell states.

    lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) and
    lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)

    input: (steps, batch, size), or (batch, steps, size) with `batch_first`, floating point or
    complex. data, batch_sizes: those of a `PackedSequence`. hx: the first hidden states (layers *
    directions, batch, outputs), and cell states, whose last size is the hidden one. params: for
    each layer and direction w_ih, w_hh, with `has_biases` b_ih and b_hh, and w_hr if the outputs
    are projected to fewer. dropout: probability with which an output between layers is dropped in
    training. Raises RuntimeError for shapes and dtypes that do not fit, TypeError for other
    arguments. Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997.

    >>> x, states, w = jaxgrad.ones(3, 1, 2), [jaxgrad.zeros(1, 1, 4)] * 2, jaxgrad.zeros(16, 2)
    >>> y, h, c = jaxgrad.lstm(
    ...     x, states, [w, jaxgrad.zeros(16, 4)], False, 1, 0.0, False, False, False
    ... )
    >>> y.shape, h.shape
    (torch.Size([3, 1, 4]), torch.Size([1, 1, 4]))
    """
    arguments = _arguments("lstm", args, kwargs)
    if len(arguments["hx"]) != 2:
        raise RuntimeError("lstm expects two hidden states")
    return _recurrent("LSTM", arguments, *arguments["hx"])


@api_boundary
def gru(*args, **kwargs):
    """Return the outputs of a stack of GRU layers, and the last hidden states.

    gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) and
    gru(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)

    hx: the first hidden states, (layers * directions, batch, hidden size). Other arguments and
    errors are those of `lstm`, without projection. Source: Cho et al., "Learning Phrase
    Representations using RNN Encoder-Decoder for Statistical Machine Translation", 2014.

    >>> x, w = jaxgrad.ones(3, 1, 2), [jaxgrad.zeros(12, 2), jaxgrad.zeros(12, 4)]
    >>> jaxgrad.gru(x, jaxgrad.ones(1, 1, 4), w, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.1250, 0.1250, 0.1250, 0.1250]]])
    """
    arguments = _arguments("gru", args, kwargs)
    return _recurrent("GRU", arguments, arguments["hx"])


@api_boundary
def rnn_tanh(*args, **kwargs):
    """Return the outputs of a stack of layers `tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)`, and the
    last hidden states.

    rnn_tanh(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    and rnn_tanh(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
    bidirectional), with the arguments and errors of `gru`. Source: Elman, "Finding Structure in
    Time", 1990.

    >>> x, w = jaxgrad.ones(3, 1, 1), [jaxgrad.ones(1, 1), jaxgrad.zeros(1, 1)]
    >>> jaxgrad.rnn_tanh(x, jaxgrad.zeros(1, 1, 1), w, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.7616]]])
    """
    arguments = _arguments("rnn_tanh", args, kwargs)
    return _recurrent("RNN_TANH", arguments, arguments["hx"])


@api_boundary
def rnn_relu(*args, **kwargs):
    """Return the outputs of a stack of layers `relu(w_ih @ x + b_ih + w_hh @ h + b_hh)`, and the
    last hidden states; arguments and errors are those of `rnn_tanh`.

    >>> x, w = jaxgrad.ones(3, 1, 1), [jaxgrad.ones(1, 1), jaxgrad.ones(1, 1)]
    >>> jaxgrad.rnn_relu(x, jaxgrad.zeros(1, 1, 1), w, False, 1, 0.0, False, False, False)[1]
    tensor([[[3.]]])
    """
    arguments = _arguments("rnn_relu", args, kwargs)
    return _recurrent("RNN_RELU", arguments, arguments["hx"])


def _arguments(name, args, kwargs):
    """The arguments by name; `input` and `batch_sizes` for packed sequences too."""
    second = args[1 if name == "lstm" else 2 :][:1]
    packed = "batch_sizes" in kwargs or bool(second and isinstance(second[0], Tensor))
    names = _PACKED if packed else _PADDED
    arguments = dict(zip(names, args, strict=False)) | kwargs
    expected = {**_KINDS, "hx": (list | tuple, "tuple of Tensors")} if name == "lstm" else _KINDS
    if len(args) + len(kwargs) != len(names) or arguments.keys() != set(names):
        raise TypeError(_combination(name, args, kwargs))
    for key, value in arguments.items():
        kind = expected.get(key, (Tensor, "Tensor"))[0]
        items = value if isinstance(value, list | tuple) else ()
        if not isinstance(value, kind) or not all(isinstance(item, Tensor) for item in items):
            raise TypeError(_combination(name, args, kwargs))
    arguments.setdefault("batch_sizes", None)
    arguments.setdefault("batch_first", False)
    arguments.setdefault("input", arguments.get("data"))
    return arguments


def _combination(name, args, kwargs):
    got = [type_name(value) for value in args]
    got += [f"{key}={type_name(value)}" for key, value in kwargs.items()]
    states = "tuple of Tensors" if name == "lstm" else "Tensor"

    def shown(names):
        kinds = {"hx": states} | {key: kind for key, (_, kind) in _KINDS.items()}
        return ", ".join(f"{kinds.get(key, 'Tensor')} {key}" for key in names)

    return (
        f"{name}() received an invalid combination of arguments - got ({', '.join(got)}), but "
        f"expected one of:\n * ({shown(_PACKED)})\n * ({shown(_PADDED)})"
    )


def _recurrent(mode, arguments, hx, cx=None):
    params, batch_sizes = list(arguments["params"]), arguments["batch_sizes"]
    input, hx, cx, params = lowered(arguments["input"], hx, cx, params)
    directions = 2 if arguments["bidirectional"] else 1
    if hx.ndim == 3 and hx.shape[0] != arguments["num_layers"] * directions:
        raise RuntimeError(
            f"Expected more hidden states in stacked_rnn: {arguments['num_layers']} layers in "
            f"{directions} directions, but hx has {hx.shape[0]}"
        )
    if batch_sizes is not None:
        _check_batch_sizes(batch_sizes, input, hx)
        batch_sizes = along(batch_sizes, input)
    tensors = [tensor for tensor in (input, hx, cx, *params) if tensor is not None]
    # without a derivative to come nothing is kept; one that comes nevertheless computes it again
    kept = is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    kept = kept or any(has_tangent(tensor) or not is_concrete(tensor) for tensor in tensors)
    factors = _factors_between(input, hx, batch_sizes, arguments, directions)
    outputs = ops.recurrent(
        input,
        params,
        hx,
        cx,
        batch_sizes,
        factors,
        mode,
        arguments["has_biases"],
        arguments["bidirectional"],
        arguments["batch_first"],
        kept,
    )
    return tuple(outputs[: 2 if cx is None else 3])


def _factors_between(input, hx, batch_sizes, arguments, directions):
    """The factors of the outputs between layers: zeros with the probability of dropout."""
    between, p = arguments["num_layers"] - 1, arguments["dropout"]
    if not (between and p and arguments["train"]):
        return None
    dim = 1 if arguments["batch_first"] else 0
    batch, width = hx.shape[1], directions * hx.shape[2]

    def factors(*extents):
        ones = factories.ones((between, *extents, width), dtype=input.dtype, device=input.device)
        return drop(ones, p, True)

    if batch_sizes is None:
        return factors(input.shape[dim], batch)
    if not is_concrete(batch_sizes):
        return factors(batch_sizes.shape[0], batch)
    # drawn for the rows of a packed sequence alone, as in PyTorch
    is_row = np.arange(batch) < np.asarray(batch_sizes._array)[:, None]
    places = from_numpy(np.where(is_row, np.cumsum(is_row).reshape(is_row.shape) - 1, 0))
    return factors(int(is_row.sum()))[:, places]


def _check_batch_sizes(batch_sizes, data, hx):
    if batch_sizes.dtype.name != "int64":
        raise RuntimeError(
            f"expected scalar type Long but found {batch_sizes.dtype.scalar_type}: of batch_sizes"
        )
    if not is_concrete(batch_sizes):
        return
    sizes = np.asarray(batch_sizes._array)
    is_whole = sizes.ndim == 1 and sizes.sum() == data.shape[0] and (np.diff(sizes) <= 0).all()
    if not is_whole or (sizes.size and sizes[-1] < 1):
        raise RuntimeError(
            f"batch_sizes must decrease and add up to the {data.shape[0]} rows of data, but they "
            f"are {sizes.tolist()}"
        )
    if sizes.size and hx.shape[1] != sizes[0]:
        wanted = hx.shape[0], int(sizes[0]), hx.shape[2]
        raise RuntimeError(f"Expected hidden size {wanted}, got {list(hx.shape)}")


# ---- cells


@api_boundary
def lstm_cell(input: Tensor, hx, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None):
    """Return the hidden and the cell state after one step of an LSTM.

    input: (batch, size), floating point or complex. hx: hidden and cell state, both (batch, hidden
    size). w_ih: (4 * hidden size, size), w_hh: (4 * hidden size, hidden size), b_ih, b_hh: (4 *
    hidden size,) or None; the gates are input, forget, cell and output. Raises RuntimeError for
    shapes and dtypes that do not fit, TypeError for an `hx` that is no pair of tensors.

    >>> zeros = jaxgrad.zeros(1, 1)
    >>> jaxgrad.lstm_cell(zeros, (zeros, zeros + 1), jaxgrad.zeros(4, 1), jaxgrad.zeros(4, 1))
    (tensor([[0.2311]]), tensor([[0.5000]]))
    """
    if not isinstance(hx, list | tuple) or not all(isinstance(state, Tensor) for state in hx):
        raise TypeError(
            f"lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not {type_name(hx)}"
        )
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    input, hidden, cell, *weights = lowered(input, *hx, w_ih, w_hh, b_ih, b_hh)
    gates = _gates("lstm_cell", 4, input, (hidden, cell), *weights[:2])
    return tuple(ops._thnn_fused_lstm_cell(*gates, cell, *weights[2:])[:2])


@api_boundary
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None):
    """Return the hidden state after one step of a GRU.

    hx: the state, (batch, hidden size). The weights have 3 gates: reset, update and new. Other
    arguments and errors are those of `lstm_cell`.

    >>> zeros = jaxgrad.zeros(1, 1)
    >>> jaxgrad.gru_cell(zeros, zeros + 1, jaxgrad.zeros(3, 1), jaxgrad.zeros(3, 1))
    tensor([[0.5000]])
    """
    _check_state("gru_cell", hx)
    input, hx, *weights = lowered(input, hx, w_ih, w_hh, b_ih, b_hh)
    gates = _gates("gru_cell", 3, input, (hx,), *weights[:2])
    return ops._thnn_fused_gru_cell(*gates, hx, *weights[2:])[0]


@api_boundary
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None):
    """Return `tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)`.

    The weights have the rows of one gate. Other arguments and errors are those of `gru_cell`.

    >>> one = jaxgrad.ones(1, 1)
    >>> jaxgrad.rnn_tanh_cell(one, one, one, -one)
    tensor([[0.]])
    """
    return ops.tanh(_sum_of_gates("rnn_tanh_cell", input, hx, w_ih, w_hh, b_ih, b_hh))


@api_boundary
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None):
    """Return `relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)`; arguments and errors are those of
    `rnn_tanh_cell`.

    >>> one = jaxgrad.ones(1, 1)
    >>> jaxgrad.rnn_relu_cell(one, one, one, one)
    tensor([[2.]])
    """
    return ops.relu(_sum_of_gates("rnn_relu_cell", input, hx, w_ih, w_hh, b_ih, b_hh))


def _sum_of_gates(name, input, hx, w_ih, w_hh, b_ih, b_hh):
    _check_state(name, hx)
    _check_cell(name, 1, input, (hx,), w_ih, w_hh)
    return ops.linear(input, w_ih, b_ih) + ops.linear(hx, w_hh, b_hh)


def _check_state(name, hx):
    if not isinstance(hx, Tensor):
        raise TypeError(f"{name}(): argument 'hx' (position 2) must be Tensor, not {type_name(hx)}")


def _gates(name, count, input, states, w_ih, w_hh):
    """The gates of input and hidden state, without their biases."""
    _check_cell(name, count, input, states, w_ih, w_hh)
    return ops.linear(input, w_ih), ops.linear(states[0], w_hh)


def _check_cell(name, count, input, states, w_ih, w_hh):
    words = (
        "Dimension out of range (expected to be in range of [-1, 0], but got 1): "
        f"{name} takes tensors of two dimensions"
    )
    if input.ndim < 2 or not all(state.ndim for state in states):
        raise IndexError(words)
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}"
        )
    size = w_hh.shape[1]
    if w_ih.shape[0] != count * size:
        raise RuntimeError(
            f"weight_ih first dim must be {count} * hidden_size = {count * size}, but got "
            f"{w_ih.shape[0]}"
        )
    for number, state in enumerate(states):
        if state.shape[0] != input.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size "
                f"{state.shape[0]}"
            )
        if state.ndim < 2:
            raise IndexError(words)
        if state.shape[1] != size:
            raise RuntimeError(
                f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected "
                f"{size}"
            )


# ---- packed sequences


@api_boundary
def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool = False):
    """Return the rows of padded sequences, and how many sequences have each step.

    input: (steps, batch, ...), or (batch, steps, ...) with `batch_first`. lengths: int64, (batch,),
    decreasing and positive, known (not traced). Raises RuntimeError for others.
    """
    if lengths.ndim != 1 or lengths.dtype.name != "int64":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.ndim}D {lengths.device.type} {lengths.dtype.scalar_type} tensor"
        )
    return packed(input, np.asarray(concrete(lengths, "pack_padded_sequence()")), batch_first)


def packed(input: Tensor, lengths: np.ndarray, batch_first: bool):
    """Return what `_pack_padded_sequence` returns, of lengths of one dimension; see there."""
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if input.ndim < 2:
        raise IndexError(
            "Dimension out of range (expected to be in range of [-1, 0], but got 1): sequences "
            "have a batch dimension"
        )
    batch = input.shape[0 if batch_first else 1]
    if lengths.size != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.size} "
            f"(batch_size={batch})"
        )
    if lengths.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if (np.diff(lengths) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    sizes = (lengths > np.arange(lengths.max())[:, None]).sum(1).astype(np.int64)
    batch_sizes = from_numpy(sizes)
    if not is_concrete(batch_sizes):
        key = id(batch_sizes)
        _MADE_IN_TRACE[key] = weakref.ref(batch_sizes, lambda _: _MADE_IN_TRACE.pop(key)), sizes
    sizes = along(batch_sizes, input)
    return ops._packed_rows(input, sizes, int(lengths.sum()), batch_first), batch_sizes


# the values of batch sizes that were made inside a trace, where a tensor has none, by its `id`
_MADE_IN_TRACE: dict[int, tuple[weakref.ref, np.ndarray]] = {}


def sizes_of(batch_sizes: Tensor, what: str) -> np.ndarray:
    """Return the values of batch sizes. Raises RuntimeError where they are traced and not known."""
    known = _MADE_IN_TRACE.get(id(batch_sizes))
    if known is not None:
        return known[1]
    return np.asarray(concrete(batch_sizes, what))


@api_boundary
def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
):
    """Return sequences with `padding_value` after the end of each, and their lengths.

    data, batch_sizes: those of a packed sequence, with known sizes. total_length: the steps of the
    result; not positive: those of the longest sequence. Raises RuntimeError if it is too short.
    """
    batch = int(sizes_of(batch_sizes, "_pad_packed_sequence()")[0])
    steps = batch_sizes.shape[0]
    if 0 < total_length < steps:
        raise RuntimeError(
            "Expected total_length to be at least the length of the longest sequence in input, but "
            f"got total_length={total_length} and max sequence length being {steps}"
        )
    steps = total_length if total_length > 0 else steps
    return padded(data, batch_sizes, batch_first, padding_value, steps, batch)


def padded(data, batch_sizes, batch_first, padding_value, steps, batch):
    """Return `batch` packed sequences as (steps, batch, ...), and their lengths."""
    sizes = along(batch_sizes, data)
    sequences = ops._padded_rows(data, sizes, batch, steps, padding_value, batch_first)
    if is_concrete(batch_sizes):
        sizes = np.asarray(batch_sizes._array)
        return sequences, from_numpy((sizes > np.arange(batch)[:, None]).sum(1).astype(np.int64))
    columns = factories.arange(batch, device=batch_sizes.device)
    return sequences, (batch_sizes > columns.unsqueeze(1)).sum(1)


# ---- the operator of cuDNN

_MODES = ("RNN_RELU", "RNN_TANH", "LSTM", "GRU")


@api_boundary
def _cudnn_rnn(input, weight, weight_stride0, weight_buf, hx, cx, mode, hidden_size, *rest):
    """Return outputs, last hidden and cell states, and two empty tensors, by cuDNN's arguments.

    mode: 0 relu, 1 tanh, 2 LSTM, 3 GRU. rest: num_layers, batch_first, dropout, train,
    bidirectional, batch_sizes, dropout_state; PyTorch of today has `proj_size` before num_layers.
    weight_stride0: how many weights a layer has in a direction, 4 with biases. batch_sizes: a list,
    empty for padded sequences. weight_buf and dropout_state are not read: weights are taken from
    `weight`, random numbers from the default generator.
    """
    *_, num_layers, batch_first, dropout, train, bidirectional, batch_sizes, _ = rest
    arguments = {
        "input": input,
        "params": weight,
        "has_biases": weight_stride0 >= 4,
        "num_layers": num_layers,
        "dropout": dropout,
        "train": train,
        "bidirectional": bidirectional,
        "batch_first": batch_first and not batch_sizes,
        "batch_sizes": from_numpy(np.array(batch_sizes, np.int64)) if batch_sizes else None,
    }
    is_lstm = _MODES[mode] == "LSTM"
    outputs = _recurrent(_MODES[mode], arguments, hx, cx if is_lstm else None)
    options = {"dtype": input.dtype, "device": beside(input)}
    return (*outputs, *[factories.empty(0, **options) for _ in range(3 if not is_lstm else 2)])
