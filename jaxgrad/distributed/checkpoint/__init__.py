"""Checkpoints of models that are sharded over devices and processes, by orbax.

It needs `pip install 'jaxgrad[checkpoint]'`, which the first save or load imports.
"""

from __future__ import annotations

import importlib

from ...names.not_provided import names_of
from .api import CheckpointException as CheckpointException
from .default_planner import DefaultLoadPlanner as DefaultLoadPlanner
from .filesystem import FileSystemReader as FileSystemReader
from .filesystem import FileSystemWriter as FileSystemWriter
from .state_dict_loader import load as load
from .state_dict_loader import load_state_dict as load_state_dict
from .state_dict_saver import async_save as async_save
from .state_dict_saver import save as save
from .state_dict_saver import save_state_dict as save_state_dict

_MODULES = ("state_dict", "stateful")

_find, __dir__ = names_of(__name__)


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _find(name)
