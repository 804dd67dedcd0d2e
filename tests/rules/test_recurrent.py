"""Recurrent networks: arguments that do not fit, edges, and the operators of vendors."""

import jax
import jax.numpy as jnp
import numpy
import pytest

import jaxgrad
from jaxgrad import ops

MODES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def network(mode="GRU", *, layers=1, directions=1, dtype=None):
    """The weights and first states of a network from 2 inputs to 3 outputs."""
    jaxgrad.manual_seed(0)
    rows, params = 3 * MODES[mode], []
    for number in range(layers * directions):
        width = 2 if number < directions else 3 * directions
        shapes = (rows, width), (rows, 3), (rows,), (rows,)
        params += [jaxgrad.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes]
    return params, jaxgrad.randn(layers * directions, 2, 3, dtype=dtype)


def gru(x, hx, params, layers=1, bidirectional=False):
    return jaxgrad.gru(x, hx, params, True, layers, 0.0, False, bidirectional, False)


X = jaxgrad.linspace(-1, 1, 12).reshape(3, 2, 2)


@pytest.mark.slow
def test_arguments_of_cudnn_rnn():
    for number, mode in enumerate(["RNN_RELU", "RNN_TANH", "LSTM", "GRU"]):
        params, hx = network(mode, layers=2, directions=2)
        states = [hx, hx * 2] if mode == "LSTM" else hx
        function = getattr(jaxgrad, mode.lower())
        expected = function(X, states, params, True, 2, 0.0, False, True, False)
        cx = hx * 2 if mode == "LSTM" else None
        rest = [2, False, 0.0, False, True, [], None]
        for sizes in ([], [0]):  # of early PyTorch, and with proj_size
            outputs = ops._cudnn_rnn(X, params, 4, None, hx, cx, number, 3, *sizes, *rest)
            assert len(outputs) == 5 and outputs[4].numel() == 0
            for ours, theirs in zip(outputs, expected, strict=False):
                assert jaxgrad.allclose(ours, theirs)
        rest[-2] = [2, 2, 1]
        outputs = ops._cudnn_rnn(X.flatten(0, 1)[:5], params, 4, None, hx, cx, number, 3, *rest)
        expected = function(
            X.flatten(0, 1)[:5],
            jaxgrad.tensor([2, 2, 1]),
            states,
            params,
            True,
            2,
            0.0,
            False,
            True,
        )
        assert jaxgrad.allclose(outputs[0], expected[0])


@pytest.mark.slow
def test_backward_without_the_reserve_computes_it_again():
    params, hx = network("LSTM", layers=2, directions=2, dtype=jaxgrad.float64)
    gradients = []
    for keep in (True, False):
        outputs = ops.recurrent(
            X.double(), params, hx, hx, None, None, "LSTM", True, True, False, keep
        )
        assert (len(outputs) == 3) is not keep
        first = jaxgrad.autograd.grad(outputs[0].square().sum(), params, create_graph=True)
        second = jaxgrad.autograd.grad(sum(g.square().sum() for g in first), params)
        gradients.append([*first, *second])
    assert all(map(jaxgrad.allclose, *gradients))


@pytest.mark.slow
def test_nothing_is_kept_without_a_derivative_to_come(monkeypatch):
    params, hx = network()
    kept, run = [], ops.recurrent
    monkeypatch.setattr(ops, "recurrent", lambda *args: kept.append(args[-1]) or run(*args))
    with jaxgrad.no_grad():
        output = gru(X, hx, params)[0]
    assert jaxgrad.allclose(output, gru(X, hx, params)[0])
    gru(X, hx, [weight.detach() for weight in params])
    jax.eval_shape(lambda x: gru(jaxgrad.asarray(x), hx, [w.detach() for w in params])[0]._array, X)
    assert kept == [False, True, False, True]


@pytest.mark.slow
def test_a_relu_keeps_nan_and_has_slope_0_at_0():
    weights = [jaxgrad.ones(1, 1), jaxgrad.zeros(1, 1)]
    x = jaxgrad.tensor([[[0.0]], [[float("nan")]]], requires_grad=True)
    output, _ = jaxgrad.rnn_relu(
        x, jaxgrad.zeros(1, 1, 1), weights, False, 1, 0.0, False, False, False
    )
    assert output[0].item() == 0 and output[1].isnan().all()
    output[0].sum().backward()
    assert x.grad[0].item() == 0


