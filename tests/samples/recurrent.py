"""Recurrent networks, their cells, and packed sequences."""

from . import Int, S, T

SMALL = {"low": -0.3, "high": 0.3}  # complex gates have poles, from which such numbers keep away


def weights(gates, layers=1, directions=1, size=2, hidden=2, outputs=None, biases=True):
    """The weights of each layer and direction."""
    rows, outputs, markers = gates * hidden, outputs or hidden, []
    for layer in range(layers):
        width = directions * outputs if layer else size
        for _ in range(directions):
            shapes = [(rows, width), (rows, outputs)]
            shapes += [(rows,)] * (2 * biases)
            shapes += [(outputs, hidden)] * (outputs != hidden)
            markers += [T(*shape, **SMALL) for shape in shapes]
    return markers


def states(count=1, outputs=2, hidden=2, batch=1, **options):
    return [T(count, batch, outputs, **options), T(count, batch, hidden, **options)]


SIZES = Int(values=[2, 1])
LONG = Int(values=[3, 2, 2, 1])

# the numbers after the weights: has_biases, layers, dropout, train, bidirectional, batch_first
ONE_LAYER = True, 1, 0.0, False, False, False
BOTH_WAYS = True, 1, 0.0, False, True
DEEP = True, 2, 0.0, True

SAMPLES = [
    S("lstm", T(2, 1, 2), states(), weights(4), *ONE_LAYER),
    S("lstm", T(3, 1), SIZES, states(2, 1, 1, 2), weights(4, 1, 2, 1, 1), *BOTH_WAYS),
    S(
        "lstm",
        *(T(8, 2), LONG, states(4, 1, 2, 3), weights(4, 2, 2, outputs=1, biases=False)),
        *(False, 2, 0.0, True, True),
    ),
    S(
        "lstm",
        *(T(2, 3, 2, **SMALL), states(2, batch=2, **SMALL), weights(4, 2)),
        *(*DEEP, False, True),
        complex=True,
    ),
    S("lstm", T(2, 0, 2), states(batch=0), weights(4), *ONE_LAYER),
    S("gru", T(2, 1, 2), T(1, 1, 2), weights(3), *ONE_LAYER),
    S("gru", T(3, 1), SIZES, T(2, 2, 1), weights(3, 1, 2, 1, 1), *BOTH_WAYS),
    S(
        "gru",
        *(T(2, 3, 2, **SMALL), T(4, 2, 2, **SMALL), weights(3, 2, 2)),
        *(*DEEP, True, True),
        complex=True,
    ),
    S("rnn_tanh", T(2, 1, 2), T(1, 1, 2), weights(1), *ONE_LAYER),
    S("rnn_tanh", T(3, 2), SIZES, T(2, 2, 2), weights(1, 1, 2), *BOTH_WAYS),
    S(
        "rnn_tanh",
        *(T(8, 2, **SMALL), LONG, T(4, 3, 2, **SMALL), weights(1, 2, 2)),
        *(*DEEP, True),
        complex=True,
    ),
    S("rnn_relu", T(2, 1, 2), T(1, 1, 2), weights(1), *ONE_LAYER),
    S("rnn_relu", T(3, 2), SIZES, T(2, 2, 2), weights(1, 1, 2), *BOTH_WAYS),
    S("lstm_cell", T(2, 3), [T(2, 2), T(2, 2)], *weights(4, size=3)),
    S("lstm_cell", T(1, 3), [T(1, 1), T(1, 1)], T(4, 3), T(4, 1)),
    S("gru_cell", T(2, 3), T(2, 2), *weights(3, size=3)),
    S("gru_cell", T(1, 3), T(1, 1), T(3, 3), T(3, 1)),
    S("rnn_tanh_cell", T(2, 3), T(2, 2), *weights(1, size=3), complex=True),
    S("rnn_relu_cell", T(2, 3), T(2, 2), *weights(1, size=3)),
    S("ops._thnn_fused_lstm_cell", T(2, 4), T(2, 4), T(2, 1), T(4), T(4)),
    S("ops._thnn_fused_lstm_cell", T(1, 8), T(1, 8), T(1, 2), complex=True),
    S("ops._thnn_fused_gru_cell", T(2, 3), T(2, 3), T(2, 1), T(3), T(3)),
    S("ops._thnn_fused_gru_cell", T(1, 6), T(1, 6), T(1, 2), None, T(6), complex=True),
    S("ops._pack_padded_sequence", T(3, 2, 2), Int(values=[3, 1]), False, dynamic=True),
    S("ops._pack_padded_sequence", T(3, 4), Int(values=[4, 2, 2]), True, dynamic=True),
    S("ops._pad_packed_sequence", T(3, 2), SIZES, False, 0.0, 3, dynamic=True),
    S("ops._pad_packed_sequence", T(8), LONG, True, 1.5, 4, dynamic=True),
]
