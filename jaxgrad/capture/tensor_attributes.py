"""The attributes that users set on tensors (`p.no_decay = True`), observed while a function is
traced.

While an observation is open, the class `Tensor` notes the attributes that are set, and those that
are looked up and missing. Those that a tensor has are not observed, which would cost each access of
a tensor's own state: of a tensor that the function meets, all of them count as read.
"""

from __future__ import annotations

import inspect
import sys
import threading

from ..state.ownership import is_internal, root
from ..tape import mode
from ..tape.sparse_tensor import SparseTensor
from ..tape.tensor import Tensor

_lock = threading.Lock()
_observations: set[int] = set()  # their ids


def observe(observation):
    """Let tensors note attributes, until `release`."""
    with _lock:
        _observations.add(id(observation))
        if "__delattr__" not in vars(Tensor):  # set last
            Tensor.__getattr__, Tensor.__setattr__ = _getattr, _setattr
            Tensor.__delattr__ = _delattr


def release(observation):
    """End an observation; without any, the class is as it was."""
    with _lock:
        _observations.discard(id(observation))
        if _observations:
            return
        for name in vars(Tensor).keys() & {"__getattr__", "__setattr__", "__delattr__"}:
            delattr(Tensor, name)


# the slots and properties of tensors, which are no attributes of the user
OWN = frozenset(
    name
    for kind in (*Tensor.__mro__, SparseTensor)
    for name, member in vars(kind).items()
    if inspect.isdatadescriptor(member)
)


def _getattr(tensor, name):
    frame = sys._getframe(1)
    is_users = not (is_internal(frame) or root(frame) == "numpy" or name.startswith("__"))
    observation = mode.open_observation() if is_users else None
    if observation is not None:
        observation.record_missing(tensor, name)
    # raises what it raised before
    return object.__getattribute__(tensor, name)


def _setattr(tensor, name, value):
    _note_write(tensor, name)
    object.__setattr__(tensor, name, value)


def _delattr(tensor, name):
    _note_write(tensor, name)
    object.__delattr__(tensor, name)


def _note_write(tensor, name):
    observation = None if name in OWN else mode.open_observation()
    if observation is not None:
        observation.record_attribute_write(tensor, name)