@pytest.mark.slow
def test_padding_is_not_read():
    """A packed sequence gives what each of its sequences gives alone."""
    params, hx = network(directions=2, dtype=jaxgrad.float64)
    x = X.double()
    rows = jaxgrad.cat([x[0], x[1], x[2, :1]])
    data, last = jaxgrad.gru(rows, jaxgrad.tensor([2, 2, 1]), hx, params, True, 1, 0.0, False, True)
    for number, places in enumerate(([0, 2, 4], [1, 3])):
        alone = slice(number, number + 1)
        expected, state = gru(x[: len(places), alone], hx[:, alone], params, 1, True)
        assert jaxgrad.allclose(data[places], expected[:, 0])
        assert jaxgrad.allclose(last[:, alone], state)
    loss = data[4].square().sum()  # the last step of the longer sequence
    loss.backward()
    assert all(weight.grad.isfinite().all() for weight in params)


@pytest.mark.slow
def test_half_precision():
    for dtype in (jaxgrad.float16, jaxgrad.bfloat16):
        params, hx = network(dtype=dtype)
        output, _ = gru(X.to(dtype), hx, params)
        output.sum().backward()
        assert output.dtype is dtype and params[0].grad.dtype is dtype


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": X.double()}, "must have the same dtype, but got Double and Float"),
        ({"x": X[..., :1]}, "shapes cannot be multiplied"),
        ({"x": X[:, :1]}, r"Expected hidden size \(1, 1, 3\), got \[1, 2, 3\]"),
        ({"x": X[0]}, "input must have 3 dimensions"),
        ({"x": X[:0]}, "Expected sequence length to be larger than 0 in RNN"),
        ({"layers": 2}, "Expected more hidden states in stacked_rnn"),
        ({"params": network()[0][:3]}, "incorrect number of RNN parameters"),
        ({"params": network("LSTM")[0]}, "takes weights of shapes"),
    ],
)
def test_errors_match_pytorch(change, words):
    params, hx = network()
    with pytest.raises(RuntimeError, match=words):
        gru(**{"x": X, "hx": hx, "params": params} | change)


def test_errors_of_packed_arguments():
    params, hx = network()
    for sizes, words in (([2, 2], "add up to the 5 rows"), ([1, 2, 2], "must decrease")):
        with pytest.raises(RuntimeError, match=words):
            jaxgrad.gru(
                jaxgrad.ones(5, 2), jaxgrad.tensor(sizes), hx, params, True, 1, 0.0, False, False
            )
    with pytest.raises(TypeError, match=r"gru\(\) received an invalid combination of arguments"):
        jaxgrad.gru(X, [hx], params, True, 1, 0.0, False, False, False)
    with pytest.raises(TypeError, match="but expected one of"):
        jaxgrad.lstm(X, [hx, hx], params, True, 1)


@pytest.mark.slow
def test_sizes_that_are_traced_are_one_program():
    params, hx = network()
    weights = [jnp.asarray(weight.detach().numpy()) for weight in params]

    @jax.jit
    def run(data, sizes):
        with jaxgrad.no_grad():
            outputs = ops.recurrent(
                data, weights, hx.numpy(), None, sizes, None, "GRU", True, False, False, False
            )
        return outputs[0]

    rows = numpy.ones((4, 2), numpy.float32)
    for sizes in ([2, 2], [2, 1, 1]):
        expected, _ = jaxgrad.gru(
            jaxgrad.tensor(rows), jaxgrad.tensor(sizes), hx, params, True, 1, 0.0, False, False
        )
        assert numpy.allclose(run(rows, jnp.asarray(sizes)), expected.detach().numpy())
    assert numpy.allclose(run(rows, jnp.asarray([2, 2])), run(rows, jnp.asarray([2, 2])))


@pytest.mark.slow
def test_vmap_over_networks():
    """Each example has weights of its own."""
    params, hx = network()
    stacked = [jaxgrad.stack([w.detach(), w.detach() * 0.5]) for w in params]
    mapped = jaxgrad.func.vmap(lambda w: gru(X, hx, w)[0])(stacked)
    for number in range(2):
        assert jaxgrad.allclose(mapped[number], gru(X, hx, [w[number] for w in stacked])[0])
