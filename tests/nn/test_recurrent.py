"""Recurrent layers and packed sequences: values, gradients, checks and state as PyTorch's."""

import functools
import math

import jax
import jax.numpy as jnp
import pytest
from helpers.as_torch import as_torch, error, warned

import jaxgrad
from jaxgrad.core.jaxprs import equations_of

close = functools.partial(as_torch, precision=1e-8)  # sums are added up in another order


def numbers(torch, *shape, first=0):
    """Numbers without a pattern that a mistake could reproduce."""
    count = functools.reduce(lambda a, b: a * b, shape, 1)
    return torch.tensor([math.sin(1.3 * (i + first) ** 2 + 0.7) for i in range(count)]).reshape(
        shape
    )


def wide(body):
    """The body with float64 for the default dtype."""

    @functools.wraps(body)
    def run(torch):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return body(torch)
        finally:
            torch.set_default_dtype(before)

    return run


def with_fixed_weights(torch, layer):
    """The layer with fixed weights."""
    for position, weight in enumerate(layer.parameters()):
        weight.data = numbers(torch, *weight.shape, first=position) / 2
    return layer


def packed(torch, *lengths, size=2, sort=False):
    rnn = torch.nn.utils.rnn
    padded = numbers(torch, max(lengths), len(lengths), size, first=3)
    return rnn.pack_padded_sequence(padded, list(lengths), enforce_sorted=not sort)


def flat(result):
    """The tensors in nested results of a layer."""
    if isinstance(result, tuple):
        return [tensor for part in result for tensor in flat(part)]
    return [] if result is None else [result]


def with_gradients(torch, layer, *args):
    """All results of a layer with fixed weights, and the gradients of its weights."""
    results = flat(with_fixed_weights(torch, layer)(*args))
    floats = [result for result in results if result.is_floating_point()]
    weights = [numbers(torch, *result.shape, first=4) for result in floats]
    parameters = list(layer.parameters())
    gradients = torch.autograd.grad(floats, parameters, weights)
    return [*results, *gradients]


@pytest.mark.slow
@close
@wide
def test_layers_over_sequences(torch):
    nn, x = torch.nn, numbers(torch, 3, 2, 2)
    states = numbers(torch, 2, 2, 1), numbers(torch, 2, 2, 2, first=7)
    return [
        with_gradients(torch, nn.LSTM(2, 2, 2, batch_first=True), x),
        with_gradients(torch, nn.LSTM(2, 2, bidirectional=True, proj_size=1), x, states),
        with_gradients(torch, nn.GRU(2, 3, bias=False), x[:, 0]),
        with_gradients(torch, nn.RNN(2, 2, 2, "relu"), x, states[1]),
        with_gradients(torch, nn.RNN(2, 2), x[0], states[1][:1, 0]),
        with_gradients(torch, nn.LSTM(2, 2, batch_first=True), x[0]),
    ]


@pytest.mark.slow
@close
@wide
def test_layers_over_packed_sequences(torch):
    nn, first = torch.nn, numbers(torch, 2, 3, 2, first=9)
    return [
        with_gradients(torch, nn.LSTM(2, 2, bidirectional=True), packed(torch, 4, 2, 2)),
        with_gradients(torch, nn.GRU(2, 2, 2), packed(torch, 1, 4, 2, sort=True), first),
        with_gradients(torch, nn.RNN(2, 2), packed(torch, 2, 3, sort=True)),
    ]


@pytest.mark.slow
@close
@wide
def test_cells(torch):
    nn, x, h = torch.nn, numbers(torch, 3, 2), numbers(torch, 3, 2, first=6)
    return [
        with_gradients(torch, nn.RNNCell(2, 2, nonlinearity="relu"), x, h),
        with_gradients(torch, nn.LSTMCell(2, 2, bias=False), x, (h, h * 2)),
        with_gradients(torch, nn.GRUCell(2, 2), x[0], h[0]),
        with_gradients(torch, nn.LSTMCell(2, 1), x),
    ]


@pytest.mark.slow
@close
@wide
def test_second_derivatives_of_a_gru(torch):
    layer, x = (
        with_fixed_weights(torch, torch.nn.GRU(2, 2)),
        numbers(torch, 3, 1, 2).requires_grad_(),
    )
    inputs = [x, *layer.parameters()]
    first = torch.autograd.grad(layer(x)[0].square().sum(), inputs, create_graph=True)
    return torch.autograd.grad([gradient.square().sum() for gradient in first], inputs)


