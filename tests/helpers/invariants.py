"""What decompositions determine: functions of their factors that do not depend on phases.

A sample names one as `through`; torch and jaxgrad are both called through it.
"""


def of_hermitian(operator, matrix, *args, **kwargs):
    """The operator on a Hermitian matrix, which the sample's matrix becomes."""
    return operator(matrix + matrix.mH, *args, **kwargs)


def of_definite(operator, matrix, *args, **kwargs):
    """The operator on a positive definite matrix."""
    return operator(matrix @ matrix.mH + matrix.new_ones(()), *args, **kwargs)


def of_eigenvectors(operator, matrix, *args, **kwargs):
    """Eigenvalues, the projector on the first eigenvector, and a function of the matrix."""
    values, vectors = operator(matrix + matrix.mH, *args, **kwargs)
    first = vectors[..., :1]
    scaled = vectors * values.sin().unsqueeze(-2)
    return values, _product(first, first.mH), _product(scaled, vectors.mH)


def of_any_eigenvectors(operator, matrix, *args, **kwargs):
    """Eigenvalues, and the projectors on the eigenvectors' lines."""
    values, vectors = operator(matrix, *args, **kwargs)
    return values, vectors.unsqueeze(-2) * vectors.unsqueeze(-3).conj()


def of_singular_vectors(operator, matrix, *args, **kwargs):
    """Singular values, a function of the matrix, and projectors on what full matrices add.

    PyTorch leaves these projectors out of the gradient.
    """
    left, values, right = operator(matrix, *args, **kwargs)
    return _of_factors(left, values, right)


def of_transposed_vectors(operator, matrix, *args, **kwargs):
    """The same of torch.svd, which returns V instead of its adjoint."""
    left, values, right = operator(matrix, *args, **kwargs)
    return _of_factors(left, values, right.mH)


def of_no_vectors(operator, matrix, **kwargs):
    """The singular values of torch.svd."""
    return operator(matrix, **kwargs)[1]


def _of_factors(left, values, right):
    k = values.shape[-1]
    product = _product(left[..., :k] * values.sin().unsqueeze(-2), right[..., :k, :])
    more = [rest for rest in (left[..., k:], right[..., k:, :].mH) if rest.shape[-1]]
    return values, product, *[(rest @ rest.mH).detach() for rest in more]


def _product(first, second):
    """The product of matrices, by the same nodes for all shapes."""
    return (first.unsqueeze(-1) * second.unsqueeze(-3)).sum(-2)
