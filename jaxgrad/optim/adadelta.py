"""Adadelta."""

from __future__ import annotations

from . import rules
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer
from .options import Options, Params, Rate, check, check_rate, is_used


class Adadelta(FusedOptimizer):
    """Adadelta: steps of the size of the past steps, scaled by the past gradients.

    `g = grad + weight_decay * p; v = rho * v + (1 - rho) * g**2;
    u = sqrt(a + eps) / sqrt(v + eps) * g; a = rho * a + (1 - rho) * u**2; p = p - lr * u`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. maximize: use `-grad`.
    differentiable: record the step on the tape. capturable, foreach: accepted, without effect.
    State of each parameter: `step`, without dimensions; `square_avg` and `acc_delta`, of its shape
    and dtype. Raises ValueError for options out of range. Source: Zeiler, "ADADELTA: An Adaptive
    Learning Rate Method", 2012.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Adadelta([x], lr=10.0)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9684, 1.9684], requires_grad=True)
    """

    added_options = ("foreach", "maximize", "differentiable", "capturable")

    def __init__(
        self,
        params: Params,
        lr: Rate = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check("epsilon value", eps)
        check("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def rule(self, group: Options) -> rules.AdadeltaUpdate:
        return rules.AdadeltaUpdate(group["maximize"], is_used(group["weight_decay"]))


__getattr__ = with_functional_form(__name__)
