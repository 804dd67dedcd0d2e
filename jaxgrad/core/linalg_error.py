"""The error of factorizations and solvers."""


class LinAlgError(RuntimeError):
    """A matrix has no such factorization, inverse or solution.

    It is not positive definite, or singular. Only values that are known raise it: inside
    `jaxgrad.jit` and JAX's transformations the results hold NaN or infinity instead.

    >>> try:
    ...     jaxgrad.linalg.inv(jaxgrad.zeros(2, 2))
    ... except jaxgrad.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


def missing_derivative(name: str, condition: str) -> str:
    """The error of a derivative that does not exist; condition: when it does."""
    return f"the derivative of {name} does not exist at this value: it exists if {condition}"


LinAlgError.__module__ = "jaxgrad.linalg"  # where users find it
