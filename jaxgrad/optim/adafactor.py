"""Adafactor."""

from __future__ import annotations

from ..tape.tensor import Tensor
from . import rules
from .fused_step import FusedOptimizer, Part, filled
from .options import Options, Params, Rate, check_at_least_zero, check_size, is_used


class Adafactor(FusedOptimizer):
    """Adafactor: second moments of a matrix are kept as one number for each row and column.

    With `b = t**beta2_decay` and `g` the gradient: for two and more dimensions
    `r = r + b * (mean(g**2, -1) - r)`, `c = c + b * (mean(g**2, -2) - c)` and
    `v = r * c / max(mean(r, -2), eps[0])`; otherwise `v = v + b * (g**2 - v)`. Then
    `u = g / max(sqrt(v), eps[0])` and `p = p - lr * weight_decay * p - max(eps[1], rms(p)) *
    min(lr, 1 / sqrt(t)) * u / max(1, rms(u) / d)`, with `rms` the root of the mean square of all
    elements.

    params: as for `Optimizer`, of real dtypes. lr: a number or a one-element tensor. eps: a pair;
    the first one is by default that of the dtype. maximize: use `-grad`. foreach: accepted, without
    effect. State of each parameter: `step`, without dimensions; `row_var` and `col_var`, with the
    last or the last but one size 1, or `variance`, of its shape. Raises ValueError for options out
    of range, RuntimeError for complex parameters and sparse gradients. Source: Shazeer and Stern,
    "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018, in PyTorch's form.

    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Adafactor([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> optimizer.state[x]["row_var"]
    tensor([[10.],
            [50.]])
    """

    added_options = ("foreach",)

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        check_size(lr)
        check_at_least_zero("Learning rate", lr)
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check_at_least_zero("epsilon1", eps[0])
        check_at_least_zero("epsilon2", eps[1])
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check_at_least_zero("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def rule(self, group: Options, factored: bool = False) -> rules.AdafactorUpdate:
        return rules.AdafactorUpdate(
            factored,
            group["eps"][0] is not None,
            group["maximize"],
            is_used(group["weight_decay"]),
        )

    def parts(self, group: Options, params: list[Tensor], grads: list[Tensor]) -> list[Part]:
        if any(param.dtype.is_complex for param in params):
            raise RuntimeError("Adafactor does not support complex parameters")
        parts = []
        for factored in (True, False):
            pairs = [
                pair for pair in zip(params, grads, strict=True) if (pair[0].ndim > 1) == factored
            ]
            if pairs:
                parts.append((self.rule(group, factored), *map(list, zip(*pairs, strict=True))))
        return parts

    def initial(self, group: Options, name: str, param: Tensor) -> Tensor | None:
        if name == "variance":
            return filled(param, 0)
        shape = list(param.shape)
        shape[-1 if name == "row_var" else -2] = 1
        return filled(param, 0, shape)
