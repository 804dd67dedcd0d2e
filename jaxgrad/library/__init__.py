"""Operators that users define, as torch.library: schemas, kernels, rules for each mode.

An operator is recorded as those of the table are, and works eagerly, under `jaxgrad.jit`,
`func.vmap`, `func.grad` and checkpoints. A kernel written in operators is traced into the program
around it. One that reads numbers, such as code of numpy, runs by `jax.pure_callback` there, and
needs `register_fake`.
"""

from __future__ import annotations

from ._custom_op import CustomOpDef as CustomOpDef
from ._custom_op import Library as Library
from ._custom_op import _scoped_library as _scoped_library
from ._custom_op import custom_op as custom_op
from ._custom_op import define as define
from ._custom_op import get_ctx as get_ctx
from ._custom_op import impl as impl
from ._custom_op import register_autograd as register_autograd
from ._custom_op import register_fake as register_fake
from ._custom_op import register_kernel as register_kernel
from ._custom_op import register_vmap as register_vmap
from ._opcheck import OpCheckError as OpCheckError
from ._opcheck import opcheck as opcheck
from ._schema import infer_schema as infer_schema
