"""Profiles with a schedule, as torch.profiler, on top of `jaxgrad.autograd.profiler`."""

from __future__ import annotations

from ..autograd._profiler.events import DeviceType as DeviceType
from ..autograd._profiler.events import ProfilerActivity as ProfilerActivity
from ..autograd.profiler import KinetoStepTracker as KinetoStepTracker
from ..autograd.profiler import kineto_available as kineto_available
from ..autograd.profiler import record_function as record_function
from ..names.missing import missing_in
from .profiler import ProfilerAction as ProfilerAction
from .profiler import profile as profile
from .profiler import schedule as schedule
from .profiler import supported_activities as supported_activities
from .profiler import tensorboard_trace_handler as tensorboard_trace_handler

__getattr__ = missing_in(__name__)
