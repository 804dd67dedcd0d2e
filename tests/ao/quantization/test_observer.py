"""Observers: what they record, and the scale and zero point of it, by the formulas of affine
quantization.
"""

import warnings

import pytest

import jaxgrad as torch

q = torch.ao.quantization

INPUTS = [[[-1.0, 2.0], [0.5, 3.0]], [[-3.0, 1.0], [0.0, 0.25]]]


def observed(observer):
    for numbers in INPUTS:
        x = torch.tensor(numbers)
        assert observer(x) is x
    return observer


def numbers(tensors):
    return [tensor.tolist() for tensor in tensors]


# the least and greatest numbers of INPUTS, and their moving averages with the weight 0.5
RANGES = {
    "all": (q.MinMaxObserver, {}, -3.0, 3.0),
    "average": (q.MovingAverageMinMaxObserver, {"averaging_constant": 0.5}, -2.0, 2.0),
    "channels": (q.PerChannelMinMaxObserver, {}, [-3.0, 0.0], [2.0, 3.0]),
    "axis": (q.PerChannelMinMaxObserver, {"ch_axis": 1}, [-3.0, 0.25], [0.5, 3.0]),
    "average of channels": (
        q.MovingAveragePerChannelMinMaxObserver,
        {"averaging_constant": 0.5},
        [-2.0, 0.25],
        [1.5, 1.625],
    ),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges(name):
    make, options, low, high = RANGES[name]
    observer = observed(make(**options))
    assert numbers((observer.min_val, observer.max_val)) == [low, high]
    observer.reset_min_max_vals()
    assert observed(observer).min_val.tolist() == low


def test_scale_and_zero_point():
    # 6 / 255 = 0.0235..., and 0 stands at 3 / 0.0235... = 127.5, rounded to even
    scale, zero_point = observed(q.MinMaxObserver()).calculate_qparams()
    assert scale.item() == pytest.approx(6 / 255) and zero_point.item() == 128
    symmetric = {"dtype": torch.qint8, "qscheme": torch.per_tensor_symmetric}
    scale, zero_point = observed(q.MinMaxObserver(**symmetric)).calculate_qparams()
    assert scale.item() == pytest.approx(3 / 127.5) and zero_point.item() == 0
    floats = {"qscheme": torch.per_channel_affine_float_qparams}
    scale, zero_point = observed(q.PerChannelMinMaxObserver(**floats)).calculate_qparams()
    assert scale.tolist() == pytest.approx([5 / 255, 3 / 255])
    assert zero_point.tolist() == pytest.approx([3 * 255 / 5, 0])
    observer = q.MinMaxObserver(quant_min=0, quant_max=15, reduce_range=True)
    assert (observer.quant_min, observer.quant_max) == (0, 7)
    assert q.MinMaxObserver(eps=0.5)(torch.ones(1)).item() == 1


def test_without_inputs():
    observer = q.MinMaxObserver()
    with pytest.warns(UserWarning, match="must run observer before"):
        assert numbers(observer.calculate_qparams()) == [[1.0], [0]]
    assert repr(observer) == "MinMaxObserver(min_val=inf, max_val=-inf)"


def test_state():
    source = observed(q.PerChannelMinMaxObserver())
    target = q.PerChannelMinMaxObserver()
    target.load_state_dict(source.state_dict())
    assert target.max_val.tolist() == source.max_val.tolist()
    assert [*target.state_dict()] == ["eps", "min_val", "max_val"]


def test_with_args():
    make = q.MinMaxObserver.with_args(dtype=torch.qint8).with_args(eps=0.25)
    assert make().dtype is torch.qint8 and make().eps.item() == 0.25
    assert q.default_observer().quant_max == 127


def test_compiled_observers():
    observer = q.MovingAverageMinMaxObserver(averaging_constant=0.5)
    step = torch.compile(lambda x: observer(x) * 2)
    for numbers_ in INPUTS:
        step(torch.tensor(numbers_))
    assert (observer.min_val.item(), observer.max_val.item()) == (-2.0, 2.0)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: q.MinMaxObserver(qscheme=torch.per_channel_affine), NotImplementedError, "only"),
        (lambda: q.MinMaxObserver(quant_min=1, quant_max=5), AssertionError, "must include 0"),
        (lambda: q.MinMaxObserver(dtype=torch.float32), AssertionError, "only works for qint8"),
        (
            lambda: q.MinMaxObserver(reduce_range=True, qscheme=torch.per_tensor_symmetric),
            NotImplementedError,
            "Cannot reduce range",
        ),
        (lambda: q.NoopObserver().calculate_qparams(), Exception, "should not be called"),
    ],
)
def test_what_raises(make, error, words):
    with warnings.catch_warnings(), pytest.raises(error, match=words):
        make()


def test_older_names_of_fixed_ranges():
    """The names that PyTorch has from before its ranges were in the names."""
    old = q.default_affine_fixed_qparams_observer()
    assert (old.scale.item(), old.zero_point.item()) == (1 / 256, 0)
    old = q.default_symmetric_fixed_qparams_fake_quant()
    assert (old.scale.item(), old.zero_point.item()) == (2 / 256, 128)
    assert q.default_symmetric_fixed_qparams_observer().zero_point.item() == 128
    assert q.default_affine_fixed_qparams_fake_quant().zero_point.item() == 0
