"""`SummaryWriter`, which writes what TensorBoard shows."""

from __future__ import annotations

import datetime
import importlib
import math
import os
import re
import socket
import time
import warnings
from pathlib import Path

import jax
import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ...core import dtypes
from ...core.tracebacks import shows_users_frames
from ...names.missing import missing_in
from ...tape.tensor import Tensor, concrete
from . import _hparams, _images, _summaries


def _values(value) -> np.ndarray:
    """The numbers of a tensor, an array, a list or a number."""
    if isinstance(value, jax.Array):
        return np.asarray(value)
    if not isinstance(value, Tensor):
        return np.asarray(value)
    is_half = value.dtype in (dtypes.bfloat16, dtypes.float16)
    return np.asarray(concrete((value.float() if is_half else value).detach(), "SummaryWriter"))


class FileWriter:
    """Writes records to a file in a folder, in a thread of its own.

    log_dir: the folder. max_queue, flush_secs: how many records and seconds it waits before it
    writes them. filename_suffix: the end of the name of the file.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> writer = jaxgrad.utils.tensorboard.FileWriter(folder)
    >>> writer.get_logdir() == folder
    True
    >>> writer.close()
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Event, step=None, walltime=None):
        """Write an event. walltime: the seconds since 1970, now by default."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime=None):
        """Write a summary as an event."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self):
        """Wait until all is written."""
        self.event_writer.flush()

    def close(self):
        """Write all, and close the file."""
        self.event_writer.close()


class SummaryWriter:
    """Writes numbers, images, texts and others to a folder, for TensorBoard.

    log_dir: the folder, by default `runs/DATE_HOST` with `comment` at its end. purge_step: with a
    folder that was used before, the step from which TensorBoard hides what was written there.
    max_queue, flush_secs, filename_suffix: see `FileWriter`.

    The methods take tensors of jaxgrad, arrays, lists and numbers as values. global_step: the
    number of the step; walltime: the seconds since 1970, now by default. Values that are not known,
    in a compiled function, raise RuntimeError.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with jaxgrad.utils.tensorboard.SummaryWriter(folder) as writer:
    ...     writer.add_scalar("loss", 0.5, global_step=1)
    >>> len(os.listdir(folder))
    1
    """

    def __init__(
        self,
        log_dir=None,
        comment="",
        purge_step=None,
        max_queue=10,
        flush_secs=120,
        filename_suffix="",
    ):
        if not log_dir:
            time = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{time}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = log_dir, purge_step
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._projector = ProjectorConfig()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The writer of the folder, a new one after `close()`."""
        if self.file_writer is None:
            self.all_writers = {}
            self.file_writer = self._writer(self.log_dir)
            if self.purge_step is not None:
                for content in (
                    {"file_version": "brain.Event:2"},
                    {"session_log": SessionLog(status=SessionLog.START)},
                ):
                    self.file_writer.add_event(Event(step=self.purge_step, **content))
                self.purge_step = None
        return self.file_writer

    def _writer(self, folder) -> FileWriter:
        if str(folder) not in self.all_writers:
            options = self.max_queue, self.flush_secs, self.filename_suffix
            self.all_writers[str(folder)] = FileWriter(folder, *options)
        return self.all_writers[str(folder)]

    def _add(self, summary, global_step, walltime):
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def get_logdir(self):
        """Return the folder."""
        return self.log_dir

    # ---- numbers

    @shows_users_frames
    def add_scalar(
        self,
        tag: str,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style=False,
        double_precision=False,
    ):
        """Write a number.

        tag: its name. new_style: whether to write it as a tensor; double_precision: of 64 bits.
        Raises AssertionError for more than one number.
        """
        summary = _summaries.scalar(tag, _values(scalar_value), new_style, double_precision)
        self._add(summary, global_step, walltime)

    @shows_users_frames
    def add_scalars(self, main_tag: str, tag_scalar_dict, global_step=None, walltime=None):
        """Write several numbers under one name, each in a folder inside: TensorBoard shows them in
        one chart. tag_scalar_dict: the numbers by name.
        """
        folder = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            inner = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            summary = _summaries.scalar(main_tag, _values(value))
            self._writer(inner).add_summary(summary, global_step, walltime)

    @shows_users_frames
    def add_tensor(self, tag: str, tensor, global_step=None, walltime=None):
        """Write a tensor. Raises ValueError for a dtype that TensorBoard lacks."""
        self._add(_summaries.tensor(tag, _values(tensor)), global_step, walltime)

    @shows_users_frames
    def add_histogram(
        self, tag: str, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None
    ):
        """Write how numbers are distributed.

        bins: "tensorflow" for limits that grow by a tenth, or what `numpy.histogram` takes.
        max_bins: the most bins; beyond that, neighbours are joined.

        Raises ValueError without numbers.
        """
        summary = _summaries.histogram(tag, _values(values), bins, max_bins)
        self._add(summary, global_step, walltime)

    @shows_users_frames
    def add_histogram_raw(
        self,
        tag: str,
        min,
        max,
        num,
        sum,
        sum_squares,
        bucket_limits,
        bucket_counts,
        global_step=None,
        walltime=None,
    ):
        """Write a histogram that has been counted: the right limit and the count of each bin.

        Raises ValueError unless there are as many limits as counts.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"len(bucket_limits) != len(bucket_counts): {len(bucket_limits)} and "
                f"{len(bucket_counts)}"
            )
        limits, counts = _values(bucket_limits), _values(bucket_counts)
        summary = _summaries.histogram_raw(tag, min, max, num, sum, sum_squares, limits, counts)
        self._add(summary, global_step, walltime)

    @shows_users_frames
    def add_pr_curve(
        self,
        tag: str,
        labels,
        predictions,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ):
        """Write precision and recall of predictions.

        labels: 0 or 1; predictions: of probability 0 to 1; weights: of each. num_thresholds: how
        many points the curve has, at most 127.
        """
        weights = None if weights is None else _values(weights)
        arguments = _values(labels), _values(predictions), num_thresholds, weights
        self._add(_summaries.pr_curve(tag, *arguments), global_step, walltime)

    @shows_users_frames
    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ):
        """Write precision and recall that have been computed, at each threshold."""
        rows = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        summary = _summaries.pr_curve_raw(tag, *map(_values, rows), num_thresholds)
        self._add(summary, global_step, walltime)

    @shows_users_frames
    def add_hparams(
        self,
        hparam_dict: dict,
        metric_dict: dict,
        hparam_domain_discrete: dict | None = None,
        run_name: str | None = None,
        global_step=None,
    ):
        """Write hyperparameters and the results that belong to them, to a folder inside.

        hparam_dict: hyperparameters by name: numbers, bools, texts, tensors of one element.
        metric_dict: results by name. hparam_domain_discrete: lists of all values of some
        hyperparameters. run_name: the name of the folder, the time by default. Raises TypeError and
        ValueError for others.
        """
        summaries = _hparams.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(folder) as inner:
            for summary in summaries:
                inner._add(summary, global_step, None)
            for tag, value in metric_dict.items():
                inner.add_scalar(tag, value, global_step)

    # ---- images, sound, text

    @shows_users_frames
    def add_image(self, tag: str, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """Write an image: bytes, or numbers from 0 to 1.

        dataformats: the order of its dimensions, such as "HWC" or "HW". Raises AssertionError if it
        does not fit.
        """
        pixels = _images.as_bytes(_images.rows_of(_values(img_tensor), dataformats))
        self._add(_summaries.image(tag, pixels), global_step, walltime)

    def add_images(self, tag: str, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Write several images as one, in rows of 8; see `add_image`."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    @shows_users_frames
    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor,
        box_tensor,
        global_step=None,
        walltime=None,
        rescale=1,
        dataformats="CHW",
        labels=None,
    ):
        """Write an image with red frames, of left, top, right and bottom; see `add_image`.

        Raises NotImplementedError for `labels` and another size.
        """
        if labels is not None or rescale != 1:
            raise NotImplementedError(
                "add_image_with_boxes: labels and rescale are not provided by jaxgrad: draw them "
                "by matplotlib, and call add_figure"
            )
        pixels = _images.as_bytes(_images.rows_of(_values(img_tensor), dataformats))
        framed = _images.with_boxes(pixels, _values(box_tensor).reshape(-1, 4))
        self._add(_summaries.image(tag, framed), global_step, walltime)

    @shows_users_frames
    def add_figure(self, tag: str, figure, global_step=None, close: bool = True, walltime=None):
        """Write a figure of matplotlib, or a list of them as one image, and close it if `close`."""
        figures = figure if isinstance(figure, list) else [figure]
        drawn = []
        for picture in figures:
            # matplotlib, which made the figure, is no package that jaxgrad needs
            agg = importlib.import_module("matplotlib.backends.backend_agg")
            canvas = agg.FigureCanvasAgg(picture)
            canvas.draw()
            drawn.append(np.array(canvas.buffer_rgba())[:, :, :3])
            if close:
                importlib.import_module("matplotlib.pyplot").close(picture)
        image, order = (np.stack(drawn), "NHWC") if isinstance(figure, list) else (drawn[0], "HWC")
        self.add_image(tag, image, global_step, walltime, order)

    def add_video(self, *args, **kwargs):
        """Raise NotImplementedError: jaxgrad encodes no videos."""
        raise NotImplementedError(
            "add_video is not provided by jaxgrad: write the frames by add_images"
        )

    @shows_users_frames
    def add_audio(self, tag: str, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Write sound: samples from -1 to 1, and how many there are in a second."""
        self._add(_summaries.audio(tag, _values(snd_tensor), sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step=None, walltime=None):
        """Write a text, which may be Markdown."""
        self._add(_summaries.text(tag, text_string), global_step, walltime)

    @shows_users_frames
    def add_mesh(
        self,
        tag: str,
        vertices,
        colors=None,
        faces=None,
        config_dict=None,
        global_step=None,
        walltime=None,
    ):
        """Write points or surfaces in space: vertices (batch, n, 3), their colors, and faces, the
        numbers of three vertices each. config_dict: options of the scene.
        """
        arrays = [None if part is None else _values(part) for part in (vertices, colors, faces)]
        self._add(_summaries.mesh(tag, *arrays, config_dict), global_step, walltime)

    # ---- charts, graphs, embeddings

    def add_custom_scalars(self, layout: dict):
        """Write which numbers belong to one chart: `{category: {title: ["Multiline", tags]}}`, or
        "Margin" with the tags of value, lower and upper bound.
        """
        self._add(_summaries.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags, category: str = "default", title: str = "untitled"
    ):
        """Write that the numbers of several tags belong to one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags, category: str = "default", title: str = "untitled"
    ):
        """Write a chart of a number between two bounds, by three tags."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Write nothing, with a warning: `jaxgrad.autograd.graph.draw(loss)` draws the graph."""
        warnings.warn(
            "add_graph() is not provided by jaxgrad and writes nothing: autograd.graph.draw(loss) "
            "draws the graph of a loss",
            stacklevel=2,
        )

    add_onnx_graph = add_graph

    @shows_users_frames
    def add_embedding(
        self,
        mat,
        metadata=None,
        label_img=None,
        global_step=None,
        tag="default",
        metadata_header=None,
    ):
        """Write points (n, d), which TensorBoard projects to space.

        metadata: a label for each, or a row of them with `metadata_header` as the names of columns.
        label_img: an image (n, c, h, w) for each, of numbers from 0 to 1. tag: the name.
        Raises AssertionError unless there are as many labels and images as points.
        """
        points = _values(mat)
        if points.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        if metadata is not None and len(metadata) != len(points):
            raise AssertionError("#labels should equal with #data points")
        if label_img is not None and len(label_img) != len(points):
            raise AssertionError("#images should equal with #data points")
        step = f"{global_step or 0:05d}"
        inner = f"{step}/{_encoded(tag)}"
        folder = Path(self._get_file_writer().get_logdir(), inner)
        folder.mkdir(parents=True, exist_ok=True)
        info = self._projector.embeddings.add()
        info.tensor_name, info.tensor_path = f"{tag}:{step}", f"{inner}/tensors.tsv"
        _write_rows(folder / "tensors.tsv", points.tolist())
        if metadata is not None:
            info.metadata_path = f"{inner}/metadata.tsv"
            rows = (
                [metadata_header, *metadata] if metadata_header else [[label] for label in metadata]
            )
            _write_rows(folder / "metadata.tsv", rows)
        if label_img is not None:
            images = _values(label_img)
            info.sprite.image_path = f"{inner}/sprite.png"
            info.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
            (folder / "sprite.png").write_bytes(_sprite(images))
        config = Path(self._get_file_writer().get_logdir(), "projector_config.pbtxt")
        config.write_text(str(self._projector))

    # ---- files

    def flush(self):
        """Wait until all is written."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Write all and close the files. A later call opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.close()


def _encoded(tag: str) -> str:
    """A tag as the name of a folder."""
    return re.sub(r"[%/\\]", lambda match: f"%{ord(match[0]):02x}", tag)


def _write_rows(path, rows):
    text = "\n".join("\t".join(map(str, row)) for row in rows)
    path.write_text(f"{text}\n")


def _sprite(images) -> bytes:
    """Images (n, c, h, w) as one, in a square of rows, which TensorBoard cuts again."""
    columns = math.ceil(len(images) ** 0.5)
    whole = _images.grid(images.transpose(0, 2, 3, 1), columns)
    square = np.zeros((whole.shape[1], whole.shape[1], whole.shape[2]), whole.dtype)
    height = min(len(whole), len(square))
    square[:height] = whole[:height]
    return _images.png(_images.as_bytes(square))


__getattr__ = missing_in(__name__)
