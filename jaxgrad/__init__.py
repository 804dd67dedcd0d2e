"""PyTorch's autograd on JAX: `import jaxgrad as torch`, and the code runs, eager or compiled.

>>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

import importlib
import importlib.util

if importlib.util.find_spec("jaxgrad.rules") is None:
    raise ImportError("this checkout of jaxgrad is not installed: run pip install -e . in it")

from . import autograd as autograd
from . import func as func
from . import methods
from . import nn as nn
from . import ops as ops
from . import random as random
from . import tracing as tracing
from . import trees as trees
from . import utils as utils
from .autograd.anomaly_mode import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from .autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
from .autograd.anomaly_mode import set_anomaly_enabled as set_anomaly_enabled
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
from .avals import Size as Size
from .bridges import from_jax as from_jax
from .bridges import to_jax as to_jax
from .conversion import as_tensor as as_tensor
from .conversion import asarray as asarray
from .conversion import from_dlpack as from_dlpack
from .conversion import from_numpy as from_numpy
from .conversion import tensor as tensor
from .devices import channels_last as channels_last
from .devices import contiguous_format as contiguous_format
from .devices import device as device
from .devices import layout as layout
from .devices import memory_format as memory_format
from .devices import preserve_format as preserve_format
from .devices import strided as strided
from .dtypes import bfloat16 as bfloat16
from .dtypes import bool as bool
from .dtypes import cdouble as cdouble
from .dtypes import cfloat as cfloat
from .dtypes import complex64 as complex64
from .dtypes import complex128 as complex128
from .dtypes import double as double
from .dtypes import dtype as dtype
from .dtypes import finfo as finfo
from .dtypes import float as float
from .dtypes import float16 as float16
from .dtypes import float32 as float32
from .dtypes import float64 as float64
from .dtypes import get_default_dtype as get_default_dtype
from .dtypes import half as half
from .dtypes import iinfo as iinfo
from .dtypes import int as int
from .dtypes import int8 as int8
from .dtypes import int16 as int16
from .dtypes import int32 as int32
from .dtypes import int64 as int64
from .dtypes import long as long
from .dtypes import set_default_dtype as set_default_dtype
from .dtypes import short as short
from .dtypes import uint8 as uint8
from .dtypes import uint16 as uint16
from .dtypes import uint32 as uint32
from .dtypes import uint64 as uint64
from .factories import arange as arange
from .factories import empty as empty
from .factories import empty_like as empty_like
from .factories import eye as eye
from .factories import full as full
from .factories import full_like as full_like
from .factories import linspace as linspace
from .factories import logspace as logspace
from .factories import ones as ones
from .factories import ones_like as ones_like
from .factories import zeros as zeros
from .factories import zeros_like as zeros_like
from .generator import Generator as Generator
from .indexing import masked_select as masked_select
from .indexing import nonzero as nonzero
from .jit import jit as jit
from .methods import is_complex as is_complex
from .methods import is_floating_point as is_floating_point
from .methods import is_inference as is_inference
from .methods import is_tensor as is_tensor
from .methods import numel as numel
from .modes import is_grad_enabled as is_grad_enabled
from .modes import is_inference_mode_enabled as is_inference_mode_enabled
from .numerical import gradient as gradient
from .printing import set_printoptions as set_printoptions
from .promotion import can_cast as can_cast
from .promotion import promote_types as promote_types
from .promotion import result_type as result_type
from .random import default_generator as default_generator
from .random import get_rng_state as get_rng_state
from .random import initial_seed as initial_seed
from .random import manual_seed as manual_seed
from .random import normal as normal
from .random import rand as rand
from .random import rand_like as rand_like
from .random import randint as randint
from .random import randint_like as randint_like
from .random import randn as randn
from .random import randn_like as randn_like
from .random import randperm as randperm
from .random import seed as seed
from .random import set_rng_state as set_rng_state
from .storage import as_strided as as_strided
from .storage import is_conj as is_conj
from .storage import resolve_conj as resolve_conj
from .storage import resolve_neg as resolve_neg
from .tensor import Tensor as Tensor

methods.install()

# where names are that few programs use, or that stand on packages which take long to import
_LATER = {"load": "serialization", "save": "serialization"}
_LATER |= dict.fromkeys(("cond", "fori_loop", "scan", "while_loop"), "control_flow")
_LATER |= dict.fromkeys(
    (
        *("autocast", "clear_autocast_cache", "get_autocast_dtype", "is_autocast_cache_enabled"),
        *("is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_dtype"),
        "set_autocast_enabled",
    ),
    "amp.autocast_mode",
)

_MODULES = ("amp", "autograd", "func", "nn", "ops", "optim", "random", "tracing", "utils")


def __getattr__(name):
    """Every operator of the table is a function here, and its in-place form."""
    if name in ("amp", "optim"):
        return importlib.import_module(f"jaxgrad.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"jaxgrad.{_LATER[name]}"), name)
    if not _is_operator(name):
        raise AttributeError(f"module 'jaxgrad' has no attribute {name!r}")
    return getattr(ops, name)


def __dir__():
    """What users call: no module of the core, and no operator that torch has in torch.ops alone."""
    mine = [name for name, value in globals().items() if type(value) is not type(importlib)]
    helpers = ("_backward", "_forward")
    operators = [name for name in dir(ops) if _is_operator(name) and not name.endswith(helpers)]
    offered = {*mine, *operators, *_MODULES, *_LATER}
    return sorted(name for name in offered if not name.startswith("_"))


def _is_operator(name):
    return not name.startswith("_") and name.removesuffix("_") in ops.library.names
