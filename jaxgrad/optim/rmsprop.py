"""RMSprop."""

from __future__ import annotations

from . import rules
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer
from .options import Options, Params, Rate, check, check_rate, is_used


class RMSprop(FusedOptimizer):
    """RMSprop: steps scaled by the root of a moving average of squared gradients.

    `g = grad + weight_decay * p; v = alpha * v + (1 - alpha) * g**2; u = g / (sqrt(v) + eps)`;
    `centered` uses `v - a**2` under the root, with the moving average `a` of `g`. Then
    `b = momentum * b + u; p = p - lr * b`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. maximize: use `-grad`.
    differentiable: record the step on the tape. capturable, foreach: accepted, without effect.
    State of each parameter: `step`, without dimensions; `square_avg`, `momentum_buffer` and
    `grad_avg`, of its shape and dtype. Raises ValueError for options out of range. Sources: Hinton,
    "Neural Networks for Machine Learning", lecture 6e, 2012; centered: Graves, "Generating
    Sequences With Recurrent Neural Networks", 2013.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.RMSprop([x], lr=0.05)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    added_options = ("momentum", "centered", "maximize", "differentiable", "capturable", "foreach")

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_rate(lr)
        check("epsilon value", eps)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        check("alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def rule(self, group: Options) -> rules.RMSpropUpdate:
        return rules.RMSpropUpdate(
            group["centered"],
            is_used(group["momentum"]),
            group["maximize"],
            is_used(group["weight_decay"]),
        )


__getattr__ = with_functional_form(__name__)
