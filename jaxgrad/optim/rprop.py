"""Resilient backpropagation."""

from __future__ import annotations

from ..tape.tensor import Tensor
from . import rules
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer, filled
from .options import Options, Params, Rate, check_rate


class Rprop(FusedOptimizer):
    """Resilient backpropagation: steps that grow while the sign of the gradient stays the same.

    Each element has a step size `s`, which begins as `lr`. Where the product of the gradient and
    the one before is positive, `s = s * etas[1]`; where it is negative, `s = s * etas[0]` and the
    gradient counts as zero. `s` is limited to `step_sizes`; then `p = p - sign(grad) * s`.

    params: as for `Optimizer`. lr: a number or a one-element tensor. maximize: use `-grad`.
    differentiable: record the step on the tape. capturable, foreach: accepted, without effect.
    State of each parameter: `step`, without dimensions; `prev` and `step_size`, of its shape and
    dtype. Raises ValueError for options out of range. Source: Riedmiller and Braun, "A Direct
    Adaptive Method for Faster Backpropagation Learning", 1993.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.Rprop([x], lr=0.1)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (x * x).sum().backward()
    ...     optimizer.step()
    >>> x
    tensor([0.7800, 1.7800], requires_grad=True)
    """

    added_options = ("foreach", "maximize", "differentiable", "capturable")

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def rule(self, group: Options) -> rules.RpropUpdate:
        return rules.RpropUpdate(group["maximize"])

    def initial(self, group: Options, name: str, param: Tensor) -> Tensor | None:
        rate = group["lr"]
        if name == "prev":
            return super().initial(group, name, param)
        if isinstance(rate, Tensor):
            return rate.detach().to(param.dtype).reshape(()).expand(param.shape).clone()
        return filled(param, complex(rate, rate) if param.dtype.is_complex else rate)


__getattr__ = with_functional_form(__name__)
