"""Modules of PyTorch that programs import and rarely use: their names say at a call that jaxgrad
does not provide them.
"""

from __future__ import annotations

import functools

from .missing_names import MissingName


class NotProvided:
    """A class or function of PyTorch that jaxgrad does not provide: nothing is an instance of it,
    and a call raises NotImplementedError. `why`: what there is in its place.
    """

    why = ""

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__module__}.{cls.__qualname__} is {cls.why}")


def names_of(module: str, instead: str):
    """The `__getattr__` of a module whose names are not provided. instead: what to use."""

    @functools.cache
    def get(name):
        if name.startswith("_"):
            raise MissingName(module, name)
        shown = f"torch{module.removeprefix('jaxgrad')}"
        why = f"not provided by jaxgrad: {instead}"
        return type(name, (NotProvided,), {"__module__": shown, "why": why})

    return get
