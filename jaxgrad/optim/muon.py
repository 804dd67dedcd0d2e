"""Muon."""

from __future__ import annotations

from typing import Literal

from ..tape.tensor import Tensor
from . import rules
from .fused_step import FusedOptimizer, Part
from .options import Options, Params, Rate, check_at_least_zero, check_size


class Muon(FusedOptimizer):
    """Muon: steps along the momentum of a matrix made orthogonal.

    `b = momentum * b + (1 - momentum) * grad`, with `nesterov` `u = momentum * b + (1 - momentum) *
    grad`, else `u = b`; `p = (1 - lr * weight_decay) * p - lr * f * o`. `o` is near the orthogonal
    factor of `u`: `ns_steps` times `x = a * x + (b * x @ x.T + c * (x @ x.T)**2) @ x` in bfloat16,
    with `ns_coefficients` `(a, b, c)`, from `u / max(norm(u), eps)`. `f` is `sqrt(max(1, rows /
    columns))`, with `adjust_lr_fn` "match_rms_adamw" `0.2 * sqrt(max(rows, columns))`.

    params: as for `Optimizer`, matrices of real dtypes. lr: a number or a one-element tensor.
    State of each parameter: `momentum_buffer`, of its shape and dtype. Raises ValueError for
    options out of range and parameters that are no matrices, RuntimeError for complex parameters
    and sparse gradients. Source: Jordan et al., "Muon: An optimizer for hidden layers in neural
    networks", 2024; Liu et al., "Muon is Scalable for LLM Training", 2025.

    >>> x = jaxgrad.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Muon([x], lr=0.1, ns_steps=20)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> (x.detach().diagonal() < jaxgrad.tensor([0.95, 1.95])).tolist()
    [True, True]
    """

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: Literal["original", "match_rms_adamw"] | None = None,
    ):
        check_size(lr)
        check_at_least_zero("Learning rate", lr)
        check_at_least_zero("momentum", momentum)
        check_at_least_zero("weight decay", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for param in (param for group in self.param_groups for param in group["params"]):
            if param.ndim != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{param.shape}"
                )

    def rule(self, group: Options) -> rules.MuonUpdate:
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        return rules.MuonUpdate(
            group["nesterov"],
            tuple(group["ns_coefficients"]),
            group["eps"],
            group["ns_steps"],
            group["adjust_lr_fn"],
        )

    def parts(self, group: Options, params: list[Tensor], grads: list[Tensor]) -> list[Part]:
        if any(param.dtype.is_complex for param in params):
            raise RuntimeError("Muon does not support complex parameters")
        if any(param.ndim != 2 for param in params):
            raise ValueError("Param gradient must be a 2D matrix")
        return super().parts(group, params, grads)
