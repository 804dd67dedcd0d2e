"""Profiles of the steps of a program."""

from __future__ import annotations

import enum
import gzip
import json
import os
import shutil
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Self

from ..autograd import profiler as autograd_profiler
from ..autograd._profiler.events import ProfilerActivity
from ..autograd.profiler_util import EventList
from ..core.device import has
from ..names.missing import missing_in


class ProfilerAction(enum.Enum):
    """What a profile does in a step.

    >>> jaxgrad.profiler.ProfilerAction.RECORD.value
    2
    """

    NONE, WARMUP, RECORD, RECORD_AND_SAVE, DEVICE_STOPPED = range(5)


def _default_schedule_fn(_: int) -> ProfilerAction:
    """The schedule of a profile without one: each step is recorded."""
    return ProfilerAction.RECORD


RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Return the function that gives what a profile does in the step of a number: after
    `skip_first` steps, cycles of `wait` steps without effect, `warmup` steps that are not recorded
    either, and `active` steps that are.

    repeat: how many cycles there are, 0 for no end. skip_first_wait: 1 if the first cycle has no
    `wait`.

    Raises AssertionError for a negative number, or `active=0`.

    >>> plan = jaxgrad.profiler.schedule(wait=1, warmup=1, active=1)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        cycle, place = divmod(step, wait + warmup + active)
        if (repeat > 0 and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        is_last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD

    return action


def supported_activities() -> set[ProfilerActivity]:
    """Return what a profile records: the CPU, and a GPU where JAX has found one.

    >>> jaxgrad.profiler.ProfilerActivity.CPU in jaxgrad.profiler.supported_activities()
    True
    """
    return {ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if has("cuda") else [])}


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable:
    """Return a function for `on_trace_ready` that writes the events to a file in a folder, which
    TensorBoard's plugin for profiles reads, and chrome://tracing.

    worker_name: the first part of the name of the file, by default host and process. use_gzip:
    whether to compress it. use_python_export: kept for PyTorch's code.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> handler = jaxgrad.profiler.tensorboard_trace_handler(folder, "mine")
    >>> with jaxgrad.profiler.profile(on_trace_ready=handler):
    ...     y = jaxgrad.ones(2) * 2
    >>> [path.name.split(".")[0] for path in pathlib.Path(folder).glob("*.pt.trace.json")]
    ['mine']
    """
    os.makedirs(dir_name, exist_ok=True)
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def write(prof):
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


class profile:
    """Record operators, nodes of backward passes and labelled blocks in the steps of a program.

    Use it in a `with` statement and call `step()` after each step.

    activities: of `supported_activities()`, which they are by default.
    schedule: gives what to do in each step, see `schedule`; by default all is recorded.
    on_trace_ready: called with the profile after the last recorded step of a cycle, and at the end.
    record_shapes, profile_memory, with_stack, with_flops, with_modules: as in
    `jaxgrad.autograd.profiler.profile`, whose events these are.
    acc_events: keep the events of earlier cycles.
    The others are PyTorch's, without effect. Raises AssertionError if no activity is supported.

    >>> plan = jaxgrad.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> steps = []
    >>> x = jaxgrad.ones(3)
    >>> with jaxgrad.profiler.profile(schedule=plan, on_trace_ready=steps.append) as prof:
    ...     for _ in range(5):
    ...         y = x * x
    ...         prof.step()
    >>> [event.count for event in prof.key_averages() if event.key == "aten::mul"], len(steps)
    ([2], 1)
    """

    def __init__(
        self,
        *,
        activities: Iterable | None = None,
        schedule: Callable | None = None,
        on_trace_ready: Callable | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable | None = None,
        post_processing_timeout_s: float | None = None,
    ):
        selection = supported_activities() if activities is None else set(activities)
        if use_cuda:
            selection.add(ProfilerActivity.CUDA)
        self.activities = selection & {ProfilerActivity.CPU, ProfilerActivity.CUDA}
        if not self.activities:
            raise AssertionError(
                "No valid profiler activities found: supported are "
                f"{', '.join(map(str, supported_activities()))}"
            )
        self.on_trace_ready, self.acc_events = on_trace_ready, acc_events
        self.schedule, self.record_steps = schedule or _default_schedule_fn, schedule is not None
        self.options = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
            "acc_events": acc_events,
            "custom_trace_id_callback": custom_trace_id_callback,
        }
        self.step_num, self.current_action = 0, self.schedule(0)
        self.profiler: autograd_profiler.profile | None = None
        self._label, self._metadata = None, {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised):
        self.stop()

    def start(self):
        """Begin the first step."""
        if self.current_action in RECORDS:
            self._begin()
        self._begin_step()

    def stop(self):
        """End the last step; if it was recorded, call `on_trace_ready`."""
        self._end_step()
        if self.current_action in RECORDS:
            self._finish(is_ready=True)
        self.current_action = ProfilerAction.NONE

    def step(self):
        """End a step and begin the next one."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        goes_on = before is ProfilerAction.RECORD and self.current_action in RECORDS
        if before in RECORDS and not goes_on:
            self._finish(is_ready=before is ProfilerAction.RECORD_AND_SAVE)
        if self.current_action in RECORDS and not goes_on:
            self._begin()
        self._begin_step()

    def set_custom_trace_id_callback(self, callback: Callable):
        """Set the function that names recordings."""
        self.options["custom_trace_id_callback"] = callback

    def get_trace_id(self) -> str | None:
        """Return the name of the recording, None before the first."""
        return None if self.profiler is None else self.profiler.trace_id

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable = ()):
        """Stop or resume recording."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def add_metadata(self, key: str, value: str):
        """Add a text to the file of `export_chrome_trace`."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str):
        """Add a value, written as JSON, to the file of `export_chrome_trace`."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    # ---- results

    def events(self) -> EventList:
        """Return the events of the last cycle. Raises AssertionError before the first has ended."""
        return self._recorded("accessing events").function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Return the sums of the events of each name, see `EventList.key_averages`. Raises
        AssertionError before the first cycle has ended.
        """
        profiler = self._recorded("getting key averages")
        return profiler.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str):
        """Write the events to a file for chrome://tracing or ui.perfetto.dev, compressed if its
        name ends in ".gz". Raises AssertionError before the first cycle has ended.
        """
        profiler = self._recorded("exporting chrome trace")
        if not str(path).endswith(".gz"):
            profiler.export_chrome_trace(path, self._metadata)
            return
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "trace.json")
            profiler.export_chrome_trace(plain, self._metadata)
            with open(plain, "rb") as source, gzip.open(path, "wb") as target:
                shutil.copyfileobj(source, target)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total"):
        """Write the stack of each event with a metric, see `EventList.export_stacks`. Raises
        AssertionError without `with_stack`, and before the first cycle has ended.
        """
        self._recorded("exporting stacks").export_stacks(path, metric)

    def _recorded(self, what) -> autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    # ---- recording

    def _begin(self):
        if self.profiler is None or not self.acc_events:
            use = "cuda" if ProfilerActivity.CUDA in self.activities else None
            self.profiler = autograd_profiler.profile(use_device=use, **self.options)
        self.profiler.entered = False  # a cycle may follow another
        self.profiler.__enter__()

    def _finish(self, is_ready):
        self.profiler.__exit__(None, None, None)
        if is_ready and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _begin_step(self):
        if self.record_steps:
            self._label = autograd_profiler.record_function(f"ProfilerStep#{self.step_num}")
            self._label.__enter__()

    def _end_step(self):
        if self._label is not None:
            self._label.__exit__(None, None, None)
        self._label = None


__getattr__ = missing_in(__name__)