@as_torch
def test_state_and_text(torch):
    nn = torch.nn
    layers = [
        nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2, batch_first=True, dropout=0.5),
        nn.GRU(3, 4, bias=False),
        nn.RNN(3, 2, 2, "relu", True, True),
        nn.LSTMCell(2, 3),
        nn.GRUCell(2, 3, bias=False),
        nn.RNNCell(2, 3, nonlinearity="relu"),
    ]
    told = [[str(x), [[n, list(p.shape)] for n, p in x.state_dict().items()]] for x in layers]
    lstm = layers[0]
    lstm.flatten_parameters()
    same = [a is b for a, b in zip(lstm.all_weights[0], lstm._flat_weights[:5], strict=True)]
    return told, [list(map(len, lstm.all_weights)), same, len(lstm._flat_weights)]


@as_torch
def test_errors_of_layers(torch):
    nn, x = torch.nn, torch.ones(3, 2, 2)
    gru, lstm, cell = nn.GRU(2, 3), nn.LSTM(2, 3), nn.GRUCell(2, 3)
    zeros = torch.zeros(1, 2, 3)
    return [
        error(gru, torch.ones(3, 2, 5)),
        error(gru, torch.ones(3)),
        error(gru, x.double()),
        error(gru, x, torch.zeros(2, 2, 3)),
        error(gru, x, torch.zeros(2, 3)),
        error(gru, x[:, 0], zeros),
        error(gru, x[:0]),
        error(lstm, x, (zeros, zeros[:, :1])),
        error(lstm, x, (zeros, zeros[0])),
        error(gru, packed(torch, 3, 1), torch.zeros(1, 3, 3)),
        error(cell, x),
        error(cell, x[0], torch.zeros(1, 3)),
        error(cell, torch.ones(2, 3)),
        error(nn.LSTMCell(2, 3), x[0], zeros[0]),
        error(lambda: nn.GRU(2, 3, proj_size=1)),
        error(lambda: nn.LSTM(2, 3, proj_size=3)),
        error(lambda: nn.LSTM(0, 3)),
        error(lambda: nn.LSTM(2.0, 3)),
        error(lambda: nn.LSTM(2, 3, bias=1)),
        error(lambda: nn.RNN(2, 3, nonlinearity="x")),
        error(lambda: nn.LSTM(2, 3, dropout=2), words="dropout should be a number in range [0, 1]"),
        warned(lambda: nn.LSTM(2, 3, dropout=0.5).dropout),
    ]


@as_torch
def test_packing(torch):
    rnn, x = torch.nn.utils.rnn, torch.arange(12).reshape(3, 2, 2)
    one = rnn.pack_padded_sequence(x, torch.tensor([1, 3]), enforce_sorted=False)
    two = rnn.pack_sequence([x[:2, 0], x[:1, 1]])
    told = [
        list(one),
        [two.data, two.batch_sizes, two.sorted_indices is None, two.unsorted_indices is None],
        rnn.pad_packed_sequence(one, batch_first=True, padding_value=-1, total_length=4),
        rnn.pad_packed_sequence(two),
        rnn.unpack_sequence(one),
        rnn.pad_sequence([x[0], x[1, :1]], True, 7.0, padding_side="left"),
        rnn.unpad_sequence(x.transpose(0, 1), torch.tensor([1, 2]), True),
        rnn.invert_permutation(torch.tensor([2, 0, 1])),
    ]
    wide = one.double()
    kept = [wide.to(torch.float64) is wide, wide.data.dtype == torch.float64, wide.is_cuda]
    sequence = rnn.PackedSequence((x[0], one.batch_sizes[:1]), sorted_indices=torch.tensor([1, 0]))
    return told, [*kept, one.cpu() is one], sequence._fields, sequence.unsorted_indices


@as_torch
def test_errors_of_packing(torch):
    rnn, x = torch.nn.utils.rnn, torch.ones(3, 2, 2)
    return [
        error(rnn.pack_padded_sequence, x, [1, 3]),
        error(rnn.pack_padded_sequence, x, [3, 0]),
        error(rnn.pack_padded_sequence, x, [3]),
        error(rnn.pack_padded_sequence, x, [[3, 1]], words="lengths' argument should be a 1D CPU"),
        error(rnn.pack_padded_sequence, x[:0], [1, 1]),
        error(lambda: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1]), total_length=2)),
        error(rnn.pad_sequence, []),
        error(rnn.pad_sequence, 3),
        error(lambda: rnn.pad_sequence([x], padding_side="top")),
        error(rnn.pack_sequence, [x[:1], x]),
    ]


