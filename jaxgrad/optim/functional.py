"""Optimizers as functions on lists of tensors, as `torch.optim.adam.adam`: a step of the class.

>>> from jaxgrad.optim.sgd import sgd
>>> x = jaxgrad.tensor([1.0, 2.0])
>>> options = {"weight_decay": 0, "momentum": 0, "dampening": 0, "nesterov": False}
>>> sgd([x], [jaxgrad.ones(2)], [None], lr=0.5, maximize=False, **options)
>>> x
tensor([0.5000, 1.5000])
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import no_grad
from ..frontend import tensor_data
from ..tape.tensor import Tensor, known_leaf_state

# by the name of a function: the class of its optimizer, the lists after the parameters and
# gradients, the flags in their order, with the default False or None, and the options
_MOMENTS, _FUSED = "exp_avgs exp_avg_sqs", "fused grad_scale found_inf"
_RATES = "beta1 beta2 lr weight_decay eps"
FORMS = {
    "adadelta": (
        "Adadelta",
        "square_avgs acc_deltas state_steps",
        "capturable foreach differentiable has_complex",
        "lr rho eps weight_decay maximize",
    ),
    "adagrad": (
        "Adagrad",
        "state_sums state_steps",
        f"{_FUSED} has_sparse_grad foreach differentiable has_complex",
        "lr weight_decay lr_decay eps maximize",
    ),
    "adam": (
        "Adam",
        f"{_MOMENTS} max_exp_avg_sqs state_steps",
        f"foreach capturable differentiable {_FUSED} has_complex decoupled_weight_decay",
        f"amsgrad maximize {_RATES}",
    ),
    "adamw": (
        "AdamW",
        f"{_MOMENTS} max_exp_avg_sqs state_steps",
        f"foreach capturable differentiable {_FUSED} has_complex",
        f"amsgrad maximize {_RATES}",
    ),
    "adamax": (
        "Adamax",
        "exp_avgs exp_infs state_steps",
        "foreach maximize differentiable capturable has_complex",
        _RATES,
    ),
    "asgd": (
        "ASGD",
        "axs mus etas state_steps",
        "foreach maximize differentiable capturable has_complex",
        "lambd lr t0 alpha weight_decay",
    ),
    "nadam": (
        "NAdam",
        f"{_MOMENTS} mu_products state_steps",
        "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
        f"{_RATES} momentum_decay",
    ),
    "radam": (
        "RAdam",
        f"{_MOMENTS} state_steps",
        "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
        _RATES,
    ),
    "rmsprop": (
        "RMSprop",
        "square_avgs grad_avgs momentum_buffer_list state_steps",
        "foreach maximize differentiable capturable has_complex",
        "lr alpha eps weight_decay momentum centered",
    ),
    "rprop": (
        "Rprop",
        "prevs step_sizes state_steps",
        "foreach capturable maximize differentiable has_complex",
        "step_size_min step_size_max etaminus etaplus",
    ),
    "sgd": (
        "SGD",
        "momentum_buffer_list",
        f"has_sparse_grad foreach {_FUSED}",
        "weight_decay momentum lr dampening nesterov maximize",
    ),
    "sparse_adam": (
        "SparseAdam",
        f"{_MOMENTS} state_steps",
        "",
        "eps beta1 beta2 lr maximize",
    ),
}

# the name in the state of an optimizer that is not that of the list without its "s"
_STATES = {"momentum_buffer_list": "momentum_buffer", "state_sums": "sum", "state_steps": "step"}

# options of an optimizer that are pairs
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}

# flags that choose how PyTorch computes, or say what gradients are like
_WITHOUT_EFFECT = frozenset(
    ("foreach", "capturable", "fused", "has_complex", "has_sparse_grad", "grad_scale", "found_inf")
)


def _signature(name: str) -> inspect.Signature:
    _, lists, flags, options = FORMS[name]
    first = ("params", "d_p_list" if name == "sgd" else "grads", *lists.split())
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    unset = {"foreach": None, "fused": None, "grad_scale": None, "found_inf": None}
    return inspect.Signature(
        [
            *[inspect.Parameter(word, kinds[0]) for word in first],
            *[
                inspect.Parameter(flag, kinds[0], default=unset.get(flag, False))
                for flag in flags.split()
            ],
            *[inspect.Parameter(option, kinds[1]) for option in options.split()],
        ]
    )


@functools.cache
def form_of(name: str, optimizer: type) -> Callable[..., None]:
    """The functional form of a class of optimizers, under a name of `FORMS`."""
    signature = _signature(name)

    def function(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        _step(name, optimizer, dict(bound.arguments))

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature
    function.__doc__ = (
        f"Update `params` and the lists of their state by a step of `{optimizer.__name__}`."
    )
    return function


def _step(name: str, kind: type, arguments: dict[str, Any]):
    _, lists, flags, options = FORMS[name]
    params = arguments["params"]
    grads = arguments["d_p_list" if name == "sgd" else "grads"]
    if arguments.get("found_inf") is not None and bool(arguments["found_inf"]):
        return
    if arguments.get("grad_scale") is not None:
        grads = [grad / arguments["grad_scale"] for grad in grads]
    named = [word for word in (*flags.split(), *options.split()) if word not in _WITHOUT_EFFECT]
    chosen = {word: arguments[word] for word in named}
    for pair, parts in _PAIRS.items():
        if parts[0] in chosen:
            chosen[pair] = tuple(chosen.pop(part) for part in parts)
    # a step of the class is for leaves
    recorded = chosen.get("differentiable", False)
    targets = list(params) if recorded else [param.detach() for param in params]
    optimizer = kind(targets, **chosen)
    states = {_STATES.get(word, word[:-1]): arguments[word] for word in lists.split()}
    for number, target in enumerate(targets):
        optimizer.state[target] = _state(name, states, number)
    # `.grad` of a tensor that is no leaf warns
    before = [getattr(known_leaf_state(target), "grad", None) for target in targets]
    try:
        for target, grad in zip(targets, grads, strict=True):
            target.grad = grad
        optimizer.step()
    finally:
        for target, grad in zip(targets, before, strict=True):
            target.grad = grad
    if name == "sparse_adam":
        states.pop("step")  # which the caller counts
    _store(states, [optimizer.state[target] for target in targets])


def _state(name: str, states: dict[str, list], number: int) -> dict[str, Tensor]:
    """The state of a parameter: what the lists have at a number."""
    state = {word: values[number] for word, values in states.items() if len(values) > number}
    if name == "sparse_adam":
        state["step"] = tensor_data.tensor(float(state["step"] - 1))
    elif "step" in states and not isinstance(state.get("step"), Tensor):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors, "
            f"one for each parameter, but at {number} it has {state.get('step')!r}"
        )
    return {word: value for word, value in state.items() if value is not None}


@no_grad()
def _store(states: dict[str, list], results: list[dict[str, Tensor]]):
    """Write the state after a step to the tensors of the lists, and to places that are None."""
    for word, values in states.items():
        for number, (value, state) in enumerate(zip(values, results, strict=False)):
            result = state.get(word)
            if value is None:
                values[number] = result
            elif result is not None and result is not value:
                value.copy_(result)
