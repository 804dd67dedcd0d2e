"""Modules with other tensors in place of their own, as torch.nn.utils.stateless."""

from __future__ import annotations

import warnings

from ...core.tracebacks import users_stacklevel
from ...func import module_state
from ...func.module_state import reparametrized
from ...names.missing import missing_in


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, **options):
    """Call `torch.func.functional_call`, which replaces this name; warns that it is deprecated."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
        "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead "
        "which is a drop-in replacement.",
        FutureWarning,
        stacklevel=users_stacklevel(),
    )
    return module_state.functional_call(module, parameters_and_buffers, args, kwargs, **options)


_reparametrize_module = reparametrized

__getattr__ = missing_in(__name__)
