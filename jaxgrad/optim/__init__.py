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

from . import lr_scheduler as lr_scheduler
from . import optimizer as optimizer
from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .lbfgs import LBFGS as LBFGS
from .optimizer import Optimizer as Optimizer
from .rmsprop import RMSprop as RMSprop
from .sgd import SGD as SGD
