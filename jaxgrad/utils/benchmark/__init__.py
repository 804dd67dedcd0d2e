"""Measuring how long code takes, as torch.utils.benchmark."""

from __future__ import annotations

from ...names.not_provided import names_of
from .compare import Compare as Compare
from .fuzzer import FuzzedParameter as FuzzedParameter
from .fuzzer import FuzzedTensor as FuzzedTensor
from .fuzzer import Fuzzer as Fuzzer
from .fuzzer import ParameterAlias as ParameterAlias
from .measurement import Measurement as Measurement
from .measurement import TaskSpec as TaskSpec
from .measurement import ordered_unique as ordered_unique
from .measurement import select_unit as select_unit
from .measurement import trim_sigfig as trim_sigfig
from .measurement import unit_to_english as unit_to_english
from .timer import Timer as Timer
from .timer import timer as timer

__getattr__, __dir__ = names_of(__name__)
