"""torchvision's operators, which are in C++ for PyTorch: `torch.ops.torchvision.<name>`.

They are compositions of recorded operators, and their derivatives are those of these. A region is
the number of an image and a box, x1, y1, x2, y2; as in torchvision, regions have no derivative.
Operators whose windows depend on the numbers of regions read these, and raise in a trace.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from ..core import dtypes
from ..frontend.array_creation import from_host
from ..frontend.factories import arange
from ..tape.tensor import Tensor, concrete, wrap
from . import _operator

NAMESPACE = "torchvision"

# what torchvision describes besides: gradients, which the operators below have by themselves, and
# operators on quantized and on rotated boxes
UNPROVIDED = """
_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height,
 SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width,
 int sampling_ratio, bool aligned) -> Tensor
_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale,
 SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height,
 SymInt width) -> Tensor
_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale,
 SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels,
 SymInt height, SymInt width) -> Tensor
_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale,
 SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height,
 SymInt width) -> Tensor
_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask,
 Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h,
 SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask)
 -> (Tensor, Tensor, Tensor, Tensor, Tensor)
qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale,
 int rois_zero_point, float spatial_scale, SymInt pooled_height, SymInt pooled_width,
 int sampling_ratio, bool aligned) -> Tensor
box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor
"""

for _schema in UNPROVIDED.strip().replace("\n ", " ").splitlines():
    _operator.define(NAMESPACE, _schema)


def _provides(schema: str):
    """Define the operator that the decorated function computes."""

    def decorate(function):
        _operator.define(NAMESPACE, function.__name__ + schema).register_whole(function)
        return function

    return decorate


@_provides("() -> int")
def _cuda_version():
    return -1


# ---- boxes


@_provides("(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def nms(dets, scores, iou_threshold):
    _check_boxes(dets, scores)
    order = np.asarray(concrete(scores.argsort(descending=True, stable=True), "nms()"))
    boxes = np.asarray(concrete(dets, "nms()"))[order]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    is_kept = np.ones(len(boxes), bool)
    with np.errstate(all="ignore"):
        for place, box in enumerate(boxes):
            if is_kept[place]:
                others = boxes[place + 1 :]
                sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
                shared = np.maximum(sides, 0).prod(1)
                overlap = shared / (areas[place] + areas[place + 1 :] - shared)
                # the threshold is of double precision
                is_kept[place + 1 :] &= ~(overlap > np.float64(iou_threshold))
    return wrap(from_host(order[is_kept])).to(dets.device)


def _check_boxes(dets, scores):
    if dets.ndim != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.ndim}D")
    if dets.shape[1] != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.shape[1]}")
    if scores.ndim != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.ndim}D")
    if len(dets) != len(scores):
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{len(dets)} and {len(scores)}"
        )
    if dets.dtype != scores.dtype:
        raise RuntimeError(
            f"dets should have the same type as scores, but have {dets.dtype} and {scores.dtype}"
        )


# ---- regions


def _check_regions(name, input, rois):
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise RuntimeError(f"{name}: rois must have shape as Tensor[K, 5], not {[*rois.shape]}")
    if input.ndim != 4:
        raise RuntimeError(f"{name}: input must have 4 dimensions, not {input.ndim}")
    if input.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; but type "
            f"{input.dtype} does not equal {rois.dtype}"
        )


class _Pixels:
    """The pixels of images, of one group of channels for each bin, or of one for all bins.

    rows: the channels of a pixel of a group; first: the row (regions, bins, bins) of the first
    pixel of the image and group of a bin.
    """

    def __init__(self, name, input, rois, bins, is_grouped):
        _check_regions(name, input, rois)
        count, channels, self.height, self.width = input.shape
        groups = bins[0] * bins[1] if is_grouped else 1
        if channels % groups:
            raise RuntimeError(
                f"{name}: input channels must be a multiple of pooling height * pooling width, not "
                f"{channels}"
            )
        grouped = input.reshape(count, channels // groups, groups, self.height, self.width)
        self.rows = _rows(grouped)
        group = arange(groups).reshape(bins) if is_grouped else arange(1).reshape(1, 1)
        image = rois[:, 0].long()[:, None, None]
        self.first = (image * groups + group.to(input.device)) * (self.height * self.width)

    def place(self, y, x):
        """The place in its image of the pixel at `y` (regions, bins, n) and `x` (regions, bins, m):
        (regions, bins, bins, n, m).
        """
        return y[:, :, None, :, None] * self.width + x[:, None, :, None, :]

    def at(self, place):
        """The channels of pixels, in a last dimension."""
        return self.rows[self.first[..., None, None] + place]


def _rows(grouped):
    """The channels of each pixel of each group: (images * groups * height * width, channels)."""
    channels = grouped.shape[1]
    return grouped.permute(0, 2, 3, 4, 1).reshape(-1, channels)


def _largest(tensor, name) -> int:
    """The largest of some integers, at least 1."""
    return int(np.asarray(concrete(tensor, name)).max(initial=1))


def _channel_mapping(input, rois, bins):
    """The channel of the input that each element of a result is of."""
    channels = input.shape[1] // (bins[0] * bins[1])
    mapping = arange(input.shape[1], dtype=dtypes.int32, device=input.device)
    return mapping.reshape(1, channels, *bins).expand(len(rois), -1, -1, -1).clone()


class _Points(NamedTuple):
    """Points along one axis, in the bins of regions: (regions, bins, points).

    low, high: the pixels beside a point; share: the weight of `high`; is_read: whether a point
    belongs to its bin and lies in the image; count: the number of points of a bin.
    """

    low: Tensor
    high: Tensor
    share: Tensor
    is_read: Tensor
    count: Tensor

    def ends(self):
        """The pixels, and their weights."""
        read = self.is_read.to(self.share.dtype)
        return (self.low, (1 - self.share) * read), (self.high, self.share * read)


def _points(name, start, extent, bins, sampling_ratio, size) -> _Points:
    """The points in the bins of regions, which begin at `start` and have an extent."""
    count = (extent / bins).ceil() if sampling_ratio <= 0 else extent.new_full((), sampling_ratio)
    most = sampling_ratio if sampling_ratio > 0 else _largest(count, name)
    number, place = arange(bins, device=start.device), arange(most, device=start.device)
    start, step, spacing = (
        value[..., None, None] for value in (start, extent / bins, extent / bins / count)
    )
    point = start + number[:, None] * step + (place + 0.5).to(start.dtype) * spacing
    is_read = (point >= -1) & (point <= size) & (place < count[..., None, None])
    point = point.masked_fill(~is_read, 0).clamp(min=0)
    low = point.floor().clamp(max=size - 1)
    share = (point - low) * (low < size - 1)
    return _Points(low.long(), (low + 1).clamp(max=size - 1).long(), share, is_read, count)


def _averaged(pixels, corners, extents, bins, sampling_ratio, name):
    """Means (regions, channels, bins, bins) over the points of bins, and the points of a bin."""
    rows, columns = (
        _points(name, corners[:, 1 - axis], extents[:, 1 - axis], bins[axis], sampling_ratio, size)
        for axis, size in enumerate((pixels.height, pixels.width))
    )
    total = 0
    for (y, of_row), (x, of_column) in itertools.product(rows.ends(), columns.ends()):
        weight = of_row[:, :, None, :, None] * of_column[:, None, :, None, :]
        total = total + (pixels.at(pixels.place(y, x)) * weight[..., None]).sum((3, 4))
    return total.permute(0, 3, 1, 2), (rows.count * columns.count)[..., None, None, None]


@_provides(
    "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor"
)
def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    bins, rois = (pooled_height, pooled_width), rois.detach()
    pixels = _Pixels("roi_align", input, rois, bins, is_grouped=False)
    corners = rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
    extents = corners[:, 2:] - corners[:, :2]
    extents = extents if aligned else extents.clamp(min=1)
    total, count = _averaged(pixels, corners, extents, bins, sampling_ratio, "roi_align()")
    return total / count.clamp(min=1)


@_provides(
    "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio) -> (Tensor, Tensor)"
)
def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    bins, rois = (pooled_height, pooled_width), rois.detach()
    pixels = _Pixels("ps_roi_align", input, rois, bins, is_grouped=True)
    corners = rois[:, 1:] * spatial_scale - 0.5
    extents = corners[:, 2:] - corners[:, :2]
    total, count = _averaged(pixels, corners, extents, bins, sampling_ratio, "ps_roi_align()")
    return total / count, _channel_mapping(input, rois, bins)


def _windows(name, start, extent, bins, limit):
    """The pixels (regions, bins, n) before `limit` of windows along one axis, which pixels there
    are in the window, and how many.
    """
    step, number = (extent / bins)[:, None], arange(bins, device=start.device)
    first = ((number * step).floor() + start[:, None]).clamp(0, limit)
    last = (((number + 1) * step).ceil() + start[:, None]).clamp(0, limit)
    count = (last - first).clamp(min=0)
    pixel = first[..., None] + arange(_largest(count, name), device=start.device)
    is_inside = pixel < last[..., None]
    return pixel.masked_fill(~is_inside, 0).long(), is_inside, count


def _rounded(numbers):
    """The nearest integers; of two, the one farther from 0, as C++ rounds."""
    whole = numbers.trunc()
    return whole + numbers.sign() * ((numbers - whole).abs() >= 0.5)


def _windows_of(name, pixels, rois, spatial_scale, bins, has_last):
    """The places of the pixels of windows (regions, bins, bins, n, m), which are in the window, and
    how many (regions, bins, bins). has_last: whether the last pixels of a region and of an image
    are in windows.
    """
    corners = _rounded(rois[:, 1:] * spatial_scale)
    extents = (corners[:, 2:] - corners[:, :2] + has_last).clamp(min=1)
    (y, in_rows, of_rows), (x, in_columns, of_columns) = (
        _windows(name, corners[:, 1 - axis], extents[:, 1 - axis], bins[axis], size - 1 + has_last)
        for axis, size in enumerate((pixels.height, pixels.width))
    )
    is_inside = in_rows[:, :, None, :, None] & in_columns[:, None, :, None, :]
    return pixels.place(y, x), is_inside, of_rows[:, :, None] * of_columns[:, None, :]


@_provides(
    "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) "
    "-> (Tensor, Tensor)"
)
def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    bins, rois = (pooled_height, pooled_width), rois.detach()
    pixels = _Pixels("roi_pool", input, rois, bins, is_grouped=False)
    place, is_inside, count = _windows_of("roi_pool()", pixels, rois, spatial_scale, bins, True)
    values = pixels.at(place)
    # NaN is larger than nothing
    is_valid = is_inside[..., None] & (values == values)
    lowest = float(np.finfo(np.float32).min)
    values = values.masked_fill(~is_valid, lowest).flatten(3, 4)
    top, number = values.max(3)
    chosen = place.expand(is_inside.shape).flatten(3, 4).gather(3, number)
    is_largest = is_valid.flatten(3, 4).any(3)
    chosen = chosen.masked_fill(~is_largest, -1).to(dtypes.int32)
    top = top.masked_fill((count == 0)[..., None], 0)
    return top.permute(0, 3, 1, 2), chosen.permute(0, 3, 1, 2)


@_provides(
    "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) "
    "-> (Tensor, Tensor)"
)
def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    bins, rois = (pooled_height, pooled_width), rois.detach()
    pixels = _Pixels("ps_roi_pool", input, rois, bins, is_grouped=True)
    place, is_inside, count = _windows_of("ps_roi_pool()", pixels, rois, spatial_scale, bins, False)
    total = pixels.at(place).masked_fill(~is_inside[..., None], 0).sum((3, 4))
    mean = (total / count.clamp(min=1)[..., None]).permute(0, 3, 1, 2)
    return mean, _channel_mapping(input, rois, bins)


# ---- convolution with displaced windows


@_provides(
    "(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor"
)
def deform_conv2d(
    input,
    weight,
    offset,
    mask,
    bias,
    stride_h,
    stride_w,
    pad_h,
    pad_w,
    dilation_h,
    dilation_w,
    groups,
    offset_groups,
    use_mask,
):
    count, channels, height, width = input.shape
    kernel, extents = [*weight.shape[2:]], [*offset.shape[2:]]
    taps = kernel[0] * kernel[1]
    grouped = input.reshape(count, offset_groups, channels // offset_groups, height, width)
    moved = offset.reshape(count, offset_groups, *kernel, 2, *extents)
    rows, columns = (
        _positions(moved[:, :, :, :, axis], axis, *options)
        for axis, options in enumerate(
            ((stride_h, pad_h, dilation_h), (stride_w, pad_w, dilation_w))
        )
    )
    read = _interpolated(grouped, rows, columns)
    if use_mask:
        read = read * mask.reshape(count, offset_groups, *kernel, *extents, 1)
    # (images, offset groups, kernel, kernel, y, x, channels), as the weights have them
    read = read.permute(0, 1, 6, 2, 3, 4, 5).reshape(
        count, groups, channels // groups * taps, extents[0] * extents[1]
    )
    factors = weight.reshape(groups, weight.shape[0] // groups, -1)
    product = (factors @ read).reshape(count, weight.shape[0], *extents)
    return product + bias.reshape(1, -1, 1, 1)


def _positions(offset, axis, stride, padding, dilation):
    """The positions of taps along an axis: (images, groups, kernel, kernel, y, x)."""
    taps = arange(offset.shape[2 + axis], device=offset.device) * dilation - padding
    starts = arange(offset.shape[4 + axis], device=offset.device) * stride
    shape = [1] * 6
    shape[2 + axis], shape[4 + axis] = len(taps), len(starts)
    return offset + (taps[:, None] + starts).reshape(shape)


def _interpolated(grouped, rows, columns):
    """The channels of images (n, groups, channels, h, w) at positions, 0 outside: channels last."""
    count, groups, _, height, width = grouped.shape
    pixels = _rows(grouped.transpose(1, 2))
    first = arange(count * groups, device=rows.device) * (height * width)
    first = first.reshape(count, groups, 1, 1, 1, 1)
    total = 0
    for (y, of_row), (x, of_column) in itertools.product(
        _neighbours(rows, height), _neighbours(columns, width)
    ):
        weight = (of_row * of_column)[..., None]
        total = total + pixels[first + y * width + x] * weight
    return total


def _neighbours(position, size):
    """The two pixels beside positions along an axis, and their weights, 0 outside."""
    low = position.detach().floor()
    share = position - low
    for pixel, weight in ((low, 1 - share), (low + 1, share)):
        is_inside = (pixel >= 0) & (pixel < size)
        yield pixel.masked_fill(~is_inside, 0).long(), weight.masked_fill(~is_inside, 0)
