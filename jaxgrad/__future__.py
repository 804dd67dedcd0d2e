"""How conversions of modules change parameters, as torch.__future__.

By default `module.to()` and its kin give parameters other values.
"""

from __future__ import annotations

from .names.missing import missing_in
from .tape.settings import process


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of a module give it new parameters.

    >>> jaxgrad.__future__.set_overwrite_module_params_on_conversion(True)
    >>> layer = jaxgrad.nn.Linear(1, 1)
    >>> weight = layer.weight
    >>> layer.double().weight is weight, weight.dtype
    (False, torch.float32)
    >>> jaxgrad.__future__.set_overwrite_module_params_on_conversion(False)
    """
    process.overwrites_parameters = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether conversions of a module give it new parameters.

    >>> jaxgrad.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return process.overwrites_parameters


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of a module exchange its parameters by `utils.swap_tensors` with the
    converted ones, so that a parameter gets another class too. It comes before the setting for new
    parameters. `load_state_dict` copies as before, and does not call `module_load`.

    >>> jaxgrad.__future__.set_swap_module_params_on_conversion(True)
    >>> layer = jaxgrad.nn.Linear(1, 1)
    >>> weight = layer.weight
    >>> layer.double().weight is weight, weight.dtype
    (True, torch.float64)
    >>> jaxgrad.__future__.set_swap_module_params_on_conversion(False)
    """
    process.swaps_parameters = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether conversions of a module exchange its parameters.

    >>> jaxgrad.__future__.get_swap_module_params_on_conversion()
    False
    """
    return process.swaps_parameters


__getattr__ = missing_in(__name__)
