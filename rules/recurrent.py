"""Recurrent networks: stacks of layers, cells, and packed sequences.

A layer runs as one `lax.scan` in each direction, so that the program does not grow with the length
of the sequences. What needs no state of the step before is one product outside of the scan: the
gates of all inputs, and in the backward pass the gradients of all weights. The forward pass returns
the gates and states of every step, too. They have gradients like every other output, which only
derivatives of second order ask for, so that derivatives of any order follow from the formulas here.

Gates stand in PyTorch's order: input, forget, cell, output; reset, update, new. The formulas follow
JAX's convention for complex numbers, and are called between two conjugations.
"""

import collections
import math

import jax
import jax.numpy as jnp
from jax import lax

from jaxgrad.core import device_axes, dtypes, promotion

_Weights = collections.namedtuple("_Weights", "input hidden input_bias hidden_bias projection")

# gates, states: how many there are; step: the next states, and what else the backward pass needs;
# back: the gradients of the states before and of the gates
_Cell = collections.namedtuple("_Cell", "gates states step back")


def _product(first, second):
    """The product of (..., n) and a matrix (n, m)."""
    return lax.dot_general(
        first,
        second,
        (((first.ndim - 1,), (0,)), ((), ())),
        precision=promotion.product_precision(first),
    )


def _outer(first, second):
    """The sum over all steps and batches of the products of (..., n) and (..., m): (n, m)."""
    rows = [jnp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1])) for x in (first, second)]
    return _product(rows[0].T, rows[1])


def _relu(x):
    # not maximum: NaN stays, and the slope at 0 is 0
    return jnp.where(x <= 0, 0, x)


# ---- cells: states and gradients are (batch, size)


def _lstm_step(weights, states, gates):
    hidden, cell = states
    gates = jnp.split(gates + _product(hidden, weights.hidden), 4, -1)
    enter, forget, output = (jax.nn.sigmoid(gates[k]) for k in (0, 1, 3))
    new = jnp.tanh(gates[2])
    cell = forget * cell + enter * new
    hidden = output * jnp.tanh(cell)
    if weights.projection is not None:
        hidden = _product(hidden, weights.projection)
    return (hidden, cell), jnp.concatenate([enter, forget, new, output], -1)


def _lstm_back(weights, grads, states, before, saved, grad_saved):
    grad_hidden, grad_cell = grads
    if weights.projection is not None:
        grad_hidden = _product(grad_hidden, weights.projection)
    enter, forget, new, output = jnp.split(saved, 4, -1)
    active = jnp.tanh(states[1])
    grad_cell = grad_cell + grad_hidden * output * (1 - active * active)
    outer = (grad_cell * new, grad_cell * before[1], grad_cell * enter, grad_hidden * active)
    if grad_saved is not None:
        outer = [a + b for a, b in zip(outer, jnp.split(grad_saved, 4, -1), strict=True)]
    slopes = (enter * (1 - enter), forget * (1 - forget), 1 - new * new, output * (1 - output))
    gates = jnp.concatenate([a * b for a, b in zip(outer, slopes, strict=True)], -1)
    return (_product(gates, weights.hidden), grad_cell * forget), gates


def _gru_step(weights, states, gates):
    (hidden,) = states
    size = hidden.shape[-1]
    inner = _product(hidden, weights.hidden)
    reset, update = jnp.split(jax.nn.sigmoid(gates[:, : 2 * size] + inner[:, : 2 * size]), 2, -1)
    inner = inner[:, 2 * size :]
    if weights.hidden_bias is not None:
        inner = inner + weights.hidden_bias[2 * size :]
    new = jnp.tanh(gates[:, 2 * size :] + reset * inner)
    return (new + update * (hidden - new),), jnp.concatenate([reset, update, new, inner], -1)


def _gru_back(weights, grads, states, before, saved, grad_saved):
    (grad,), (hidden,) = grads, before
    reset, update, new, inner = jnp.split(saved, 4, -1)
    more = (0,) * 4 if grad_saved is None else jnp.split(grad_saved, 4, -1)
    grad_update = grad * (hidden - new) + more[1]
    grad_new = (grad * (1 - update) + more[2]) * (1 - new * new)
    grad_reset = grad_new * inner + more[0]
    grad_inner = grad_new * reset + more[3]
    first = (grad_reset * reset * (1 - reset), grad_update * update * (1 - update))
    through = _product(jnp.concatenate([*first, grad_inner], -1), weights.hidden)
    return (grad * update + through,), jnp.concatenate([*first, grad_new, grad_inner], -1)


