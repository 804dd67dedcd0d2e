"""What recurrent layers consist of, step by step: a part of the table of `_decompositions`."""

from __future__ import annotations

from .. import ops
from ..core.symbolic_extents import is_symbolic

aten = ops.aten


def _product(input, weight, bias):
    """`input @ weight.T + bias` of rows."""
    columns = aten.permute.default(weight, [1, 0])
    if bias is None:
        return aten.mm.default(input, columns)
    return aten.addmm.default(bias, input, columns)


def _lstm_step(input, state, weights):
    hidden, cell = state
    of_input, of_hidden, *biases = weights
    projection = biases.pop() if len(biases) % 2 else None
    first, second = biases or (None, None)
    gates = aten.add.Tensor(_product(hidden, of_hidden, second), _product(input, of_input, first))
    size = cell.shape[1]
    enter, forget, change, leave = aten.split_with_sizes.default(gates, [size] * 4, 1)
    enter, forget, leave = (aten.sigmoid.default(gate) for gate in (enter, forget, leave))
    change = aten.mul.Tensor(enter, aten.tanh.default(change))
    cell = aten.add.Tensor(aten.mul.Tensor(forget, cell), change)
    hidden = aten.mul.Tensor(leave, aten.tanh.default(cell))
    return hidden if projection is None else _product(hidden, projection, None), cell


def _gru_step(input, state, weights):
    (hidden,) = state
    of_input, of_hidden, *biases = weights
    first, second = biases or (None, None)
    sizes = [hidden.shape[1]] * 3
    inner = aten.split_with_sizes.default(_product(input, of_input, first), sizes, 1)
    outer = aten.split_with_sizes.default(_product(hidden, of_hidden, second), sizes, 1)
    reset = aten.sigmoid.default(aten.add.Tensor(outer[0], inner[0]))
    update = aten.sigmoid.default(aten.add.Tensor(outer[1], inner[1]))
    new = aten.tanh.default(aten.add.Tensor(inner[2], aten.mul.Tensor(outer[2], reset)))
    kept = aten.mul.Tensor(aten.sub.Tensor(hidden, new), update)
    return (aten.add.Tensor(kept, new),)


def _simple_step(activation: str):
    def step(input, state, weights):
        (hidden,) = state
        of_input, of_hidden, *biases = weights
        first, second = biases or (None, None)
        sums = _product(input, of_input, first), _product(hidden, of_hidden, second)
        return (getattr(aten, activation).default(aten.add.Tensor(*sums)),)

    return step


def _direction(step, items, state, weights, backward):
    """The outputs of one direction of a layer, in the order of the items, and the last state."""
    outputs = []
    for item in reversed(items) if backward else items:
        state = step(item, state, weights)
        outputs.append(state[0])
    return outputs[::-1] if backward else outputs, state


def _layers(step):
    """The outputs and the last states of a network of layers; NotImplemented for one that it does
    not unroll.
    """

    def network(
        input, states, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    ):
        time = 1 if batch_first else 0
        length = input.shape[time] if input.ndim == 3 else None
        count = 4 if has_biases else 2
        ways = 2 if bidirectional else 1
        if len(params) == (count + 1) * num_layers * ways:  # with projections
            count += 1
        is_plain = len(params) == count * num_layers * ways and not (dropout and train)
        if not length or is_symbolic(length) or not is_plain:
            return NotImplemented
        items = [aten.select.int(input, time, place) for place in range(length)]
        ends = []
        for layer in range(num_layers):
            sides = []
            for way in range(ways):
                number = layer * ways + way
                first = tuple(aten.select.int(state, 0, number) for state in states)
                weights = params[number * count : (number + 1) * count]
                outputs, end = _direction(step, items, first, weights, way == 1)
                sides.append(outputs)
                ends.append(end)
            pairs = zip(*sides, strict=True)
            items = [aten.cat.default([*pair], 1) if ways == 2 else pair[0] for pair in pairs]
        return _stacked(items, time), *[_stacked(parts, 0) for parts in zip(*ends, strict=True)]

    return network


def _stacked(tensors, dim):
    return aten.cat.default([aten.unsqueeze.default(tensor, dim) for tensor in tensors], dim)


def _lstm(input, hx, *options):
    return _layers(_lstm_step)(input, hx, *options)


def _of_one_state(step):
    def network(input, hx, *options):
        return _layers(step)(input, [hx], *options)

    return network


def _cell(step):
    def cell(input, hx, *weights):
        states = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
        state = step(input, states, [weight for weight in weights if weight is not None])
        return state if len(states) > 1 else state[0]

    return cell


FUNCTIONS = {
    "lstm_cell.default": _cell(_lstm_step),
    "gru_cell.default": _cell(_gru_step),
    "rnn_tanh_cell.default": _cell(_simple_step("tanh")),
    "rnn_relu_cell.default": _cell(_simple_step("relu")),
    "lstm.input": _lstm,
    "gru.input": _of_one_state(_gru_step),
    "rnn_tanh.input": _of_one_state(_simple_step("tanh")),
    "rnn_relu.input": _of_one_state(_simple_step("relu")),
}
