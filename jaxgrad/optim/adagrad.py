"""Adagrad."""

from __future__ import annotations

from . import rules
from .fused_step import Updating, filled, new_counter
from .options import check, check_fused, check_rate, is_used


class Adagrad(Updating):
    """Adagrad. Written out in `optim/rules.py`: optax has eps inside of the root, PyTorch outside.

    lr: the learning rate, a number or a tensor of one element; lr_decay: how fast it falls with the
    steps; weight_decay: of the L2 penalty; initial_accumulator_value: what the sums of squares
    begin with; eps: added to their roots; maximize: to go uphill; differentiable: to record the
    step on the tape. foreach, fused: accepted, and without a meaning. State, which is there from
    the beginning: `step`, without dimensions, which parameters with as many steps share; `sum`, of
    the parameter's shape and dtype. Raises ValueError for numbers that make no sense.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Adagrad([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_rate(lr)
        check("lr_decay value", lr_decay)
        check("weight_decay value", weight_decay)
        check("initial_accumulator_value value", initial_accumulator_value)
        check("epsilon value", eps)
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        count = new_counter()
        for group in self.param_groups:
            for param in group["params"]:
                begin = {"step": count, "sum": self.initial(self.rule(group), "sum", param)}
                self.state[param].update(begin)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("fused", None)
            for name in ("maximize", "differentiable"):
                group.setdefault(name, False)

    def rule(self, group):
        return rules.Adagrad(group["maximize"], is_used(group["weight_decay"]))

    def initial(self, rule, name, param):
        value = self.defaults["initial_accumulator_value"]
        return filled(param, complex(value, value) if param.dtype.is_complex else value)
