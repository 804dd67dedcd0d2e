"""Layers that call one function; a class statement names the function and the options."""

from __future__ import annotations

import inspect
from typing import Any

from . import functional
from .module import Module

REQUIRED = inspect.Parameter.empty

_FUNCTIONAL = vars(functional)


def _parameters(options):
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [inspect.Parameter(name, kind, default=value) for name, value in options.items()]


def _constructor(cls):
    """Return an `__init__` of its own for `cls`, which can carry the signature of the options."""

    def __init__(self, *args, **kwargs):
        super(cls, self).__init__(*args, **kwargs)

    return __init__


class FunctionLayer(Module):
    """A layer that calls `function` with its inputs and with its options as keywords.

    A subclass names both: `class ELU(FunctionLayer, function=functional.elu, alpha=1.0)`. Its
    constructor takes the options in this order, positional or by keyword, and makes each an
    attribute. An option without a default is `REQUIRED`. `shown`: the options in `repr`.
    Raises TypeError for missing, surplus or unknown options.
    """

    # without annotations: programs read those of layers, and need not know the names in them
    shown = ()
    function = None
    _names, _signature = (), inspect.Signature()

    def __init_subclass__(cls, function=None, **options):
        super().__init_subclass__()
        if function is not None:
            cls.function = staticmethod(function)
        if function is not None or options:
            cls._names = tuple(options)
            cls._signature = inspect.Signature(_parameters(options))
            if "__init__" not in vars(cls):
                cls.__init__ = _constructor(cls)
            with_self = _parameters({"self": REQUIRED} | options)
            cls.__init__.__signature__ = inspect.Signature(with_self)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        for name, value in self._bind(args, kwargs).items():
            self._set_option(name, value)

    def _bind(self, args, kwargs) -> dict:
        """Return the value of every option."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}(): {error}") from None
        bound.apply_defaults()
        return bound.arguments

    def __setstate__(self, state):
        # PyTorch's layers keep fewer options than they take; a tensor is a member, not an attribute
        members = {*state.get("_parameters", ()), *state.get("_buffers", ())}
        options = self._signature.parameters.values()
        missing = [o for o in options if o.default is not REQUIRED and o.name not in members]
        super().__setstate__({o.name: o.default for o in missing} | state)

    def _set_option(self, name, value):
        setattr(self, name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call `function` with the inputs and the options."""
        if self.function is None:
            return super().forward()
        options = {name: getattr(self, name) for name in self._names}
        # programs put functions of their own in the place of those of nn.functional
        function = _FUNCTIONAL.get(self.function.__name__, self.function)
        return function(*args, **kwargs, **options)

    def _input_signature(self) -> inspect.Signature:
        """The parameters of `forward`: those of `function` that are no options."""
        known = inspect.signature(self.function).parameters
        return inspect.Signature([known[name] for name in known if name not in self._names])

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shown)