def _tanh_step(weights, states, gates):
    return (jnp.tanh(gates + _product(states[0], weights.hidden)),), None


def _tanh_back(weights, grads, states, before, saved, grad_saved):
    gates = grads[0] * (1 - states[0] * states[0])
    return (_product(gates, weights.hidden),), gates


def _relu_step(weights, states, gates):
    return (_relu(gates + _product(states[0], weights.hidden)),), None


def _relu_back(weights, grads, states, before, saved, grad_saved):
    gates = jnp.where(states[0] <= 0, 0, grads[0])
    return (_product(gates, weights.hidden),), gates


_CELLS = {
    "LSTM": _Cell(4, 2, _lstm_step, _lstm_back),
    "GRU": _Cell(3, 1, _gru_step, _gru_back),
    "RNN_TANH": _Cell(1, 1, _tanh_step, _tanh_back),
    "RNN_RELU": _Cell(1, 1, _relu_step, _relu_back),
}


# ---- one layer in one direction: sequences are (steps, batch, size)


def _turned(weights):
    """The weights as `step` multiplies states by them, turned once and not in each step."""
    turned = {"hidden": weights.hidden.T}
    if weights.projection is not None:
        turned["projection"] = weights.projection.T
    return weights._replace(**turned)


def _gates_of_inputs(cell, weights, x):
    gates = _product(x, weights.input.T)
    if weights.input_bias is None:
        return gates
    bias = weights.hidden_bias
    if cell.gates == 3:  # the reset gate multiplies the bias of the new gate
        bias = bias.at[2 * bias.shape[0] // 3 :].set(0)
    return gates + (weights.input_bias + bias)


def _run(cell, weights, states, x, valid, reverse):
    """The last states, the states after each step, and what else `back` needs of each step.

    valid: (steps, batch), where the sequences are; elsewhere the states stay. None: everywhere.
    """
    turned = _turned(weights)

    def step(states, inputs):
        gates, valid = inputs
        new, saved = cell.step(turned, states, gates)
        if valid is not None:
            pairs = zip(new, states, strict=True)
            new = tuple(jnp.where(valid[:, None], after, before) for after, before in pairs)
        return new, (new, saved)

    gates = _gates_of_inputs(cell, weights, x)
    last, (sequences, saved) = device_axes.scan(
        step, tuple(states), (gates, valid), reverse=reverse
    )
    return last, sequences, saved


def _before(sequence, first, reverse):
    """The states before each step, of those after it."""
    if reverse:
        return jnp.concatenate([sequence[1:], first[None]])
    return jnp.concatenate([first[None], sequence[:-1]])


def _run_back(cell, weights, record, valid, grad_last, grad_sequences, grad_saved, reverse):
    """The gradients of the first states, of the gates at each step, and of each hidden state.

    record: states after and before each step, and what else `_run` saved.
    """

    def step(grads, inputs):
        (states, before, saved), valid, more, grad_saved = inputs
        grads = tuple(a if b is None else a + b for a, b in zip(grads, more, strict=True))
        new, gates = cell.back(weights, grads, states, before, saved, grad_saved)
        if valid is not None:
            valid = valid[:, None]
            new = tuple(jnp.where(valid, a, b) for a, b in zip(new, grads, strict=True))
            gates = jnp.where(valid, gates, 0)
        # the weights of a projection need those of its results
        projected = weights.projection is not None
        hidden = grads[0] if valid is None else jnp.where(valid, grads[0], 0)
        return new, (gates, hidden if projected else None)

    steps = record, valid, grad_sequences, grad_saved
    return device_axes.scan(step, tuple(grad_last), steps, reverse=not reverse)


def _gradients_of_weights(cell, weights, x, record, gates, grad_hidden):
    """The gradients of a layer's weights, and of its input, from those of the gates."""
    states, before, saved = record
    of_input = of_hidden = gates
    if cell.gates == 3:
        size = gates.shape[-1] // 4
        of_input = gates[..., : 3 * size]
        of_hidden = jnp.concatenate([gates[..., : 2 * size], gates[..., 3 * size :]], -1)
    gradients = weights._replace(input=_outer(of_input, x), hidden=_outer(of_hidden, before[0]))
    if weights.input_bias is not None:
        gradients = gradients._replace(
            input_bias=of_input.sum((0, 1)), hidden_bias=of_hidden.sum((0, 1))
        )
    if weights.projection is not None:
        wide = jnp.split(saved, 4, -1)[3] * jnp.tanh(states[1])
        gradients = gradients._replace(projection=_outer(grad_hidden, wide))
    return gradients, _product(of_input, weights.input)


# ---- a stack of layers


class _Stack:
    """The arguments of `recurrent`, which both passes read.

    `first[n]` are the first states of layer and direction n, `valid` and `places` those of packed
    input, else None.
    """

    def __init__(self, input, weight, hx, cx, batch_sizes, mode, has_biases, both, batch_first):
        self.cell, self.batch_first, self.input = _CELLS[mode], batch_first, input
        self.directions = 2 if both else 1
        self.layers, self.batch = hx.shape[0] // self.directions, hx.shape[1]
        self.first = list(zip(hx, cx, strict=True)) if cx is not None else [(h,) for h in hx]
        self.weights = _grouped(weight, hx.shape[0], has_biases)
        self.packed = batch_sizes is not None
        self.valid = self.places = None
        if self.packed:
            self.valid, self.places = _places(batch_sizes, input.shape[0], self.batch)

    def opened(self, x, fill=None):
        """A sequence as (steps, batch, size); fill: stands where packed ones have no steps."""
        if not self.packed:
            return jnp.swapaxes(x, 0, 1) if self.batch_first else x
        padded = x[self.places[0]]
        return padded if fill is None else jnp.where(self.valid[..., None], padded, fill)

    def closed(self, x):
        """The inverse of `opened`."""
        if self.packed:
            return x[self.places[1]]
        return jnp.swapaxes(x, 0, 1) if self.batch_first else x


def _grouped(weight, count, has_biases):
    """The weights of each layer and direction."""
    size, groups = len(weight) // count, []
    for start in range(0, len(weight), size):
        weights = weight[start : start + size]
        biases = weights[2:4] if has_biases else (None, None)
        groups.append(_Weights(*weights[:2], *biases, weights[-1] if size % 2 else None))
    return groups


def _places(batch_sizes, rows, batch):
    """Where padded sequences are valid, the row of each place, and the place of each row."""
    ends = jnp.cumsum(batch_sizes)
    starts, column = ends - batch_sizes, jnp.arange(batch)
    valid = column < batch_sizes[:, None]
    row = jnp.arange(rows)
    # how many ends lie before: a binary search would be a program of its own for each length
    step = jnp.cumsum(jnp.zeros_like(row).at[ends].add(1, mode="drop"))
    return valid, (jnp.where(valid, starts[:, None] + column, 0), (step, row - starts[step]))


def _check(input, weight, hx, cx, batch_sizes, mode, has_biases, bidirectional, batch_first):
    if mode not in _CELLS:
        raise RuntimeError(f"unknown mode {mode!r} of a recurrent network: one of {list(_CELLS)}")
    others = [x for x in (*weight, hx, cx) if x is not None]
    for other in others:
        if other.dtype != input.dtype:
            names = [dtypes.from_numpy(x.dtype).scalar_type for x in (input, other)]
            raise RuntimeError(
                f"mat1 and mat2 must have the same dtype, but got {' and '.join(names)}"
            )
    wanted = 3 if batch_sizes is None else 2
    if input.ndim != wanted or hx.ndim != 3 or (cx is not None and cx.ndim != 3):
        raise RuntimeError(
            f"input must have {wanted} dimensions and states 3, but their shapes are "
            f"{[list(x.shape) for x in (input, hx, cx) if x is not None]}"
        )
    steps = (batch_sizes if wanted == 2 else input).shape[batch_first if wanted == 3 else 0]
    if steps == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    batch = None if wanted == 2 else input.shape[0 if batch_first else 1]
    if batch not in (None, hx.shape[1]):
        raise RuntimeError(
            f"Expected hidden size {(hx.shape[0], batch, hx.shape[2])}, got {list(hx.shape)}"
        )
    _check_weights(input, weight, hx, cx, mode, has_biases, 2 if bidirectional else 1)


def _check_weights(input, weight, hx, cx, mode, has_biases, directions):
    count, gates = hx.shape[0], _CELLS[mode].gates
    size = hx.shape[2] if cx is None else cx.shape[2]
    projected = cx is not None and size != hx.shape[2]
    group_size = 2 + 2 * has_biases + projected
    if count % directions or len(weight) != group_size * count:
        raise RuntimeError(
            f"got an incorrect number of RNN parameters: {len(weight)}, not {group_size} for each "
            f"of {count} layers and directions"
        )
    if cx is not None and cx.shape[:2] != hx.shape[:2]:
        raise RuntimeError(f"Expected hidden size {hx.shape[:2]}, got {list(cx.shape[:2])}")
    for number in range(count):
        width = input.shape[-1] if number < directions else directions * hx.shape[2]
        biases = [(gates * size,)] * (2 * has_biases)
        wanted = [(gates * size, width), (gates * size, hx.shape[2]), *biases]
        wanted += [(hx.shape[2], size)] * projected
        shapes = [x.shape for x in weight[number * group_size : (number + 1) * group_size]]
        if shapes != wanted:
            raise RuntimeError(
                f"layer {number // directions} takes weights of shapes {wanted}, but got {shapes}: "
                f"mat1 and mat2 shapes cannot be multiplied unless input has size {shapes[0][-1:]}"
            )


def recurrent(
    input,
    weight,
    hx,
    cx,
    batch_sizes,
    dropout_state,
    mode,
    has_biases,
    bidirectional,
    batch_first,
    keep,
):
    """The outputs, the last states, and with `keep` what the backward pass needs.

    That is for each layer its outputs, unless they are the first result, and for each direction
    the gates and the other states of every step.
    """
    arguments = input, weight, hx, cx, batch_sizes, mode, has_biases, bidirectional, batch_first
    _check(*arguments)
    stack = _Stack(*arguments)
    cell, directions = stack.cell, stack.directions
    x, last, kept = stack.opened(input), [], []
    for layer in range(stack.layers):
        if layer and dropout_state is not None:
            x = x * dropout_state[layer - 1]
        outputs, saved = [], []
        for direction in range(directions):
            number = layer * directions + direction
            states, sequences, gates = _run(
                cell, stack.weights[number], stack.first[number], x, stack.valid, direction == 1
            )
            last.append(states)
            outputs.append(sequences[0])
            saved += [] if gates is None else [gates]
            saved += sequences[1:]
        x = jnp.concatenate(outputs, -1) if directions > 1 else outputs[0]
        if stack.packed or layer < stack.layers - 1:
            kept.append(x)
        kept += saved
    last = [jnp.stack(states) for states in zip(*last, strict=True)]
    return [stack.closed(x), *last, *(kept if keep else [])]


# the gradients of what is kept are asked for by second derivatives alone
recurrent.tells_missing = True


def recurrent_backward(
    grads,
    input,
    weight,
    hx,
    cx,
    batch_sizes,
    dropout_state,
    mode,
    has_biases,
    bidirectional,
    batch_first,
    result,
):
    """The gradients of input, weight, hx and cx."""
    stack = _Stack(input, weight, hx, cx, batch_sizes, mode, has_biases, bidirectional, batch_first)
    count = 1 + stack.cell.states
    if len(result) == count:  # nothing was kept
        result = recurrent(
            input,
            weight,
            hx,
            cx,
            batch_sizes,
            dropout_state,
            mode,
            has_biases,
            bidirectional,
            batch_first,
            True,
        )
        grads = [*grads, *[None] * (len(result) - count)]
    grads = [None if grad is None else jnp.conj(grad) for grad in grads]
    gradients = _back(stack, result, grads, dropout_state)
    return jax.tree.map(jnp.conj, gradients)


def _layers_of(stack, results, of_output):
    """For each layer its outputs, and for each of its directions what `_run` saved.

    results: those of `recurrent`, or their gradients; of_output: the outputs of the last layer.
    """
    supply, layers = iter(results[1 + stack.cell.states :]), []
    has_gates = stack.cell.gates > 1
    for layer in range(stack.layers):
        is_kept = stack.packed or layer < stack.layers - 1
        output = next(supply) if is_kept else of_output
        saved = [
            (next(supply) if has_gates else None, [next(supply) for _ in stack.first[0][1:]])
            for _ in range(stack.directions)
        ]
        layers.append((output, saved))
    return layers


def _back(stack, result, grads, dropout_state):
    directions = stack.directions
    grad = None if grads[0] is None else stack.opened(grads[0], 0)
    kept = _layers_of(stack, result, None if stack.packed else stack.opened(result[0]))
    moved = _layers_of(stack, grads, None)
    of_weights, of_first = [], []
    for layer in reversed(range(stack.layers)):
        (outputs, saved), (more, more_saved) = kept[layer], moved[layer]
        grad = more if grad is None else grad if more is None else grad + more
        x = kept[layer - 1][0] if layer else stack.opened(stack.input)
        if layer and dropout_state is not None:
            x = x * dropout_state[layer - 1]
        triples = [
            _back_through(stack, layer * directions + n, x, n == 1, grads, *arguments)
            for n, arguments in enumerate(
                zip(
                    _parts(outputs, directions),
                    saved,
                    _parts(grad, directions),
                    more_saved,
                    strict=True,
                )
            )
        ]
        of_weights.append([triple[0] for triple in triples])
        of_first.append([triple[1] for triple in triples])
        grad = sum(triple[2] for triple in triples)
        if layer and dropout_state is not None:
            grad = grad * dropout_state[layer - 1]
    of_weights = [
        x for weights in reversed(of_weights) for group in weights for x in group if x is not None
    ]
    states = [states for weights in reversed(of_first) for states in weights]
    of_hidden, *of_cell = map(jnp.stack, zip(*states, strict=True))
    return stack.closed(grad), of_weights, of_hidden, of_cell[0] if of_cell else None


def _parts(x, count):
    """The sequences of each direction."""
    return [None] * count if x is None else jnp.split(x, count, -1)


def _back_through(stack, number, x, reverse, grads, output, saved, grad, grad_kept):
    """The gradients of weights, first states and input of one layer in one direction."""
    first, weights = stack.first[number], stack.weights[number]
    sequences = (output, *saved[1])
    before = tuple(_before(*pair, reverse) for pair in zip(sequences, first, strict=True))
    record = sequences, before, saved[0]
    grad_last = tuple(
        jnp.zeros_like(state) if grad is None else grad[number]
        for state, grad in zip(first, grads[1 : 1 + stack.cell.states], strict=True)
    )
    grad_first, (gates, grad_hidden) = _run_back(
        stack.cell,
        weights,
        record,
        stack.valid,
        grad_last,
        (grad, *grad_kept[1]),
        grad_kept[0],
        reverse,
    )
    of_weights, of_input = _gradients_of_weights(stack.cell, weights, x, record, gates, grad_hidden)
    return of_weights, grad_first, of_input


# ---- cells, whose gates are products that arrive computed


def _all_gates(input_gates, hidden_gates, input_bias, hidden_bias):
    """The gates of the input and of the hidden state, each with its bias."""
    pairs = (input_gates, input_bias), (hidden_gates, hidden_bias)
    return [gates if bias is None else gates + bias for gates, bias in pairs]


def _check_cell(name, count, state, *gates_and_biases):
    wanted = (*state.shape[:-1], count * state.shape[-1]) if state.ndim else None
    for operand in (x for x in gates_and_biases if x is not None):
        if wanted is None or operand.shape not in (wanted, wanted[-1:]):
            raise RuntimeError(
                f"{name}: gates and biases must have {count} times the size of the state, but "
                f"their shapes are {list(operand.shape)} and {list(state.shape)}"
            )
        if operand.dtype != state.dtype:
            names = [dtypes.from_numpy(x.dtype).scalar_type for x in (state, operand)]
            raise RuntimeError(f"{name}: expected one dtype, but got {' and '.join(names)}")


def fused_lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias):
    """The next states, and the activated gates."""
    _check_cell("_thnn_fused_lstm_cell", 4, cx, input_gates, hidden_gates, input_bias, hidden_bias)
    gates = sum(_all_gates(input_gates, hidden_gates, input_bias, hidden_bias))
    enter, forget, new, output = jnp.split(gates, 4, -1)
    enter, forget, output = map(jax.nn.sigmoid, (enter, forget, output))
    new = jnp.tanh(new)
    cy = forget * cx + enter * new
    return output * jnp.tanh(cy), cy, jnp.concatenate([enter, forget, new, output], -1)


