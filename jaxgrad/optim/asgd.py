"""Averaged stochastic gradient descent."""

from __future__ import annotations

from ..tape.tensor import Tensor
from . import rules
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer, new_counter
from .options import Options, Params, Rate, check, check_rate, is_used


class ASGD(FusedOptimizer):
    """Averaged stochastic gradient descent: the average of the parameters is part of the state.

    `g = grad + weight_decay * p; p = (1 - lambd * eta) * p - eta * g; ax = ax + mu * (p - ax)`,
    where `eta` begins as `lr` and `mu` as 1; after step `t`, `eta = lr / (1 + lambd * lr *
    t)**alpha` and `mu = 1 / max(1, t - t0)`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. maximize: use `-grad`.
    differentiable: record the step on the tape. foreach, capturable: accepted, without effect.
    State of each parameter: `step`, `eta` and `mu`, without dimensions; `ax`, of its shape and
    dtype. Raises ValueError for options out of range. Source: Polyak and Juditsky, "Acceleration of
    Stochastic Approximation by Averaging", 1992.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.ASGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> optimizer.state[x]["ax"]
    tensor([0.8000, 1.6000])
    """

    added_options = ("foreach", "maximize", "differentiable", "capturable")

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_rate(lr)
        check("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def rule(self, group: Options) -> rules.ASGDUpdate:
        return rules.ASGDUpdate(group["maximize"], is_used(group["weight_decay"]))

    def initial(self, group: Options, name: str, param: Tensor) -> Tensor | None:
        if name == "ax":
            return super().initial(group, name, param)
        rate = group["lr"] if name == "eta" else 1.0
        if isinstance(rate, Tensor):
            return rate.detach().to(new_counter().dtype).reshape(()).clone()
        return new_counter(rate)


__getattr__ = with_functional_form(__name__)
