"""Operators on the values and indices of sparse tensors.

PyTorch has them as operators on sparse tensors, of which STAND_INS are made.
"""

import importlib

from . import STAND_INS, Int, S, T, samples_of

# 2 x 3, sorted; the same with an index twice, unsorted; the groups of four elements
INDICES = Int(values=[[0, 1, 1], [2, 0, 2]])
TWICE = Int(values=[[1, 0, 1, 1], [2, 2, 0, 2]])
GROUPS = Int(values=[0, 0, 1, 2])
MIXED = Int(values=[2, 0, 0, 2])

SAMPLES = [
    *samples_of("ops._coo_tensor ops._coo_values ops._coo_t", T(3)),
    *samples_of("ops._coo_transpose ops._coo_permute", T(3)),
    S("ops._coo_to_dense", T(4), TWICE, (2, 3), complex=True),
    S("ops._coo_to_dense", T(3, 2), INDICES, (2, 3, 2)),
    S("ops._coo_to_dense", T(0), Int(2, 0), (2, 3)),
    S("ops._coo_to_dense", T(2), Int(0, 2), ()),
    S("ops._coo_mask", T(2, 3), INDICES, complex=True),
    S("ops._coo_mask", T(2, 3, 2), INDICES),
    S("ops._coo_to_sparse", T(2, 3), INDICES),
    S("ops._coo_to_sparse_dim", T(2, 3), Int(values=[[0, 1]])),
    S("ops._coo_group", T(4), MIXED, 3, complex=True),
    S("ops._coo_group", T(4, 2), MIXED, 3),
    S("ops._coo_ungroup", T(3), MIXED),
    S("ops._coo_sum", T(4), MIXED, 3),
    S("ops._coo_sum", T(4, 2), None, 0),
    S("ops._coo_add", T(2), T(2), MIXED, 3, 0.5),
    S("ops._coo_add", T(2), T(2), None, 0, 2),
    S("ops._coo_add", T(1), T(3), MIXED, 3, 2),
    S("ops._coo_sub", T(2), T(2), MIXED, 3, 0.5),
    S("ops._coo_sub", T(1), T(3), MIXED, 3, 2),
    S("ops._coo_add_to", T(2, 3), T(4), TWICE, 0.5, complex=True),
    S("ops._coo_mm", T(3), INDICES, 2, T(3, 2), complex=True),
    S("ops._coo_mm", T(4), TWICE, 2, T(3, 2)),
    S("ops._coo_mm", T(0), Int(2, 0), 2, T(3, 2)),
    S("ops._coo_mv", T(3), INDICES, 2, T(3), complex=True),
    S("ops._coo_sampled_mm", T(2, 2), INDICES, T(3, 2), complex=True),
    S("ops._coo_addmm", T(2, 2), T(3), INDICES, 2, T(3, 2), beta=0.5, alpha=2, complex=True),
    S("ops._coo_addmm", T(2), T(3), INDICES, 2, T(3, 2), beta=0),
    S("ops._coo_sparse_addmm", T(2, 2), T(3), INDICES, 2, T(3, 2), beta=0.5, alpha=2, complex=True),
    S(
        "ops._coo_matmul",
        T(3),
        T(3),
        Int(values=[0, 1, 2, 0]),
        Int(values=[0, 1, 2, 2]),
        MIXED,
        3,
        complex=True,
    ),
    S("ops._coo_softmax", T(4), GROUPS, 3),
    S("ops._coo_softmax", T(4, 2), GROUPS, 3),
    S("ops._coo_log_softmax", T(4), GROUPS, 3),
]


def _torch():
    return importlib.import_module("torch")


def _sparse(indices, values, size):
    return _torch().sparse_coo_tensor(indices, values, size)


def _grouped(values, groups, count):
    if groups is None:
        return values
    return _sparse(groups[None], values, (count, *values.shape[1:])).to_dense()


def _joined(values, other, groups, count, alpha):
    return _grouped(_torch().cat([values, alpha * other]), groups, count)


def _matrix(values, indices, rows, other):
    return _sparse(indices, values, (rows, other.shape[0]))


def _addmm(self, values, indices, rows, mat2, **factors):
    return _torch().addmm(self, _matrix(values, indices, rows, mat2), mat2, **factors)


def _sparse_addmm(self, values, indices, rows, mat2, **factors):
    matrix = _matrix(values, indices, rows, mat2)
    return _torch().sparse.addmm(self, matrix, mat2, **factors)


def _masked(self, indices):
    ones = _torch().ones(indices.shape[1], *self.shape[indices.shape[0] :], dtype=self.dtype)
    return self.sparse_mask(_sparse(indices, ones, self.shape).coalesce()).coalesce().values()


def _softmax(name):
    def softmax(values, groups, count):
        torch = _torch()
        indices = torch.stack([groups, torch.arange(len(groups))])
        matrix = _sparse(indices, values, (count, len(groups), *values.shape[1:]))
        return getattr(torch.sparse, name)(matrix, 1).coalesce().values()

    return softmax


IDENTITIES = "_coo_tensor _coo_values _coo_t _coo_transpose _coo_permute"
STAND_INS |= {f"ops.{name}": lambda values: values.clone() for name in IDENTITIES.split()} | {
    "ops._coo_to_dense": lambda values, i, size: _sparse(i, values, size).to_dense(),
    "ops._coo_mask": _masked,
    "ops._coo_to_sparse": lambda self, indices: self[tuple(indices)],
    "ops._coo_to_sparse_dim": lambda self, indices: self[tuple(indices)],
    "ops._coo_group": _grouped,
    "ops._coo_ungroup": lambda values, groups: values[groups],
    "ops._coo_sum": lambda values, groups, count: (
        values.sum(0) if groups is None else _grouped(values, groups, count)
    ),
    "ops._coo_add": _joined,
    "ops._coo_sub": lambda self, other, groups, count, alpha: _joined(
        self, other, groups, count, -alpha
    ),
    "ops._coo_add_to": lambda self, values, indices, alpha: _torch().add(
        self, _sparse(indices, values, self.shape), alpha=alpha
    ),
    "ops._coo_mm": lambda values, i, rows, mat2: _matrix(values, i, rows, mat2) @ mat2,
    "ops._coo_mv": lambda values, i, rows, vec: _matrix(values, i, rows, vec) @ vec,
    "ops._coo_sampled_mm": lambda self, indices, mat2: (self @ mat2.T)[tuple(indices)],
    "ops._coo_addmm": _addmm,
    "ops._coo_sparse_addmm": _sparse_addmm,
    "ops._coo_matmul": lambda self, other, left, right, groups, count: _grouped(
        self[left] * other[right], groups, count
    ),
    "ops._coo_softmax": _softmax("softmax"),
    "ops._coo_log_softmax": _softmax("log_softmax"),
}
