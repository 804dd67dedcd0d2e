"""Profiles: the time of each operator, each node of a backward pass, and each labelled block.

JAX runs kernels asynchronously. While a profile records, each operator waits for its results, so
that its event has its own time; the whole takes longer. The first call of an operator compiles it:
JAX's tracing, lowering and compilation are events inside of the operator's. A function compiled by
`jaxgrad.jit` is one event.
"""

from __future__ import annotations

import contextlib
import uuid
import warnings
from collections import defaultdict
from typing import ClassVar

import jax

from ..names.missing import missing_in
from ._profiler import recorder as recording
from ._profiler.build_events import events_of
from ._profiler.chrome_trace import write_trace
from ._profiler.nvprof import EnforceUnique as EnforceUnique
from ._profiler.nvprof import load_nvprof as load_nvprof
from ._profiler.nvprof import parse_nvprof_trace as parse_nvprof_trace
from ._profiler.record_function import emit_itt as emit_itt
from ._profiler.record_function import emit_nvtx as emit_nvtx
from ._profiler.record_function import record_function as record_function
from .profiler_util import EventList as EventList
from .profiler_util import FunctionEvent as FunctionEvent
from .profiler_util import MemRecordsAcc as MemRecordsAcc

__all__ = [
    "profile",
    "record_function",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "EnforceUnique",
    "parse_nvprof_trace",
    "KinetoStepTracker",
    "EventList",
    "FunctionEvent",
    "MemRecordsAcc",
]

_JAX_PLATFORMS = {"cuda": ("gpu", "cuda", "rocm"), "tpu": ("tpu",)}
_OTHER_DEVICES = ("xpu", "mtia", "hpu")


class profile:
    """Record what runs in a `with` block, in this thread and in backward passes that it starts.

    An operator and the run of the node that it recorded have the same `sequence_nr`, and count for
    the same line in `key_averages(by_line=True)`. Profiles can be nested; each records.

    enabled: False for a block without effect.
    use_device: "cuda" or "tpu" to count the time of operators as time of the device.
    record_shapes: record the shapes of inputs.
    with_flops: record the floating point operations that XLA counts.
    profile_memory: record the bytes of results, and when they are freed.
    with_stack: record the calls that led to each event.
    acc_events: keep earlier events if the profile is entered again.
    jax_trace: a directory for a trace of jax.profiler, with the names of operators and labels.
    Other arguments are PyTorch's, without effect.

    Raises RuntimeError if the block is entered twice, AssertionError if results are read before its
    end.

    >>> x = jaxgrad.ones(4, 4, requires_grad=True)
    >>> with jaxgrad.autograd.profiler.profile() as prof:
    ...     y = (x * x).sum()
    ...     y.backward()
    >>> sorted(event.key for event in prof.key_averages() if event.key.startswith("aten::"))
    ['aten::add', 'aten::mul', 'aten::ones_like', 'aten::sum']
    >>> print(prof.key_averages().table(sort_by="self_cpu_time_total"))  # doctest: +ELLIPSIS
    -----...
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        activity_filters=None,
        jax_trace=None,
    ):
        self.enabled, self.entered = enabled, False
        self._recorder = self._function_events = None
        self.kineto_results = None
        if not enabled:
            return
        self.use_device = _device(use_cuda, use_device, use_cpu, use_kineto)
        self.record_shapes, self.with_flops = record_shapes or with_flops, with_flops
        self.profile_memory, self.with_stack = profile_memory, with_stack
        self.with_modules, self.use_cpu, self.acc_events = with_modules, use_cpu, acc_events
        self.experimental_config = experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.activity_filters, self.jax_trace = activity_filters or {}, jax_trace
        self.trace_id = ""
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.post_processing_timeout_s = post_processing_timeout_s

    def create_trace_id(self) -> str:
        """A new name for a recording."""
        return (self.custom_trace_id_callback or self.default_trace_id)()

    def default_trace_id(self) -> str:
        """A random name for a recording: 32 hexadecimal digits."""
        return f"{uuid.uuid4().int:032X}"

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered, self.trace_id = True, self.create_trace_id()
        if self.jax_trace is not None:
            jax.profiler.start_trace(self.jax_trace)
            self._annotator = recording.Annotator()
            recording.enter(self._annotator)
        options = self.record_shapes, self.with_stack, self.profile_memory
        self._recorder = recording.Recorder(*options)
        recording.enter(self._recorder)
        return self

    def __exit__(self, *exception):
        if not self.enabled:
            return None
        recording.leave(self._recorder)
        if self.jax_trace is not None:
            recording.leave(self._annotator)
            jax.profiler.stop_trace()
        before = self._function_events if self.acc_events else None
        self._function_events = EventList(
            events_of(self._recorder, self),
            use_device=self.use_device,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
        )
        self._function_events._build_tree()
        self._function_events.extend(before or ())
        self._recorder = None
        return False

    def toggle_collection_dynamic(self, enabled: bool, activities=()):
        """Stop or resume recording.

        enabled: whether to record from now on.
        activities: kept for PyTorch's code; the call applies to all activities.
        """
        if self._recorder is not None:
            self._recorder.live = bool(enabled)

    @property
    def function_events(self) -> EventList:
        """All events, as an EventList. Raises AssertionError before the block has ended.

        >>> with jaxgrad.autograd.profiler.profile() as prof:
        ...     y = jaxgrad.ones(3)
        >>> len(prof.function_events) > 0
        True
        """
        if self._function_events is None:
            raise AssertionError(
                "Expected profiling results, but there are none: "
                + (
                    "the profile is recorded until its with block ends"
                    if self.enabled
                    else "the profile was made with enabled=False"
                )
            )
        return self._function_events

    def __repr__(self):
        if self._function_events is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self._function_events)

    def _repr_html_(self):
        if self._function_events is None:
            return None
        sums = list(self.key_averages())
        sums.sort(key=lambda event: event.self_cpu_time_total, reverse=True)
        return self.function_events._like(sums)._repr_html_()

    def __str__(self):
        return repr(self) if self._function_events is None else str(self._function_events)

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
    ) -> str:
        """The events as a table, see EventList.table."""
        widths = max_src_column_width, max_name_column_width, max_shapes_column_width
        events = self.function_events
        return events.table(sort_by, row_limit, *widths, header, top_level_events_only)

    def key_averages(
        self,
        group_by_input_shape=False,
        group_by_stack_n=0,
        group_by_overload_name=False,
        by_line=False,
    ) -> EventList:
        """The sums of the events of each name, or of each source line, see EventList.key_averages.

        >>> x = jaxgrad.ones(4, requires_grad=True)
        >>> with jaxgrad.autograd.profiler.profile() as prof:
        ...     y = x.exp() * 2
        ...     y.sum().backward()
        >>> table = prof.key_averages(by_line=True).table()
        """
        grouping = group_by_input_shape, group_by_stack_n, group_by_overload_name
        return self.function_events.key_averages(*grouping, by_line)

    def total_average(self):
        """The sum of all events.

        >>> with jaxgrad.autograd.profiler.profile() as prof:
        ...     y = jaxgrad.ones(3)
        >>> prof.total_average().key
        'Total'
        """
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self):
        """The total time of all events, in microseconds; none counts twice."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path, metadata=None, use_python_export=False):
        """Write the events to a file for chrome://tracing or ui.perfetto.dev.

        It has an arrow from each operator to the run of the node that it recorded.
        path: the file.
        metadata: a dict of further entries of the file.
        use_python_export: kept for PyTorch's code.
        """
        write_trace(
            path, self.function_events, metadata={"trace_id": self.trace_id} | (metadata or {})
        )

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total"):
        """Write the stack of each event with a metric, see EventList.export_stacks.

        Raises AssertionError for a profile without `with_stack=True`.
        """
        events = self.function_events
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)


