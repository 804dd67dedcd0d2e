"""The names of parameters, without those of modules that wrap another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...nn.module import Module
from ...optim.optimizer import Optimizer
from ...tape.tensor import Tensor

# the name of the wrapped module in its wrapper, by the wrapper's class
WRAPPERS = {
    "DataParallel": "module.",
    "DistributedDataParallel": "module.",
    "FullyShardedDataParallel": "_fsdp_wrapped_module.",
    "OptimizedModule": "_orig_mod.",
}


def without_wrappers(model: Module) -> Callable[[str], str]:
    """A function that takes the names of wrapped modules out of the name of a tensor."""
    wrapped = [
        (name and f"{name}.", WRAPPERS[type(module).__name__])
        for name, module in model.named_modules()
        if type(module).__name__ in WRAPPERS
    ]

    def name_of(name: str) -> str:
        # the inner ones first: taking out one changes the names behind it alone
        for before, attribute in reversed(wrapped):
            if name.startswith(before + attribute):
                name = before + name.removeprefix(before + attribute)
        return name

    return name_of


def buffers_and_parameters(model: Module) -> Iterator[tuple[str, Tensor]]:
    """The names and tensors of a model, those that have several names with each."""
    name_of = without_wrappers(model)
    for name, tensor in model.named_parameters(remove_duplicate=False):
        yield name_of(name), tensor
    for name, tensor in model.named_buffers(remove_duplicate=False):
        yield name_of(name), tensor


def names_of_parameters(model: Module, optimizer: Optimizer) -> dict[int, str]:
    """The names of an optimizer's parameters by the numbers that they have in its state dict.
    Raises KeyError for a parameter that the model does not have.
    """
    names: dict[int, str] = {}
    for name, tensor in buffers_and_parameters(model):
        names.setdefault(id(tensor), name)
    params = [param for group in optimizer.param_groups for param in group["params"]]
    for number, param in enumerate(params):
        if id(param) not in names:
            raise KeyError(
                f"the parameter {number} of {type(optimizer).__name__}, of shape "
                f"{list(param.shape)}, is none of the model's"
            )
    return {number: names[id(param)] for number, param in enumerate(params)}