def fused_lstm_cell_backward(grads, input_gates, hidden_gates, cx, input_bias, hidden_bias):
    """The gradients of the gates, which are those of the biases too, and of cx."""
    grad_hy, grad_cy = map(jnp.conj, grads)
    # computed again: the third result is constant, and second derivatives need all
    _, cy, saved = fused_lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias)
    enter, forget, new, output = jnp.split(saved, 4, -1)
    active = jnp.tanh(cy)
    grad = grad_cy + grad_hy * output * (1 - active * active)
    gates = [
        grad * new * enter * (1 - enter),
        grad * cx * forget * (1 - forget),
        grad * enter * (1 - new * new),
        grad_hy * active * output * (1 - output),
    ]
    gates = jnp.conj(jnp.concatenate(gates, -1))
    return gates, gates, jnp.conj(grad * forget), gates, gates


def fused_gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias):
    """The next state; and reset, update and new gate, hx, and the hidden part of the new gate."""
    _check_cell("_thnn_fused_gru_cell", 3, hx, input_gates, hidden_gates, input_bias, hidden_bias)
    gates = _all_gates(input_gates, hidden_gates, input_bias, hidden_bias)
    of_input, of_hidden = (jnp.split(joined, 3, -1) for joined in gates)
    reset, update = (jax.nn.sigmoid(of_input[k] + of_hidden[k]) for k in (0, 1))
    new = jnp.tanh(of_input[2] + reset * of_hidden[2])
    return new + update * (hx - new), jnp.concatenate([reset, update, new, hx, of_hidden[2]], -1)


