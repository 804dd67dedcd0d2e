"""Optimizers that compute PyTorch's numbers; a step is one kernel, or part of a compiled function.

>>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
>>> optimizer = jaxgrad.optim.SGD([x], lr=0.25)
>>> @jaxgrad.jit
... def step():
...     optimizer.zero_grad()
...     loss = (x * x).sum()
...     loss.backward()
...     optimizer.step()
...     return loss.detach()
>>> step(), step(), x
(tensor(5.), tensor(1.2500), tensor([0.2500, 0.5000], requires_grad=True))
"""

import importlib

from ..names.missing import MissingName
from . import lr_scheduler as lr_scheduler
from . import optimizer as optimizer
from .adadelta import Adadelta as Adadelta
from .adafactor import Adafactor as Adafactor
from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .adamax import Adamax as Adamax
from .asgd import ASGD as ASGD
from .lbfgs import LBFGS as LBFGS
from .muon import Muon as Muon
from .nadam import NAdam as NAdam
from .optimizer import Optimizer as Optimizer
from .radam import RAdam as RAdam
from .rmsprop import RMSprop as RMSprop
from .rprop import Rprop as Rprop
from .sgd import SGD as SGD
from .sparse_adam import SparseAdam as SparseAdam


def __getattr__(name):
    if name == "swa_utils":  # few programs use it
        return importlib.import_module(f"{__name__}.swa_utils")
    raise MissingName(__name__, name)
