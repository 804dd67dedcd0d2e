"""Adamax."""

from __future__ import annotations

from . import rules
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer
from .options import Options, Params, Rate, check, check_betas, check_rate, is_used


class Adamax(FusedOptimizer):
    """Adamax: Adam with the maximum norm of the past gradients in place of the second moments.

    `g = grad + weight_decay * p; m = beta1 * m + (1 - beta1) * g; u = max(beta2 * u, abs(g) + eps);
    p = p - lr / (1 - beta1**t) * m / u`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. maximize: use `-grad`.
    differentiable: record the step on the tape. foreach, capturable: accepted, without effect.
    State of each parameter: `step`, without dimensions; `exp_avg` and `exp_inf`, of its shape and
    dtype. Raises ValueError for options out of range. Source: Kingma and Ba, "Adam: A Method for
    Stochastic Optimization", 2014, section 7.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Adamax([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    added_options = ("foreach", "maximize", "differentiable", "capturable")

    def __init__(
        self,
        params: Params,
        lr: Rate = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_rate(lr)
        check("epsilon value", eps)
        check_betas(betas)
        check("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def rule(self, group: Options) -> rules.AdamaxUpdate:
        return rules.AdamaxUpdate(group["maximize"], is_used(group["weight_decay"]))


__getattr__ = with_functional_form(__name__)