def fused_gru_cell_backward(grad, input_gates, hidden_gates, hx, input_bias, hidden_bias):
    """The gradients of both gates, of hx, and of both biases."""
    grad = jnp.conj(grad)
    _, saved = fused_gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias)
    reset, update, new, _, inner = jnp.split(saved, 5, -1)
    grad_new = grad * (1 - update) * (1 - new * new)
    grad_reset = grad_new * inner * reset * (1 - reset)
    grad_update = grad * (hx - new) * update * (1 - update)
    of_input = jnp.conj(jnp.concatenate([grad_reset, grad_update, grad_new], -1))
    of_hidden = jnp.conj(jnp.concatenate([grad_reset, grad_update, grad_new * reset], -1))
    return of_input, of_hidden, jnp.conj(grad * update), of_input, of_hidden


# ---- packed sequences


def packed_rows(input, batch_sizes, rows, batch_first):
    """The rows of padded sequences (steps, batch, ...), by steps: (rows, ...)."""
    batch, steps = input.shape[:2] if batch_first else input.shape[1::-1]
    if batch_sizes.shape[0] > steps:
        raise RuntimeError(
            f"the longest sequence has {batch_sizes.shape[0]} steps, but input of shape "
            f"{list(input.shape)} has {steps}"
        )
    step, column = _places(batch_sizes, rows, batch)[1][1]
    return input[column, step] if batch_first else input[step, column]


def padded_rows(data, batch_sizes, batch, total_length, padding_value, batch_first):
    """Sequences (steps, batch, ...) of the rows of packed ones, and the value where none is."""
    if not data.size:
        shape = (batch, total_length) if batch_first else (total_length, batch)
        return jnp.full(shape + data.shape[1:], padding_value, data.dtype)
    valid, (row, _) = _places(batch_sizes, data.shape[0], batch)
    missing = [(0, total_length - batch_sizes.shape[0]), (0, 0)]
    valid, row = jnp.pad(valid, missing), jnp.pad(row, missing)
    if batch_first:
        valid, row = valid.T, row.T
    valid = jnp.reshape(valid, valid.shape + (1,) * (data.ndim - 1))
    return jnp.where(valid, data[row], jnp.asarray(padding_value, data.dtype))


def packed_rows_backward(grad, batch_sizes, shape, batch_first):
    batch, steps = shape[:2] if batch_first else shape[1::-1]
    return padded_rows(grad, batch_sizes, batch, steps, 0, batch_first)
