"""Stochastic gradient descent."""

from __future__ import annotations

from . import rules
from .fused_step import Updating
from .options import check, check_fused, check_rate, is_used


class SGD(Updating):
    """Stochastic gradient descent, with momentum where that is not 0. Stands on `optax.trace`.

    lr: the learning rate, a number or a tensor of one element; weight_decay: of the L2 penalty;
    dampening: how much less of a gradient goes into the momentum, after the first; nesterov: to
    look ahead; maximize: to go uphill; differentiable: to record the step on the tape, for
    parameters that are no leaves. foreach, fused: accepted, and without a meaning: a step is one
    kernel. State: `momentum_buffer`, of the parameter's shape and dtype. Raises ValueError for
    numbers that make no sense.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.SGD([x], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (x * x).sum().backward()
    ...     optimizer.step()
    >>> x
    tensor([0.4600, 0.9200], requires_grad=True)
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_rate(lr)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("nesterov", "maximize", "differentiable", "fused"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)

    def rule(self, group):
        momentum = is_used(group["momentum"])
        return rules.SGD(
            momentum,
            momentum and is_used(group["dampening"]),
            group["nesterov"],
            group["maximize"],
            is_used(group["weight_decay"]),
        )

    def initial(self, rule, name, param):
        return None if rule.damped else super().initial(rule, name, param)
