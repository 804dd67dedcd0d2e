"""The kinds of state dicts of sharded models: which kind `state_dict()` gives, and its contents."""

from __future__ import annotations

import contextlib
import warnings

from ...autograd.grad_mode import no_grad
from ...names.missing import missing_in
from ...nn.module import Module
from ..checkpoint._full_state import as_they_lie, like_parameter, whole
from ..process_group import get_rank, is_initialized
from ..tensor._dtensor import is_distributed
from . import api
from .api import StateDictSettings, StateDictType

# the name of the wrapped module in its wrapper
WRAPPED = "_fsdp_wrapped_module"
PREFIX = f"{WRAPPED}."

# of the values of a state dict and of an optimizer's
CONFIGS = {
    StateDictType.FULL_STATE_DICT: (api.FullStateDictConfig, api.FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (api.LocalStateDictConfig, api.LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (api.ShardedStateDictConfig, api.ShardedOptimStateDictConfig),
}


def clean(name: str) -> str:
    """The name of a tensor without those of wrapped modules."""
    return name.replace(PREFIX, "")


def is_left_out(rank0_only: bool) -> bool:
    """Whether this process gets an empty dict."""
    return rank0_only and is_initialized() and get_rank() > 0


class StateDicts(Module):
    """A wrapper whose state dict has the names of the wrapped module."""

    def __init__(self):
        super().__init__()
        self._settings = _settings(StateDictType.FULL_STATE_DICT)
        # the dtypes of the buffers that compute in another one
        self._buffer_dtypes: dict = {}
        self.register_state_dict_post_hook(_offer)
        self.register_load_state_dict_pre_hook(_take)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Module]:
        """The units of a model, itself included if it is one; `root_only`: only the units that no
        other unit contains.
        """
        units = [inner for inner in module.modules() if isinstance(inner, StateDicts)]
        return [unit for unit in units if unit.check_is_root()] if root_only else units

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config=None,
        optim_state_dict_config=None,
    ) -> StateDictSettings:
        """Choose which state dict a model and its optimizers have; returns the choice before.

        Raises RuntimeError for options of another kind, NotImplementedError for LOCAL_STATE_DICT.
        """
        before = StateDicts.get_state_dict_type(module)
        chosen = _settings(state_dict_type, state_dict_config, optim_state_dict_config)
        for unit in StateDicts.fsdp_modules(module):
            unit._settings = chosen
        return before or StateDictSettings(None, None, None)

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings | None:
        """Which state dict a model has; None without units. Raises AssertionError where units
        differ.
        """
        units = StateDicts.fsdp_modules(module)
        for unit in units[1:]:
            if unit._settings != units[0]._settings:
                raise AssertionError(
                    "All FSDP modules must have the same state dict settings."
                    f"Got {unit._settings} and {units[0]._settings}."
                )
        return units[0]._settings if units else None

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config=None,
        optim_state_dict_config=None,
    ):
        """A block in which a model has a kind of state dict; see `set_state_dict_type`."""
        options = state_dict_type, state_dict_config, optim_state_dict_config
        before = StateDicts.set_state_dict_type(module, *options)
        try:
            yield
        finally:
            for unit in StateDicts.fsdp_modules(module):
                unit._settings = before


def _settings(kind: StateDictType, config=None, optim_config=None) -> StateDictSettings:
    """The choice of a kind of state dict. Raises RuntimeError for options of another kind."""
    if kind is StateDictType.LOCAL_STATE_DICT:
        raise NotImplementedError(
            "LOCAL_STATE_DICT is the layout of PyTorch's flat parameters, which jaxgrad does not "
            "have: use SHARDED_STATE_DICT, whose DTensors any number of processes can load"
        )
    chosen = []
    names = "state_dict_config", "optim_state_dict_config"
    for name, wanted, value in zip(names, CONFIGS[kind], (config, optim_config), strict=True):
        value = wanted() if value is None else value
        if type(value) is not wanted:
            raise RuntimeError(f"Expected {name} of type {wanted} but got {type(value)}")
        chosen.append(value)
    return StateDictSettings(kind, *chosen)


@no_grad()
def _offer(unit: StateDicts, state_dict, prefix, _metadata):
    """Give the entries of a unit the names of the wrapped module, and whole tensors if wanted."""
    kind, config = unit._settings.state_dict_type, unit._settings.state_dict_config
    is_full = kind is StateDictType.FULL_STATE_DICT and not as_they_lie.get()
    wrapped = prefix + PREFIX
    for key in [key for key in state_dict if key.startswith(wrapped)]:
        name = key.removeprefix(wrapped)
        value = whole(state_dict.pop(key), is_full, config.offload_to_cpu)
        if name in unit._buffer_dtypes:
            value = value.to(unit._buffer_dtypes[name])
        if not (is_full and is_left_out(config.rank0_only)):
            state_dict[prefix + name] = value


def _take(unit: StateDicts, state_dict, prefix, *_):
    """Give the entries of a state dict the names that the wrapper has, and the placements of its
    parameters.
    """
    wrapped = prefix + PREFIX
    parameters = dict(unit._modules[WRAPPED].named_parameters(remove_duplicate=False))
    for key in [key for key in state_dict if key.startswith(prefix)]:
        name = key.removeprefix(wrapped if key.startswith(wrapped) else prefix)
        value = state_dict.pop(key)
        if name in parameters and is_distributed(parameters[name]):
            value = like_parameter(value, parameters[name])
        state_dict[wrapped + name] = value


def warn_of(name: str, instead: str):
    """Warn of a function that PyTorch has replaced."""
    warnings.warn(
        f"``FullyShardedDataParallel.{name}``is being deprecated and is replaced by "
        f"``FullyShardedDataParallel.{instead}``.",
        FutureWarning,
        stacklevel=3,
    )


__getattr__ = missing_in(__name__)
