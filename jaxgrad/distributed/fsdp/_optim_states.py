"""The states of the optimizers of sharded models, by the names of parameters."""

from __future__ import annotations

import copy
import enum

from ...autograd.grad_mode import no_grad
from ...names.missing import missing_in
from ...nn.module import Module
from ...optim.optimizer import Optimizer
from ..checkpoint._full_state import broadcast_state, whole
from ..checkpoint._names import names_of_parameters
from ..checkpoint.state_dict import state_to_load
from ._state_dicts import StateDicts, clean, is_left_out, warn_of
from .api import StateDictType


class OptimStateKeyType(enum.Enum):
    """The keys of an optimizer's state dict: the names of parameters, or their numbers.

    >>> [kind.name for kind in jaxgrad.distributed.fsdp.OptimStateKeyType]
    ['PARAM_NAME', 'PARAM_ID']
    """

    PARAM_NAME, PARAM_ID = range(1, 3)


class OptimizerStates(StateDicts):
    """A wrapper whose optimizers have state dicts by the names of the wrapped module."""

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Optimizer, optim_state_dict: dict | None = None, group=None
    ) -> dict:
        """The state of an optimizer by the names of parameters, as `state_dict_type` says: whole
        tensors or DTensors.

        optim_state_dict: a state to convert, by default that of the optimizer. group: taken and not
        used.
        """
        settings = StateDicts.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        is_full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        rank0_only = getattr(config, "rank0_only", False)
        return _named(model, optim, optim_state_dict, is_full, config.offload_to_cpu, rank0_only)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict,
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group=None,
    ) -> dict:
        """What `optim.load_state_dict` takes, from what `optim_state_dict` gave.

        load_directly: load it too. Raises NotImplementedError for `is_named_optimizer`.
        """
        if is_named_optimizer:
            raise NotImplementedError(
                "optim_state_dict_to_load: is_named_optimizer=True is for the optimizers of "
                "TorchRec; the optimizers of jaxgrad have numbers as keys"
            )
        config = StateDicts.get_state_dict_type(model).optim_state_dict_config
        state = _to_load(model, optim, optim_state_dict, getattr(config, "rank0_only", False))
        if load_directly:
            optim.load_state_dict(state)
        return state

    # ---- the functions that these two have replaced

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Optimizer, optim_input=None, rank0_only: bool = True, group=None
    ) -> dict:
        """The state of an optimizer with whole tensors, after a FutureWarning."""
        warn_of("full_optim_state_dict", "optim_state_dict")
        return _named(model, optim, None, True, True, rank0_only)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Optimizer, group=None) -> dict:
        """The state of an optimizer with DTensors, after a FutureWarning."""
        warn_of("sharded_optim_state_dict", "optim_state_dict")
        return _named(model, optim, None, False, False, False)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict, model: Module, optim_input=None, optim: Optimizer | None = None
    ) -> dict:
        """What `optim.load_state_dict` takes, from what `full_optim_state_dict` gave, after a
        FutureWarning. Raises ValueError without `optim`.
        """
        warn_of("shard_full_optim_state_dict", "optim_state_dict_to_load")
        return _to_load(model, optim, full_optim_state_dict, False)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict | None,
        model: Module,
        optim_input=None,
        optim: Optimizer | None = None,
        group=None,
    ) -> dict:
        """As `shard_full_optim_state_dict`, of the state that the process of rank 0 has."""
        warn_of("scatter_full_optim_state_dict", "optim_state_dict_to_load")
        return _to_load(model, optim, full_optim_state_dict, True)

    @staticmethod
    def flatten_sharded_optim_state_dict(
        sharded_optim_state_dict: dict, model: Module, optim: Optimizer
    ) -> dict:
        """What `optim.load_state_dict` takes, from what `sharded_optim_state_dict` gave, after a
        FutureWarning.
        """
        warn_of("flatten_sharded_optim_state_dict", "optim_state_dict_to_load")
        return _to_load(model, optim, sharded_optim_state_dict, False)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict,
        optim_state_key_type: OptimStateKeyType,
        model: Module,
        optim_input=None,
        optim: Optimizer | None = None,
    ) -> dict:
        """An optimizer's state dict with names of parameters as keys, or with numbers, which are
        those in `optim`, or in the list `optim_input`, or in `model.parameters()`.

        Raises ValueError where some keys are names and some are numbers.
        """
        kinds = {type(key) for key in optim_state_dict["state"]}
        if len(kinds) > 1:
            raise ValueError(f"Invalid parameter keys: {optim_state_dict['state'].keys()}")
        wanted = str if optim_state_key_type is OptimStateKeyType.PARAM_NAME else int
        if kinds <= {wanted}:
            return optim_state_dict
        names = _names_in_order(model, optim_input, optim)
        numbers = {name: number for number, name in enumerate(names)}
        key_of = names.__getitem__ if wanted is str else numbers.__getitem__
        groups = copy.deepcopy(optim_state_dict["param_groups"])
        for entry in groups:
            entry["params"] = sorted(map(key_of, entry["params"]))
        state = {key_of(key): value for key, value in optim_state_dict["state"].items()}
        return {"state": state, "param_groups": groups}


def _names_in_order(model, optim_input, optim) -> list[str]:
    """The names of parameters by their numbers."""
    if optim is not None:
        params = [param for entry in optim.param_groups for param in entry["params"]]
    else:
        entries = model.parameters() if optim_input is None else optim_input
        rows = [entry["params"] if isinstance(entry, dict) else [entry] for entry in entries]
        params = [param for row in rows for param in row]
    names = {id(param): clean(name) for name, param in model.named_parameters()}
    return [names[id(param)] for param in params]


@no_grad()
def _named(model, optim, state_dict, is_full, on_cpu, rank0_only) -> dict:
    """The state of an optimizer by the names of the model's parameters."""
    state_dict = optim.state_dict() if state_dict is None else state_dict
    names = names_of_parameters(model, optim)
    groups = [
        entry | {"params": [names.get(key, key) for key in entry["params"]]}
        for entry in state_dict["param_groups"]
    ]
    state = {names.get(key, key): value for key, value in state_dict["state"].items()}
    state = whole(state, is_full, on_cpu)
    return {} if is_left_out(rank0_only) else {"state": state, "param_groups": groups}


def _to_load(model, optim, state_dict, rank0_only) -> dict:
    """The part of a state by names that belongs to an optimizer, in the form that it loads."""
    if optim is None:
        raise ValueError(
            "shard_full_optim_state_dict: give optim=, the optimizer that is to load the state"
        )
    return state_to_load(model, optim, broadcast_state(state_dict) if rank0_only else state_dict)


__getattr__ = missing_in(__name__)
