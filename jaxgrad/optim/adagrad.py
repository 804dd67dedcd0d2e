"""Adagrad."""

from __future__ import annotations

from ..tape.sparse_tensor import SparseTensor
from ..tape.tensor import Tensor
from . import rules, sparse_step
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer, FusedStep, beginning, filled, new_counter
from .options import Options, Params, Rate, check, check_fused, check_rate, is_used


class Adagrad(FusedOptimizer):
    """Adagrad: steps scaled by the root of the sum of all squared gradients.

    `g = grad + weight_decay * p; s = s + g**2;
    p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)`, where `s` starts at
    `initial_accumulator_value`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. maximize: use `-grad`.
    differentiable: record the step on the tape. foreach, fused: accepted, without effect. State of
    each parameter, present from the start: `step`, without dimensions; `sum`, of its shape and
    dtype. Raises ValueError for options out of range. Source: Duchi et al., "Adaptive Subgradient
    Methods for Online Learning and Stochastic Optimization", 2011.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Adagrad([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    added_options = ("foreach", "fused", "maximize", "differentiable")

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_rate(lr)
        check("lr_decay value", lr_decay)
        check("weight_decay value", weight_decay)
        check("initial_accumulator_value value", initial_accumulator_value)
        check("epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        with beginning(self):
            count = new_counter()
            for group in self.param_groups:
                for param in group["params"]:
                    begin = {"step": count, "sum": self.initial(group, "sum", param)}
                    self.state[param].update(begin)

    def rule(self, group: Options) -> rules.AdagradUpdate:
        return rules.AdagradUpdate(group["maximize"], is_used(group["weight_decay"]))

    def initial(self, group: Options, name: str, param: Tensor) -> Tensor | None:
        value = self.defaults["initial_accumulator_value"]
        return filled(param, complex(value, value) if param.dtype.is_complex else value)

    def accepted(self, group: Options, gradient: SparseTensor) -> Tensor:
        if is_used(group["weight_decay"]):
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        return gradient.to_dense() if group["differentiable"] else gradient

    def update_sparse(
        self, step: FusedStep, position: int, group: Options, param: Tensor, gradient: SparseTensor
    ) -> list[tuple[Tensor, Tensor]]:
        return sparse_step.adagrad(step, position, group, param, gradient)


__getattr__ = with_functional_form(__name__)
