"""Steps for sparse gradients: they read and change only the rows of a parameter that have a
gradient.
"""

from __future__ import annotations

from .. import ops
from ..core.aval import strong
from ..sparse import _pattern
from ..tape.sparse_tensor import SparseTensor, values_of
from ..tape.tensor import Tensor, wrap


class Lookups:
    """A sparse gradient, element by element; `gradient` has at each the sum of all at its index.

    Elements at one index change a tensor by equal parts, so that the number of elements stays the
    same and a compiled step has fixed shapes.
    """

    def __init__(self, gradient: SparseTensor, maximize: bool):
        self.indices, self.part = gradient._indices_held, None
        values = values_of(gradient.detach())
        if not gradient._coalesced:
            groups, count = _pattern.groups(gradient, list(range(_pattern.sparse_dims(gradient))))
            values = ops._coo_ungroup(ops._coo_group(values, groups, count), groups)
            present = _pattern.present(gradient).to(groups.dtype)  # padding changes nothing
            members = ops._coo_ungroup(ops._coo_group(present, groups, count), groups)
            part = present.to(values.dtype) / members.clamp(min=1).to(values.dtype)
            self.part = part.reshape(-1, *[1] * (values.ndim - 1))
        self.gradient = -values if maximize else values

    def read(self, tensor: Tensor) -> Tensor:
        """The elements of a dense tensor at the indices."""
        return ops._coo_mask(tensor.detach(), self.indices)

    def changed(self, tensor: Tensor, change: Tensor) -> Tensor:
        """A dense tensor with a change added at the indices."""
        change = change if self.part is None else change * self.part
        return ops._coo_add_to(tensor.detach(), change.to(tensor.dtype), self.indices)


def as_factor(number):
    """A hyperparameter as a factor of an operator: a number, or a tensor without dimensions."""
    if isinstance(number, Tensor):
        return number.detach().reshape(())
    # a weak type would be float32 in the next operator, as a number is beside a float32 tensor
    return wrap(strong(number)) if hasattr(number, "dtype") else number


def sgd(step, position, group, param, gradient):
    """`p - lr * grad`; elements at one index add up."""
    rate = as_factor(step.number(position, group, "lr"))
    change = values_of(gradient.detach()) * (rate if group["maximize"] else -rate)
    new_param = ops._coo_add_to(param.detach(), change.to(param.dtype), gradient._indices_held)
    return [(param, new_param)]


def adagrad(step, position, group, param, gradient):
    """Adagrad on the rows that have a gradient; for others it changes nothing."""
    rule, rows = step.optimizer.rule(group), Lookups(gradient, group["maximize"])
    state = step.state_for(rule, group, param)
    rate, decay, eps = (
        as_factor(step.number(position, group, name)) for name in ("lr", "lr_decay", "eps")
    )
    count = state["step"] + 1
    before = (count - 1).double()
    total = rows.changed(state["sum"], rows.gradient * rows.gradient)
    scale = (rows.read(total).sqrt() + eps).reciprocal() * rows.gradient
    new_param = rows.changed(param, scale * (-rate / (before * decay + 1)))
    return [(param, new_param), (state["sum"], total), (state["step"], count)]


def adam(step, position, group, param, gradient):
    """Adam on the rows that have a gradient; the moments of others stay as they are."""
    rule, rows = step.optimizer.rule(group), Lookups(gradient, group["maximize"])
    state = step.state_for(rule, group, param)
    rate, beta1, beta2, eps = (
        as_factor(step.number(position, group, name)) for name in ("lr", "beta1", "beta2", "eps")
    )
    count, moments = state["step"] + 1, []
    for name, sample, beta in (
        ("exp_avg", rows.gradient, beta1),
        ("exp_avg_sq", rows.gradient * rows.gradient, beta2),
    ):
        before = rows.read(state[name])
        change = (sample - before) * (1 - beta)
        moments.append((before + change, rows.changed(state[name], change)))
    (first, mean), (second, square) = moments
    exponent = count.double()
    correction = (1 - beta2**exponent).sqrt() / (1 - beta1**exponent)
    new_param = rows.changed(param, first / (second.sqrt() + eps) * (-rate * correction))
    return [
        (param, new_param),
        (state["exp_avg"], mean),
        (state["exp_avg_sq"], square),
        (state["step"], count),
    ]
