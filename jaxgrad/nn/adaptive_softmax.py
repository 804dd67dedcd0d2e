"""The softmax over many classes, a few of them frequent."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from .. import ops
from ..core import dtypes
from ..core.device import DeviceLike
from ..tape.tensor import Tensor, is_concrete
from .activation import log_softmax
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Compute the log-softmax over many classes, a few of them frequent.

    The head has the classes below `cutoffs[0]` and one output for each cluster of the others, those
    from one cutoff to the next. The i-th cluster has a projection to `in_features //
    div_value ** i` features. in_features: the size of the last dimension of the input. n_classes:
    the number of classes, which are sorted by frequency. head_bias: whether the head has a bias.

    Called with an input (N, in_features) or (in_features,) and int64 targets (N,) or without
    dimensions, it returns `output`, the log-probability of each target, and `loss`, minus their
    mean. Raises ValueError for cutoffs that do not increase from 1 to n_classes - 1, RuntimeError
    for other shapes and targets. Source: Grave et al., "Efficient softmax approximation for GPUs",
    2017.

    >>> adaptive = jaxgrad.nn.AdaptiveLogSoftmaxWithLoss(4, 6, cutoffs=[2, 4], div_value=2.0)
    >>> jaxgrad.allclose(adaptive.log_prob(jaxgrad.ones(3, 4)).exp().sum(1), jaxgrad.ones(3))
    True
    >>> adaptive(jaxgrad.ones(3, 4), jaxgrad.tensor([0, 2, 5])).output.shape
    torch.Size([3])
    """

    cutoffs: list[int]
    shortlist_size: int
    n_clusters: int
    head_size: int

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        _check_cutoffs(cutoffs, n_classes)
        options = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value, self.head_bias = [*cutoffs, n_classes], div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for position, (start, stop) in enumerate(itertools.pairwise(self.cutoffs), 1):
            size = int(in_features // div_value**position)
            layers = (in_features, size), (size, stop - start)
            self.tail.append(Sequential(*(Linear(*pair, bias=False, **options) for pair in layers)))

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for layer in (self.head, *itertools.chain(*self.tail)):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        is_batched = target_.ndim > 0
        input = input_ if is_batched else input_.unsqueeze(0)
        target = target_ if is_batched else target_.unsqueeze(0)
        output = self._log_probabilities(input, target)
        return _ASMoutput(output if is_batched else output.squeeze(0), (-output).mean())

    def _log_probabilities(self, input, target):
        """The log-probability of each target. Every cluster sees every sample: which ones are its
        own would be shapes that depend on values.
        """
        head = log_softmax(self.head(input), 1)
        column = target.clamp_max(self.shortlist_size - 1)
        within = None
        for position, (start, stop) in enumerate(itertools.pairwise(self.cutoffs)):
            is_here = (target >= start) & (target < stop)
            if is_concrete(is_here) and not bool(is_here.any()):
                continue
            column = ops.where(is_here, self.shortlist_size + position, column)
            scores = log_softmax(self.tail[position](input), 1)
            place = (target - start).clamp(0, stop - start - 1)
            picked = ops.where(is_here, scores.gather(1, place.unsqueeze(1)).squeeze(1), 0)
            within = picked if within is None else within + picked
        log_prob = head.gather(1, column.unsqueeze(1)).squeeze(1)
        return log_prob if within is None else log_prob + within

    def _check(self, input, target):
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.ndim and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.ndim != target.ndim + 1:
            raise RuntimeError(
                f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found "
                f"inputs with size {input.shape}"
            )
        if target.numel() and is_concrete(target):
            least, greatest = target.min().item(), target.max().item()
            if least < 0 or greatest >= self.n_classes:
                raise RuntimeError(
                    f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                    f"[{least}, {greatest}] were found. "
                )

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, (N, n_classes), for an input
        (N, in_features).
        """
        head = log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for position, cluster in enumerate(self.tail):
            column = head[:, self.shortlist_size + position].unsqueeze(1)
            parts.append(log_softmax(cluster(input), 1) + column)
        return ops.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most likely class of each sample, (N,), for an input (N, in_features).

        Only if a cluster is more likely than every frequent class, its classes are looked at.
        """
        frequent = self.head(input).argmax(1)
        is_rare = frequent >= self.shortlist_size
        return ops.where(is_rare, self.log_prob(input).argmax(1), frequent)


def _check_cutoffs(cutoffs, n_classes):
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    bounded = min(cutoffs) > 0 and max(cutoffs) < n_classes
    if not bounded or cutoffs != sorted({int(cutoff) for cutoff in cutoffs}):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
            f"order, where each value is between 1 and n_classes-1, not {cutoffs}"
        )
