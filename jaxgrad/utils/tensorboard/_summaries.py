"""The records in a file for TensorBoard: each function makes one of values of NumPy."""

from __future__ import annotations

import io
import json
import warnings
import wave

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from . import _images

# as in TensorFlow: limits that grow by a tenth, on both sides of 0
_POSITIVE = 1e-12 * 1.1 ** np.arange(774)
BINS = [*-_POSITIVE[::-1], 0, *_POSITIVE]

THRESHOLDS = 127  # the most that TensorBoard takes

# the kind of a tensor and the field of its elements, by NumPy's name of the dtype
_TENSORS = {
    "float32": ("DT_FLOAT", "float_val"),
    "float64": ("DT_DOUBLE", "double_val"),
    **{name: (f"DT_{name.upper()}", "int_val") for name in ("int8", "int16", "int32")},
    "uint8": ("DT_UINT8", "uint32_val"),
    "int64": ("DT_INT64", "int64_val"),
    "bool": ("DT_BOOL", "bool_val"),
}


def _summary(tag, plugin=None, content=b"", **value) -> Summary:
    if plugin is not None:
        data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
        value["metadata"] = SummaryMetadata(plugin_data=data)
    return Summary(value=[Summary.Value(tag=tag, **value)])


def _tensor(array, kind="DT_FLOAT", field="float_val") -> TensorProto:
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in array.shape])
    return TensorProto(dtype=kind, tensor_shape=shape, **{field: array.ravel().tolist()})


def scalar(tag, value, new_style=False, double_precision=False) -> Summary:
    value = np.squeeze(value)
    if value.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). Was given size: "
            f"{value.size} and {value.ndim} dimensions."
        )
    if not new_style:
        return _summary(tag, simple_value=float(value))
    kind, field = ("DT_DOUBLE", "double_val") if double_precision else ("DT_FLOAT", "float_val")
    return _summary(tag, "scalars", tensor=TensorProto(dtype=kind, **{field: [float(value)]}))


def tensor(tag, array) -> Summary:
    if array.dtype.name not in _TENSORS:
        raise ValueError(f"{tag} has unsupported tensor dtype {array.dtype}")
    return _summary(tag, "tensor", tensor=_tensor(array, *_TENSORS[array.dtype.name]))


def histogram(tag, values, bins="tensorflow", max_bins=None) -> Summary:
    values = values.astype(float).ravel()
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=BINS if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = _joined(counts, limits, len(counts) // max_bins)
    (filled,) = np.nonzero(counts)
    if not len(filled):
        raise ValueError("The histogram is empty: no value is between the limits of its bins")
    first, end = filled[0], filled[-1] + 1
    # a record has the right limits alone, so an empty bin at the left gives the leftmost
    before = counts[first - 1 : first] if first else [0]
    return histogram_raw(
        tag,
        values.min(),
        values.max(),
        values.size,
        values.sum(),
        values @ values,
        limits[first : end + 1],
        np.concatenate([before, counts[first:end]]),
    )


def _joined(counts, limits, size):
    """A histogram with each `size` bins in one."""
    starts = np.arange(0, len(counts), size)
    return np.add.reduceat(counts, starts), np.append(limits[:-1][starts], limits[-1])


def histogram_raw(tag, low, high, num, total, squares, limits, counts) -> Summary:
    proto = HistogramProto(
        min=low,
        max=high,
        num=num,
        sum=total,
        sum_squares=squares,
        bucket_limit=np.asarray(limits, float).tolist(),
        bucket=np.asarray(counts, float).tolist(),
    )
    return _summary(tag, histo=proto)


def image(tag, pixels) -> Summary:
    height, width, channels = pixels.shape
    proto = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=_images.png(pixels)
    )
    return _summary(tag, image=proto)


def audio(tag, samples, sample_rate) -> Summary:
    samples = np.squeeze(samples)
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    if np.abs(samples).max() > 1:
        warnings.warn("audio amplitude out of range, auto clipped.", stacklevel=4)
    samples = (samples.clip(-1, 1) * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, sample_rate, len(samples), "NONE", None))
        written.writeframes(samples.tobytes())
    proto = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return _summary(tag, audio=proto)


def text(tag, words: str) -> Summary:
    content = TextPluginData(version=0).SerializeToString()
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    proto = TensorProto(dtype="DT_STRING", string_val=[words.encode()], tensor_shape=shape)
    return _summary(f"{tag}/text_summary", "text", content, tensor=proto)


def custom_scalars(layout) -> Summary:
    categories = [
        layout_pb2.Category(title=title, chart=[_chart(*pair) for pair in charts.items()])
        for title, charts in layout.items()
    ]
    written = layout_pb2.Layout(category=categories).SerializeToString()
    proto = TensorProto(dtype="DT_STRING", string_val=[written], tensor_shape=TensorShapeProto())
    return _summary("custom_scalars__config__", "custom_scalars", tensor=proto)


def _chart(title, described):
    kind, tags = described
    if kind != "Margin":
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))
    if len(tags) != 3:
        raise AssertionError(f"a margin chart has 3 tags, value, lower and upper, not {len(tags)}")
    series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
    return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))


def pr_curve(tag, labels, predictions, num_thresholds=THRESHOLDS, weights=None) -> Summary:
    count = min(num_thresholds, THRESHOLDS)
    weights = 1.0 if weights is None else weights
    labels = labels.astype(float)
    places = np.floor(predictions * (count - 1)).astype(int)

    def above(weight):
        """The weight of the predictions at each threshold or above it."""
        flat_weights = np.broadcast_to(weight, places.shape).ravel()
        sums, _ = np.histogram(places.ravel(), count, (0, count - 1), weights=flat_weights)
        return sums[::-1].cumsum()[::-1]

    true, false = above(labels * weights), above((1 - labels) * weights)
    precision = true / np.maximum(1e-7, true + false)
    recall = true / np.maximum(1e-7, true[0])
    rows = (true, false, false[0] - false, true[0] - true, precision, recall)
    return pr_curve_raw(tag, *rows, num_thresholds)


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=THRESHOLDS) -> Summary:
    count = min(num_thresholds, THRESHOLDS)
    content = PrCurvePluginData(version=0, num_thresholds=count).SerializeToString()
    rows = np.stack((tp, fp, tn, fn, precision, recall))
    return _summary(tag, "pr_curves", content, tensor=_tensor(rows))


def mesh(tag, vertices, colors=None, faces=None, config=None) -> Summary:
    parts = [
        (MeshPluginData.VERTEX, vertices),
        (MeshPluginData.FACE, faces),
        (MeshPluginData.COLOR, colors),
    ]
    parts = [(kind, array) for kind, array in parts if array is not None]
    components = mesh_metadata.get_components_bitmask([kind for kind, _ in parts])
    written = json.dumps(config, sort_keys=True) if config is not None else "{}"
    values = []
    for kind, array in parts:
        known = mesh_metadata.create_summary_metadata(
            tag, None, kind, components, array.shape, None, json_config=written
        )
        name = mesh_metadata.get_instance_name(tag, kind)
        values.append(Summary.Value(tag=name, tensor=_tensor(array), metadata=known))
    return Summary(value=values)
