"""What PyTorch's tests ask of modes, as torch.utils._mode_utils."""

from __future__ import annotations

import contextlib

from ..names.missing import missing_in

# functions of tensors are never dispatched to `__torch_dispatch__`, so there is nothing to stop
no_dispatch = contextlib.nullcontext


def all_same_mode(modes) -> bool:
    """Whether all of some modes are equal.

    >>> from jaxgrad.utils._mode_utils import all_same_mode
    >>> all_same_mode([None, None]), all_same_mode([None, 1])
    (True, False)
    """
    return all(mode == modes[0] for mode in modes)


__getattr__ = missing_in(__name__)
