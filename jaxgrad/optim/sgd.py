"""Stochastic gradient descent."""

from __future__ import annotations

from ..tape.sparse_tensor import SparseTensor
from ..tape.tensor import Tensor
from . import rules, sparse_step
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer, FusedStep
from .options import Options, Params, Rate, check, check_fused, check_rate, is_used


class SGD(FusedOptimizer):
    """Stochastic gradient descent with momentum.

    `g = grad + weight_decay * p; b = momentum * b + (1 - dampening) * g`, in the first step `b =
    g`; then `p = p - lr * b`, or with `nesterov` `p = p - lr * (g + momentum * b)`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. maximize: use `-grad`.
    differentiable: record the step on the tape. foreach, fused: accepted, without effect. A sparse
    gradient changes the elements that it has; with momentum, weight decay or differentiable it is
    made dense. State of each parameter: `momentum_buffer`, of its shape and dtype. Raises
    ValueError for options out of range. Source: Sutskever et al., "On the Importance of
    Initialization and Momentum in Deep Learning", 2013, in PyTorch's form.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.SGD([x], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (x * x).sum().backward()
    ...     optimizer.step()
    >>> x
    tensor([0.4600, 0.9200], requires_grad=True)
    """

    added_options = ("nesterov", "maximize", "differentiable", "foreach")

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_rate(lr)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("fused", False)  # in older versions None was not known

    def rule(self, group: Options) -> rules.SGDUpdate:
        momentum = is_used(group["momentum"])
        return rules.SGDUpdate(
            momentum,
            momentum and is_used(group["dampening"]),
            group["nesterov"],
            group["maximize"],
            is_used(group["weight_decay"]),
        )

    def initial(self, group: Options, name: str, param: Tensor) -> Tensor | None:
        return None if self.rule(group).damped else super().initial(group, name, param)

    def accepted(self, group: Options, gradient: SparseTensor) -> Tensor:
        rule = self.rule(group)
        # momentum and decay change all elements, so nothing is gained
        is_dense = rule.momentum or rule.decays or group["differentiable"]
        return gradient.to_dense() if is_dense else gradient

    def update_sparse(
        self, step: FusedStep, position: int, group: Options, param: Tensor, gradient: SparseTensor
    ) -> list[tuple[Tensor, Tensor]]:
        return sparse_step.sgd(step, position, group, param, gradient)


__getattr__ = with_functional_form(__name__)
