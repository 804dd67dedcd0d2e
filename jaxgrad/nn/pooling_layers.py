"""Pooling layers: each calls a function of `functional`."""

from __future__ import annotations

from . import pooling
from .function_layer import REQUIRED, FunctionLayer
from .pooling import expanded


class _Pool(FunctionLayer):
    """A pooling layer, whose windows by default do not overlap."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.stride is None:
            self.stride = self.kernel_size


_WINDOW = {"kernel_size": REQUIRED, "stride": None, "padding": 0}


class _MaxPool(_Pool):
    shown = (*_WINDOW, "dilation", "ceil_mode")


_MAX_POOL = _WINDOW | {"dilation": 1, "return_indices": False, "ceil_mode": False}


class MaxPool1d(_MaxPool, function=pooling.max_pool1d, **_MAX_POOL):
    """Max pooling of (N, C, L) or (C, L); see `functional.max_pool1d`.

    >>> jaxgrad.nn.MaxPool1d(2)(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]))
    tensor([[5., 3.]])
    """


class MaxPool2d(_MaxPool, function=pooling.max_pool2d, **_MAX_POOL):
    """Max pooling of (N, C, H, W) or (C, H, W); see `functional.max_pool2d`.

    >>> jaxgrad.nn.MaxPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """


class MaxPool3d(_MaxPool, function=pooling.max_pool3d, **_MAX_POOL):
    """Max pooling of (N, C, D, H, W) or (C, D, H, W); see `functional.max_pool3d`.

    >>> jaxgrad.nn.MaxPool3d(2)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


class _AvgPool(_Pool):
    shown = tuple(_WINDOW)


_AVG_POOL = _WINDOW | {"ceil_mode": False, "count_include_pad": True}


class AvgPool1d(_AvgPool, function=pooling.avg_pool1d, **_AVG_POOL):
    """Average pooling of (N, C, L) or (C, L); see `functional.avg_pool1d`.

    >>> jaxgrad.nn.AvgPool1d(2)(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]))
    tensor([[3.0000, 2.5000]])
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name in _WINDOW:
            setattr(self, name, expanded(getattr(self, name), 1))


class AvgPool2d(_AvgPool, function=pooling.avg_pool2d, **_AVG_POOL, divisor_override=None):
    """Average pooling of (N, C, H, W) or (C, H, W); see `functional.avg_pool2d`.

    >>> jaxgrad.nn.AvgPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """


class AvgPool3d(_AvgPool, function=pooling.avg_pool3d, **_AVG_POOL, divisor_override=None):
    """Average pooling of (N, C, D, H, W) or (C, D, H, W); see `functional.avg_pool3d`.

    >>> jaxgrad.nn.AvgPool3d(2)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


class _LPPool(FunctionLayer):
    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")


_LP_POOL = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}


class LPPool1d(_LPPool, function=pooling.lp_pool1d, **_LP_POOL):
    """Roots of sums of powers in windows of (n, c, l) or (c, l); see `functional.lp_pool1d`.

    >>> jaxgrad.nn.LPPool1d(2, 2)(jaxgrad.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """


class LPPool2d(_LPPool, function=pooling.lp_pool2d, **_LP_POOL):
    """Roots of sums of powers in windows of (n, c, h, w) or (c, h, w); see `functional.lp_pool2d`.

    >>> jaxgrad.nn.LPPool2d(2, (1, 2))(jaxgrad.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """


class LPPool3d(_LPPool, function=pooling.lp_pool3d, **_LP_POOL):
    """Roots of sums of powers in windows of (n, c, d, h, w) or (c, d, h, w); see
    `functional.lp_pool3d`.

    >>> jaxgrad.nn.LPPool3d(2, (1, 1, 2))(jaxgrad.tensor([[[[3.0, 4.0]]]]))
    tensor([[[[5.]]]])
    """


class _MaxUnpool(_Pool):
    shown = tuple(_WINDOW)
    dimensions = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name in _WINDOW:
            setattr(self, name, expanded(getattr(self, name), self.dimensions))

    def forward(self, input, indices, output_size=None):
        """Return zeros with the elements of `input` at `indices`."""
        return super().forward(input, indices, output_size=output_size)


class MaxUnpool1d(_MaxUnpool, function=pooling.max_unpool1d, **_WINDOW):
    """Inverse of max pooling of (n, c, l) or (c, l); see `functional.max_unpool1d`.

    >>> jaxgrad.nn.MaxUnpool1d(2)(jaxgrad.tensor([[5.0]]), jaxgrad.tensor([[1]]))
    tensor([[0., 5.]])
    """

    dimensions = 1


class MaxUnpool2d(_MaxUnpool, function=pooling.max_unpool2d, **_WINDOW):
    """Inverse of max pooling of (n, c, h, w) or (c, h, w); see `functional.max_unpool2d`.

    >>> jaxgrad.nn.MaxUnpool2d((1, 2))(jaxgrad.tensor([[[5.0]]]), jaxgrad.tensor([[[1]]]))
    tensor([[[0., 5.]]])
    """

    dimensions = 2


