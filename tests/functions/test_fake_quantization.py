"""Rounding with masks, learned scales and recorded ranges: the numbers are of PyTorch 2.13."""

import numpy as np

import jaxgrad as torch

VALUES = [-1.0, 0.0, 0.26, 1.0, 2.5, 300.0, -400.0, 7.77]

LEARNED = {
    "values": [-0.2, 0.0, 0.3, 1.0, 1.3, 1.3, -0.2, 1.3],
    "input": [0.0, 0.0, 0.26, 1.0, 0.0, 0.0, 0.0, 0.0],
    "scale": [4835.61376953125],
    "zero_point": [9.072999954223633],
}


def test_gradients_of_learned_scales():
    x = torch.tensor(VALUES, requires_grad=True)
    scale = torch.tensor([0.1], requires_grad=True)
    zero_point = torch.tensor([2.0], requires_grad=True)
    y = torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero_point, 0, 15, 1.0)
    (y * x.detach()).sum().backward()
    np.testing.assert_allclose(y.tolist(), LEARNED["values"], 1e-6)
    np.testing.assert_allclose(x.grad.tolist(), LEARNED["input"], 1e-6)
    np.testing.assert_allclose(scale.grad.tolist(), LEARNED["scale"], 1e-5)
    np.testing.assert_allclose(zero_point.grad.tolist(), LEARNED["zero_point"], 1e-5)
    rows = torch._fake_quantize_learnable_per_channel_affine(
        x.view(2, 4), scale.expand(2), zero_point.expand(2), 0, 0, 15
    )
    assert rows.view(8).tolist() == y.tolist()


def test_learned_scales_keep_the_shape_and_limit_nan():
    scale, start = torch.tensor([0.5], requires_grad=True), torch.tensor([1.0])
    learned = torch._fake_quantize_learnable_per_tensor_affine
    assert learned(torch.tensor(0.3), scale, start, -2, 3).shape == ()
    y = learned(torch.tensor([float("nan"), 0.3]), scale, start, -2, 3)
    assert y.tolist() == [-1.5, 0.5]
    y.sum().backward()
    np.testing.assert_allclose(scale.grad.tolist(), [-3 + (0.5 - 0.3) / 0.5], rtol=1e-6)


def test_masks_of_what_is_in_the_range():
    x = torch.tensor([0.5, 1.5, -2.0, 9.0])
    start, scale = torch.tensor([0.5, 1.0]), torch.tensor([0.5, 2.0])
    aten, rows = torch.ops.aten, x.view(2, 2)
    value, mask = aten.fake_quantize_per_channel_affine_cachemask(rows, scale, start, 0, 0, 4)
    assert value.tolist() == [[0.75, 1.75], [-2.0, 6.0]]
    assert mask.tolist() == [[True, True], [True, False]]
    value, mask = aten.fake_quantize_per_tensor_affine_cachemask(x, 1.0, 3, 0, 7)
    assert value.tolist() == [0, 2, -2, 4] and mask.tolist() == [True, True, True, False]
    numbers = torch.tensor([1.0]), torch.tensor([3.0])
    for enabled, expected in ((1, value), (0, x)):
        value, mask = torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
            x, *numbers, torch.tensor([enabled]), 0, 7
        )
        assert value.tolist() == expected.tolist()
        assert mask.tolist() == [True, True, True, not enabled]


def recorded(channels, dtype=torch.int32):
    inf = float("inf")
    bounds = torch.full((channels,), inf), torch.full((channels,), -inf)
    return *bounds, torch.ones(channels), torch.zeros(channels, dtype=dtype)


FUSED = {
    "first": [-0.81585, 0.0, 0.0, 0.81585, 2.44755, 8.1585],
    "gradient": [-1.0, 0.0, 0.26, 1.0, 2.5, 7.77],
    "second": [-2.93706, 0.0, 0.97902, 2.93706, 7.83216, 9.7902],
    "buffers": [[-1.2], [9.324], [0.97902], [0]],
    "rows": [[-1.008, 0.0, 0.252], [1.036, 2.59, 7.77]],
    "buffers of rows": [[-1.0, 1.0], [0.26, 7.77], [0.084, 0.518], [12, 0]],
}


def test_recorded_ranges():
    x = torch.tensor([-1.0, 0.0, 0.26, 1.0, 2.5, 7.77], requires_grad=True)
    on, buffers = torch.tensor([1]), recorded(1)
    options = 0.1, -10, 10, 0, False, True
    first = torch.fused_moving_avg_obs_fake_quant(x, on, on, *buffers, *options)
    (first * x.detach()).sum().backward()
    second, mask = torch._fused_moving_avg_obs_fq_helper(x * 3, on, on, *buffers, *options)
    assert mask.tolist() == [True] * 5 + [False]
    of_rows = recorded(2)
    rows = torch.fused_moving_avg_obs_fake_quant(
        x.view(2, 3), on, on, *of_rows, 0.1, 0, 15, 0, True
    )
    for result, name in ((first, "first"), (x.grad, "gradient"), (second, "second")):
        np.testing.assert_allclose(result.tolist(), FUSED[name], rtol=1e-6)
    np.testing.assert_allclose(rows.tolist(), FUSED["rows"], rtol=1e-6)
    for result, name in ((buffers, "buffers"), (of_rows, "buffers of rows")):
        np.testing.assert_allclose([b.tolist() for b in result], FUSED[name], rtol=1e-6)


def test_ranges_are_neither_recorded_nor_used_where_switches_say_so():
    x, on, off = torch.tensor([-1.0, 2.0]), torch.tensor([1]), torch.tensor([0])
    buffers = recorded(1)
    fused = torch.fused_moving_avg_obs_fake_quant
    assert fused(x, off, off, *buffers, 0.1, 0, 15, 0).tolist() == x.tolist()
    assert buffers[0].isinf().all() and buffers[2].tolist() == [1]
    assert fused(x, on, off, *buffers, 0.1, 0, 15, 0).tolist() == x.tolist()
    assert buffers[1].tolist() == [2] and buffers[2].tolist() == [1]
    np.testing.assert_allclose(fused(x, off, on, *buffers, 0.1, 0, 15, 0).tolist(), [-1.0, 2.0])
    np.testing.assert_allclose(buffers[2].tolist(), [0.2])


def test_a_symmetric_range_of_an_odd_number_of_integers():
    q = torch.ao.quantization
    module = q.FusedMovingAvgObsFakeQuantize(
        *(q.MovingAverageMinMaxObserver, -127, 127),
        dtype=torch.qint8,
        qscheme=torch.per_tensor_symmetric,
    )
    module(torch.tensor([0.5, 1.5, -2.0, 9.0]))
    np.testing.assert_allclose(module.scale.tolist(), [0.07114514708518982], rtol=1e-6)
