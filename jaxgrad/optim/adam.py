"""Adam and AdamW."""

from __future__ import annotations

from ..tape.sparse_tensor import SparseTensor
from ..tape.tensor import Tensor
from . import rules
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer
from .options import Options, Params, Rate, check, check_fused, check_pair, check_rate, is_used


class Adam(FusedOptimizer):
    """Adam: steps scaled by estimates of the first and second moments of the gradients.

    `g = grad + weight_decay * p; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) *
    g**2; p = p - lr * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + eps)`. `amsgrad` uses the
    maximum of all `v`; `decoupled_weight_decay` is that of `AdamW`.

    params: as for `Optimizer`. lr, betas: numbers or one-element tensors. maximize: use `-grad`.
    differentiable: record the step on the tape. foreach, capturable, fused: accepted, without
    effect. State of each parameter: `step`, without dimensions; `exp_avg`, `exp_avg_sq` and
    `max_exp_avg_sq`, of its shape and dtype. Raises ValueError for options out of range. Sources:
    Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014; Reddi et al., "On the
    Convergence of Adam and Beyond", 2018.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    added_options = (
        "amsgrad",
        "maximize",
        "capturable",
        "differentiable",
        "decoupled_weight_decay",
        "foreach",
        "fused",
    )

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-3,
        betas: tuple[Rate, Rate] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        check_rate(lr)
        check("epsilon value", eps)
        check_pair("betas", betas)
        for index in (0, 1):
            check(f"beta parameter at index {index}", betas[index], below=1)
            if isinstance(betas[index], Tensor) and betas[index].numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")
        check("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def accepted(self, group: Options, gradient: SparseTensor) -> Tensor:
        raise RuntimeError(
            "Adam does not support sparse gradients, please consider SparseAdam instead"
        )

    def rule(self, group: Options) -> rules.AdamUpdate:
        decays = is_used(group["weight_decay"])
        decoupled = decays and group["decoupled_weight_decay"]
        return rules.AdamUpdate(group["amsgrad"], decoupled, group["maximize"], decays)


class AdamW(Adam):
    """Adam with decoupled weight decay: `p = p - lr * weight_decay * p` besides the step of `Adam`.

    The decay does not enter the moments. Arguments, state and errors are those of `Adam`.
    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2017.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.AdamW([x], lr=0.1, weight_decay=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8500, 1.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-3,
        betas: tuple[Rate, Rate] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


__getattr__ = with_functional_form(__name__)
