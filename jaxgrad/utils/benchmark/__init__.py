"""Measuring how long code takes, as torch.utils.benchmark."""

from __future__ import annotations

from ...names.not_provided import names_of
from .measurement import Measurement as Measurement
from .measurement import TaskSpec as TaskSpec
from .measurement import select_unit as select_unit
from .timer import Timer as Timer
from .timer import timer as timer

__getattr__, __dir__ = names_of(__name__)