class MaxUnpool3d(_MaxUnpool, function=pooling.max_unpool3d, **_WINDOW):
    """Inverse of max pooling of (n, c, d, h, w) or (c, d, h, w); see `functional.max_unpool3d`.

    >>> jaxgrad.nn.MaxUnpool3d((1, 1, 2))(jaxgrad.tensor([[[[5.0]]]]), jaxgrad.tensor([[[[1]]]]))
    tensor([[[[0., 5.]]]])
    """

    dimensions = 3


class _AdaptiveAvg(FunctionLayer):
    shown = ("output_size",)


class _AdaptiveMax(FunctionLayer):
    shown = ("output_size",)


_ADAPTIVE_MAX = {"output_size": REQUIRED, "return_indices": False}


class AdaptiveAvgPool1d(_AdaptiveAvg, function=pooling.adaptive_avg_pool1d, output_size=REQUIRED):
    """Means of `output_size` bins of (n, c, l) or (c, l); see
    `functional.adaptive_avg_pool1d`.

    >>> jaxgrad.nn.AdaptiveAvgPool1d(2)(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]])).shape
    torch.Size([1, 2])
    """


class AdaptiveAvgPool2d(_AdaptiveAvg, function=pooling.adaptive_avg_pool2d, output_size=REQUIRED):
    """Means of `output_size` bins of (n, c, h, w) or (c, h, w); see
    `functional.adaptive_avg_pool2d`.

    >>> jaxgrad.nn.AdaptiveAvgPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """


class AdaptiveAvgPool3d(_AdaptiveAvg, function=pooling.adaptive_avg_pool3d, output_size=REQUIRED):
    """Means of `output_size` bins of (n, c, d, h, w) or (c, d, h, w); see
    `functional.adaptive_avg_pool3d`.

    >>> jaxgrad.nn.AdaptiveAvgPool3d(2)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


class AdaptiveMaxPool1d(_AdaptiveMax, function=pooling.adaptive_max_pool1d, **_ADAPTIVE_MAX):
    """Maxima of `output_size` bins of (n, c, l) or (c, l); see
    `functional.adaptive_max_pool1d`.

    >>> jaxgrad.nn.AdaptiveMaxPool1d(2)(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]])).shape
    torch.Size([1, 2])
    """


class AdaptiveMaxPool2d(_AdaptiveMax, function=pooling.adaptive_max_pool2d, **_ADAPTIVE_MAX):
    """Maxima of `output_size` bins of (n, c, h, w) or (c, h, w); see
    `functional.adaptive_max_pool2d`.

    >>> jaxgrad.nn.AdaptiveMaxPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """


class AdaptiveMaxPool3d(_AdaptiveMax, function=pooling.adaptive_max_pool3d, **_ADAPTIVE_MAX):
    """Maxima of `output_size` bins of (n, c, d, h, w) or (c, d, h, w); see
    `functional.adaptive_max_pool3d`.

    >>> jaxgrad.nn.AdaptiveMaxPool3d(2)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


class _FractionalMaxPool(FunctionLayer):
    """A layer whose windows are placed at random, unless `_random_samples` are given."""

    dimensions = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        samples = vars(self).pop("_random_samples", None)
        if "_random_samples" not in self._buffers:
            self.register_buffer("_random_samples", samples)
        ratio = self.output_ratio
        self._check(type(self).__name__)
        self.kernel_size = expanded(self.kernel_size, self.dimensions)
        for name in ("output_size", "output_ratio"):
            value = getattr(self, name)
            setattr(self, name, None if value is None else expanded(value, self.dimensions))
        if ratio is not None and not all(0 < fraction < 1 for fraction in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {ratio})")

    def _check(self, name):
        if self.output_size is None and self.output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if self.output_size is not None and self.output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")


_FRACTIONAL = {"kernel_size": REQUIRED, "output_size": None, "output_ratio": None}
_FRACTIONAL |= {"return_indices": False, "_random_samples": None}


class FractionalMaxPool2d(
    _FractionalMaxPool, function=pooling.fractional_max_pool2d, **_FRACTIONAL
):
    """Maxima of windows that are placed at random in (n, c, h, w) or (c, h, w); see
    `functional.fractional_max_pool2d`.

    >>> jaxgrad.nn.FractionalMaxPool2d(2, output_ratio=0.5)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """

    dimensions = 2


class FractionalMaxPool3d(
    _FractionalMaxPool, function=pooling.fractional_max_pool3d, **_FRACTIONAL
):
    """Maxima of windows that are placed at random in (n, c, d, h, w) or (c, d, h, w); see
    `functional.fractional_max_pool3d`.

    >>> jaxgrad.nn.FractionalMaxPool3d(2, output_ratio=0.5)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """

    dimensions = 3
