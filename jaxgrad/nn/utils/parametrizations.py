"""Parametrizations of weights, as torch.nn.utils.parametrizations."""

from __future__ import annotations

from ... import ops
from ...autograd.grad_mode import no_grad
from ...core import dtypes
from ...frontend import factories, random
from ...functions.linalg_solve import solve
from ...functions.norm import norm_except_dim
from ...functions.normalization import _weight_norm
from ...names.missing import missing_in
from ...tape.tensor import Tensor
from .. import functional
from ..convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..module import Module
from . import parametrize

MAPS = ("matrix_exp", "cayley", "householder")


def _named_tensor(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def channel_dim(module: Module) -> int:
    """Return the dimension of the output features in the weight of a layer."""
    transposed = isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d)
    return 1 if transposed else 0


def _identity(size: int, like: Tensor) -> Tensor:
    return factories.eye(size, dtype=like.dtype, device=like.device)


def _is_orthogonal(q: Tensor) -> bool:
    rows, columns = q.shape[-2:]
    eps = 10.0 * rows * dtypes.finfo(q.dtype).eps
    return (q.mH @ q).allclose(_identity(columns, q), atol=eps)


def _make_orthogonal(a: Tensor) -> Tensor:
    """Return the factor Q of the QR decomposition with a positive diagonal of R."""
    packed, tau = ops.geqrf(a)
    signs = packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return ops.linalg_householder_product(packed, tau) * signs


class _Orthogonal(Module):
    """A parametrization by orthogonal or unitary matrices.

    `base`, where there is one, is an orthogonal matrix that the result is multiplied with.
    """

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        transposed = X.shape[-2] < X.shape[-1]
        x = X.mT if transposed else X
        q = self._reflected(x) if self.orthogonal_map == "householder" else self._rotated(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if transposed else q

    def _rotated(self, x):
        """Map the lower triangle to a rotation, by its skew-symmetric part."""
        rows, columns = x.shape[-2:]
        x = x.tril()
        if rows != columns:
            zeros = x.new_zeros((*x.shape[:-1], rows - columns))
            x = ops.cat([x, zeros], -1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = ops.linalg_matrix_exp(skew)
        else:
            one = _identity(rows, skew)
            q = solve(one - skew * 0.5, one + skew * 0.5)
        return q[..., :columns] if rows != columns else q

    @staticmethod
    def _reflected(x):
        """Map the columns below the diagonal to reflections, and the diagonal to signs."""
        below = x.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        signs = x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        return ops.linalg_householder_product(below, tau) * signs

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """Return what `forward` maps to `Q`; with a base, `Q` is made the base."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        transposed = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if transposed else Q
        if not hasattr(self, "base"):
            packed = self._packed(q)
            return packed.mT if transposed else packed
        rows, columns = q.shape[-2:]
        if rows != columns:
            further = random.randn((*q.shape[:-1], rows - columns), dtype=q.dtype, device=q.device)
            self.base = _make_orthogonal(ops.cat([q, further], -1))
        else:
            self.base = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        minus_one = factories.zeros_like(Q)
        minus_one.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return minus_one

    def _packed(self, q):
        """Return reflections below the diagonal and signs on it, whose product is `q`."""
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        packed, tau = ops.geqrf(q)
        signs = packed.diagonal(dim1=-2, dim2=-1).sign()
        packed.diagonal(dim1=-2, dim2=-1).copy_(ops.where(tau == 0.0, -signs, signs))
        return packed


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Parametrize a matrix of a module so that it is orthogonal or unitary; return the module.

    name: a tensor of at least two dimensions, the last two of which are the matrix; with more rows
    than columns the columns are orthonormal, otherwise the rows. orthogonal_map: "matrix_exp" or
    "cayley" of a skew-symmetric matrix, or "householder", a product of reflections, for real
    dtypes; by default "matrix_exp" for square and complex matrices, otherwise "householder".
    use_trivialization: multiply with a fixed orthogonal matrix, so that the tensor may be assigned;
    it begins as the value of now, made orthogonal. Raises ValueError for another name, map or
    number of dimensions. Source: Lezcano-Casado, "Trivializations for Gradient-Based Optimization
    on Manifolds", 2019.

    >>> layer = jaxgrad.nn.utils.parametrizations.orthogonal(jaxgrad.nn.Linear(2, 4))
    >>> q = layer.weight
    >>> bool(jaxgrad.allclose(q.T @ q, jaxgrad.eye(2), atol=1e-5))
    True
    """
    weight = _named_tensor(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


class _WeightNorm(Module):
    """A parametrization by norms, and directions of any length."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrize a tensor of a module by its norms and its direction; return the module.

    `weight = g * v / norm(v)`, with `g` `parametrizations.<name>.original0` and `v` `original1`.
    dim: the dimension that has a norm for each index; None for one norm of the whole tensor. A
    state dict of the older `jaxgrad.nn.utils.weight_norm` loads. Source: Salimans and Kingma,
    "Weight Normalization", 2016.

    >>> layer = jaxgrad.nn.utils.parametrizations.weight_norm(jaxgrad.nn.Linear(2, 3))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([3, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(module, state_dict, prefix, *_):
        older = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state_dict for key in older):
            for number, key in enumerate(older):
                new = f"{prefix}parametrizations.{name}.original{number}"
                state_dict[new] = state_dict.pop(key)

    module.register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A parametrization by a matrix over its largest singular value."""

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        check_iterations(n_power_iterations)
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                matrix = self._matrix(weight)
                for vector, size in zip(("_u", "_v"), matrix.shape, strict=True):
                    drawn = matrix.new_empty(size).normal_(0, 1)
                    self.register_buffer(vector, functional.normalize(drawn, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight):
        return as_matrix(weight, self.dim)

    @no_grad()
    def _power_method(self, matrix, count):
        for _ in range(count):
            self._u.copy_(functional.normalize(matrix @ self._v, dim=0, eps=self.eps))
            self._v.copy_(functional.normalize(matrix.mH @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return functional.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # the next iterations write the buffers in place
        u, v = self._u.clone(), self._v.clone()
        return weight / ops.vdot(u, ops.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def check_iterations(count: int) -> None:
    """Raise ValueError unless the number of power iterations is positive."""
    if count <= 0:
        raise ValueError(
            f"Expected n_power_iterations to be positive, but got n_power_iterations={count}"
        )


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return a weight as a matrix, with the rows along `dim`."""
    return weight.movedim(dim, 0).flatten(1)


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Parametrize a tensor of a module by itself over its largest singular value; return the
    module.

    The singular value is an estimate by power iterations, of which each use in training mode makes
    `n_power_iterations`; the vectors are buffers. A tensor of several dimensions counts as a matrix
    with the rows along `dim`: by default 1 for transposed convolutions, otherwise 0. eps: the least
    norm to divide by. Raises ValueError for another name, IndexError for a dimension that there is
    not. Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018.

    >>> layer = jaxgrad.nn.utils.parametrizations.spectral_norm(jaxgrad.nn.Linear(2, 3))
    >>> value = jaxgrad.linalg.matrix_norm(layer.weight, 2)
    >>> bool((value - 1).abs() < 0.1)
    True
    """
    weight = _named_tensor(module, name)
    dim = channel_dim(module) if dim is None else dim
    parametrization = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, parametrization)


__getattr__ = missing_in(__name__)