def _device(use_cuda, use_device, use_cpu, use_kineto):
    """The device whose time counts; None for the CPU."""
    if use_cuda:
        warnings.warn(
            "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` "
            "instead.",
            FutureWarning,
            stacklevel=3,
        )
        use_device = "cuda"
    if not use_cpu and not use_kineto:
        raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
    device = None if use_device is None else _available(use_device)
    if not use_cpu and device is None:
        raise AssertionError("No activities specified for the profiler")
    return device


def _available(name):
    if name == "mtia":
        raise AssertionError(
            "Legacy MTIA profiling is not supported. Requires use_kineto=True on MTIA devices: "
            'here "cuda" and "tpu" are known'
        )
    with contextlib.suppress(RuntimeError):
        if jax.default_backend() in _JAX_PLATFORMS.get(name, ()):
            return name
    kind = name.upper()
    known = name == "cuda" or name in _OTHER_DEVICES
    warnings.warn(
        f"{kind} is not available, disabling {kind} profiling"
        if known
        else f"The {name} is not a valid device option.",
        stacklevel=4,
    )
    return None


def kineto_available() -> bool:
    """False: PyTorch's library Kineto is not used; jax.profiler takes its place.

    >>> jaxgrad.autograd.kineto_available()
    False
    """
    return False


def _profiler_enabled() -> bool:
    """Whether a profile records in this context.

    >>> with jaxgrad.autograd.profiler.profile():
    ...     jaxgrad.autograd._profiler_enabled()
    True
    """
    return bool(recording.sinks())


class KinetoStepTracker:
    """Counts the steps of a training loop, reported by several requesters.

    Each requester has its own count; the largest count is the current step.

    >>> KinetoStepTracker = jaxgrad.autograd.profiler.KinetoStepTracker
    >>> before = KinetoStepTracker.current_step()
    >>> KinetoStepTracker.increment_step("optimizer") - before
    1
    >>> KinetoStepTracker.erase_step_count("optimizer")
    True
    """

    _current_step = 0
    _step_dict: ClassVar[dict[str, int]] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str):
        """Set the count of a requester to the current step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Remove a requester; returns whether it had a count."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Add a step to the count of a requester; returns the current step."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        step = max(cls._step_dict.values())
        if step > cls._current_step + 1:
            warnings.warn(
                "Profiler step count has increased more than 1 - current_step = "
                f"{cls._current_step} step dict = {dict(cls._step_dict)}",
                stacklevel=2,
            )
        cls._current_step = max(step, cls._current_step)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The current step."""
        return cls._current_step


__getattr__ = missing_in(__name__)
