"""RAdam."""

from __future__ import annotations

from . import rules
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer
from .options import Options, Params, Rate, check, check_betas, check_rate, is_used


class RAdam(FusedOptimizer):
    """RAdam: Adam whose first steps leave out the second moments, until their variance is small.

    With `m` and `v` as in `Adam`, `n = 2 / (1 - beta2) - 1` and `k = n - 2 * t * beta2**t /
    (1 - beta2**t)`: where `k > 5`, `r = sqrt((k - 4) * (k - 2) * n / ((n - 4) * (n - 2) * k))` and
    `p = p - lr * r * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps)`; else
    `p = p - lr / (1 - beta1**t) * m`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. decoupled_weight_decay: as for
    `AdamW`. maximize: use `-grad`. differentiable: record the step on the tape. foreach,
    capturable: accepted, without effect. State of each parameter: `step`, without dimensions;
    `exp_avg` and `exp_avg_sq`, of its shape and dtype. Raises ValueError for options out of range.
    Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2019.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.RAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    added_options = (
        "foreach",
        "maximize",
        "differentiable",
        "decoupled_weight_decay",
        "capturable",
    )

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def rule(self, group: Options) -> rules.RAdamUpdate:
        decays = is_used(group["weight_decay"])
        decoupled = decays and group["decoupled_weight_decay"]
        return rules.RAdamUpdate(decoupled, group["maximize"], decays)


__getattr__ = with_functional_form(__name__)
