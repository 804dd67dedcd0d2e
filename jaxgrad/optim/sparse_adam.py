"""Adam for sparse gradients."""

from __future__ import annotations

from ..tape.sparse_tensor import SparseTensor, is_sparse
from ..tape.tensor import Tensor
from . import rules, sparse_step
from .functional_form import with_functional_form
from .fused_step import FusedOptimizer, FusedStep
from .options import Options, Params, Rate, check_betas, check_rate


class SparseAdam(FusedOptimizer):
    """Adam for sparse gradients: only rows that have a gradient change, their moments included.

    `m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g**2;
    p = p - lr * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps)`.

    params: as for `Optimizer`. lr, betas: numbers or one-element tensors. maximize: use `-grad`.
    State of each parameter: `step`, without dimensions; `exp_avg`, `exp_avg_sq`, of its shape and
    dtype. Raises ValueError for options out of range and sparse or complex parameters,
    RuntimeError for dense gradients. Source: Kingma and Ba, "Adam: A Method for Stochastic
    Optimization", 2014, in PyTorch's form.

    >>> table = jaxgrad.nn.Embedding(10, 3, sparse=True)
    >>> optimizer = jaxgrad.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> before = table.weight.detach().clone()
    >>> table(jaxgrad.tensor([2, 2])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight.detach() != before).nonzero()[:, 0]
    tensor([2, 2, 2])
    """

    added_options = ("maximize",)

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-3,
        betas: tuple[Rate, Rate] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        check_rate(lr)
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        sparse = [p for group in self.param_groups for p in group["params"] if is_sparse(p)]
        if sparse:
            raise ValueError("SparseAdam requires dense parameter tensors")
        if any(p.is_complex() for group in self.param_groups for p in group["params"]):
            raise ValueError("SparseAdam does not support complex parameters")

    def rule(self, group: Options) -> rules.SparseAdamUpdate:
        return rules.SparseAdamUpdate(group["maximize"])

    def accepted(self, group: Options, gradient: SparseTensor) -> Tensor:
        return gradient

    def update_sparse(
        self, step: FusedStep, position: int, group: Options, param: Tensor, gradient: SparseTensor
    ) -> list[tuple[Tensor, Tensor]]:
        return sparse_step.adam(step, position, group, param, gradient)


__getattr__ = with_functional_form(__name__)