@pytest.mark.slow
def test_longer_sequences_compile_the_same_program():
    layer = jaxgrad.nn.LSTM(2, 3, 2, bidirectional=True).requires_grad_(False)

    def gradient(x):
        x = jaxgrad.asarray(x).requires_grad_()
        return jaxgrad.autograd.grad(layer(x)[0].sum(), x)[0]._array

    def equations(steps):
        return sum(1 for _ in equations_of(jax.make_jaxpr(gradient)(jnp.ones((steps, 1, 2)))))

    assert 0 < equations(3) == equations(30)


def trained(compiled, lengths, is_sorted):
    """The loss after two steps of a tagger of packed sequences."""
    jaxgrad.manual_seed(0)
    rnn, layer = jaxgrad.nn.utils.rnn, jaxgrad.nn.GRU(2, 3, bidirectional=True)
    optimizer = jaxgrad.optim.SGD(layer.parameters(), lr=0.5)
    x = jaxgrad.linspace(-1, 1, 16).reshape(4, 2, 2)

    def step(x):
        optimizer.zero_grad()
        output, _ = layer(rnn.pack_padded_sequence(x, lengths, enforce_sorted=is_sorted))
        loss = rnn.pad_packed_sequence(output)[0].square().sum()
        loss.backward()
        optimizer.step()
        return loss

    step = jaxgrad.jit(step) if compiled else step
    losses = [step(x).item() for _ in range(2)]
    assert not compiled or len(step.traces) == 1
    return losses


@pytest.mark.slow
def test_a_compiled_step_over_packed_sequences():
    for lengths, is_sorted in (([2, 4], False), ([4, 1], True)):
        eager = trained(False, lengths, is_sorted)
        assert trained(True, lengths, is_sorted) == pytest.approx(eager, rel=1e-6)


@pytest.mark.slow
def test_a_packed_sequence_is_an_argument_of_compiled_functions():
    rnn, layer = jaxgrad.nn.utils.rnn, jaxgrad.nn.LSTM(2, 3)
    sequence = packed(jaxgrad, 1, 3, sort=True)

    @jaxgrad.jit
    def run(sequence):
        return rnn.pad_packed_sequence(layer(sequence)[0])

    eager = rnn.pad_packed_sequence(layer(sequence)[0])
    assert all(map(jaxgrad.allclose, run(sequence), eager))


@pytest.mark.slow
def test_dropout_between_layers():
    jaxgrad.manual_seed(1)
    layer = jaxgrad.nn.RNN(4, 50, 2, "relu", dropout=0.5)
    with jaxgrad.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.bias_ih_l0.fill_(1)
        layer.weight_ih_l1.copy_(jaxgrad.eye(50))
    output, _ = layer(jaxgrad.ones(3, 2, 4))
    assert set(output.unique().tolist()) == {0.0, 2.0} and 0.3 < (output > 0).float().mean() < 0.7
    output.sum().backward()
    # the gradient goes where the outputs were not dropped
    assert layer.bias_ih_l0.grad.sum() == output.sum()
    assert layer.eval()(jaxgrad.ones(3, 2, 4))[0].unique().tolist() == [1.0]


def test_one_kernel_for_each_pass():
    layer, x = jaxgrad.nn.LSTM(2, 3, 2, bidirectional=True), jaxgrad.ones(4, 1, 2)
    output = layer(x)[0]
    assert output.grad_fn.name() == "CudnnRnnBackward0"
    assert {node.name() for node, _ in output.grad_fn.next_functions if node} == {"AccumulateGrad"}


def test_functions_under_the_names_that_pytorch_has_in_cpp():
    from jaxgrad import _VF

    assert _VF.lstm is jaxgrad.lstm and _VF.gru_cell is jaxgrad.gru_cell
    x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert _VF.native_dropout(x, 0.5, False)[0].tolist() == x.tolist()
    with pytest.raises(AttributeError, match="has no attribute 'lsmt'"):
        _VF.lsmt  # noqa: B018
