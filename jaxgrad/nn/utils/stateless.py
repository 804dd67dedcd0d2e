"""Modules with other tensors in place of their own, as torch.nn.utils.stateless."""

from __future__ import annotations

from ...func.module_state import functional_call as functional_call
from ...func.module_state import reparametrized
from ...names.missing import missing_in

_reparametrize_module = reparametrized

__getattr__ = missing_in(__name__)
