"""What tests ask about the kernels of programs."""


def is_observed(program) -> bool:
    """Whether the kernel of a program is wrapped in one that calls observers."""
    return "observed" in getattr(getattr(program.kernel, "__code__", None), "co_freevars", ())
