"""Adam and AdamW."""

from __future__ import annotations

from ..tape.tensor import Tensor
from . import rules
from .fused_step import Updating
from .options import check, check_fused, check_rate, is_used


class Adam(Updating):
    """Adam. Stands on `optax.scale_by_adam`; PyTorch's AMSGrad is another than optax's and is
    written out in `optim/rules.py`.

    lr: the learning rate, a number or a tensor of one element; betas: of the two moments; eps:
    added to the root of the second; weight_decay: of the L2 penalty, or with
    `decoupled_weight_decay` of the parameters themselves; maximize: to go uphill; differentiable:
    to record the step on the tape, for parameters that are no leaves. foreach, capturable, fused:
    accepted, and without a meaning: a step is one kernel, and counts are on the device. State:
    `step`, without dimensions, which parameters with as many steps share; `exp_avg`, `exp_avg_sq`
    and `max_exp_avg_sq`, of the parameter's shape and dtype. Raises ValueError for numbers that
    make no sense.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        check_rate(lr)
        check("epsilon value", eps)
        for index in (0, 1):
            check(f"beta parameter at index {index}", betas[index], below=1)
            if isinstance(betas[index], Tensor) and betas[index].numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")
        check("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def __setstate__(self, state):
        super().__setstate__(state)
        names = "amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay"
        for group in self.param_groups:
            for name in names:
                group.setdefault(name, False)
            group.setdefault("foreach", None)
            group.setdefault("fused", None)

    def rule(self, group):
        decays = is_used(group["weight_decay"])
        decoupled = decays and group["decoupled_weight_decay"]
        return rules.Adam(group["amsgrad"], decoupled, group["maximize"], decays)


class AdamW(Adam):
    """Adam with decoupled weight decay: it shrinks the parameters, and is no part of the moments.
    Stands on `optax.scale_by_adam` and `optax.add_decayed_weights`. Arguments, state and errors
    are those of `Adam`.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.AdamW([x], lr=0.1, weight_decay=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8500, 1.8000], requires_grad=True)
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
