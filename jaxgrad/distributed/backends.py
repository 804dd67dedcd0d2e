"""The names of the libraries by which processes communicate."""

from __future__ import annotations


class Backend(str):
    """The name of a library that communicates, in small letters: a call returns a plain string.

    Here processes communicate by JAX's engine, whose backends are "gloo" and "nccl"
    (`is_backend_available`). Raises ValueError for what is no string.

    >>> jaxgrad.distributed.Backend("GLOO"), jaxgrad.distributed.Backend.NCCL
    ('gloo', 'nccl')
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]  # noqa: RUF012 - PyTorch's

    def __new__(cls, name: str):
        if not isinstance(name, str):
            raise ValueError(f"Backend(): the name of a backend is a string, not {name!r}")
        return name.lower()
