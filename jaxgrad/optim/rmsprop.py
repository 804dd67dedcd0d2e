"""RMSprop."""

from __future__ import annotations

from . import rules
from .fused_step import Updating
from .options import check, check_rate, is_used


class RMSprop(Updating):
    """RMSprop. Stands on `optax.scale_by_rms` and `optax.scale_by_stddev`, with `optax.trace`.

    lr: the learning rate, a number or a tensor of one element; alpha: of the mean of squares; eps:
    added to its root; weight_decay: of the L2 penalty; momentum: of the steps; centered: to divide
    by the standard deviation; maximize: to go uphill; differentiable: to record the step on the
    tape. capturable, foreach: accepted, and without a meaning. State: `step`, without dimensions,
    which parameters with as many steps share; `square_avg`, `momentum_buffer` and `grad_avg`, of
    the parameter's shape and dtype. Raises ValueError for numbers that make no sense.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.RMSprop([x], lr=0.05)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_rate(lr)
        check("epsilon value", eps)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        check("alpha value", alpha)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("momentum", 0)
            for name in ("centered", "maximize", "differentiable", "capturable"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)

    def rule(self, group):
        return rules.RMSprop(
            group["centered"],
            is_used(group["momentum"]),
            group["maximize"],
            is_used(group["weight_decay"]),
        )
