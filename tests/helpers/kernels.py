"""What tests ask about the kernels of programs."""

from jaxgrad.core import kernel


def is_observed(program) -> bool:
    """Whether the kernel of a program is wrapped in one that calls observers."""
    return program.kernel.state == kernel.OBSERVED


def states() -> set[str]:
    """What the calls of all kernels do."""
    return {known.state for known in list(kernel.in_use)}
