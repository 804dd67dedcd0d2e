"""NAdam."""

from __future__ import annotations

from ..tape.tensor import Tensor
from . import rules
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer, new_counter
from .options import Options, Params, Rate, check, check_betas, check_rate, is_used


class NAdam(FusedOptimizer):
    """NAdam: Adam with Nesterov momentum, which grows with the number of steps `t`.

    `g = grad + weight_decay * p; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) *
    g**2; mu(t) = beta1 * (1 - 0.96**(t * momentum_decay) / 2)`, and `c(t)` the product of
    `mu(1), ..., mu(t)`; then `p = p - lr * (mu(t + 1) * m / (1 - c(t + 1)) + (1 - mu(t)) * g /
    (1 - c(t))) / (sqrt(v / (1 - beta2**t)) + eps)`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. decoupled_weight_decay: as for
    `AdamW`. maximize: use `-grad`. differentiable: record the step on the tape. foreach,
    capturable: accepted, without effect. State of each parameter: `step` and `mu_product`, without
    dimensions; `exp_avg` and `exp_avg_sq`, of its shape and dtype. Raises ValueError for options
    out of range. Source: Dozat, "Incorporating Nesterov Momentum into Adam", 2016.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.NAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8944, 1.8944], requires_grad=True)
    """

    added_options = (
        "maximize",
        "foreach",
        "capturable",
        "differentiable",
        "decoupled_weight_decay",
    )

    def __init__(
        self,
        params: Params,
        lr: Rate = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def rule(self, group: Options) -> rules.NAdamUpdate:
        decays = is_used(group["weight_decay"])
        decoupled = decays and group["decoupled_weight_decay"]
        return rules.NAdamUpdate(decoupled, group["maximize"], decays)

    def initial(self, group: Options, name: str, param: Tensor) -> Tensor | None:
        return new_counter(1.0) if name == "mu_product" else super().initial(group, name, param)


__getattr__ = with_functional_form(__name__)
