"""The package functorch: the first names of PyTorch's transforms, which are in `torch.func`."""

from __future__ import annotations

from ..func import functionalize as functionalize
from ..func import grad as grad
from ..func import grad_and_value as grad_and_value
from ..func import hessian as hessian
from ..func import jacfwd as jacfwd
from ..func import jacrev as jacrev
from ..func import jvp as jvp
from ..func import rearrange as rearrange
from ..func import vjp as vjp
from ..func import vmap as vmap
from ..names.not_provided import names_of
from .make_functional import FunctionalModule as FunctionalModule
from .make_functional import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers
from .make_functional import combine_state_for_ensemble as combine_state_for_ensemble
from .make_functional import make_functional as make_functional
from .make_functional import make_functional_with_buffers as make_functional_with_buffers

__getattr__, __dir__ = names_of(__name__)
