"""Anomaly mode: an error of a backward pass, or a NaN in it, is traced back to the line of the
forward pass that it belongs to.

As a `with` block the mode holds in the thread or asyncio task that entered it; what a function sets
outside of every block holds in all threads, as it does in PyTorch.
"""

from __future__ import annotations

import warnings

from ._inspect.anomaly_detection import Settings, enter, holder, leave, settings
from .grad_mode import _Mode

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class _Anomaly(_Mode):
    """Settings that hold inside of a `with` block, or of a function that is decorated."""

    settings: Settings

    def __enter__(self):
        enter(self, self.settings)

    def __exit__(self, *exception):
        leave(self)

    def clone(self):
        made = _Anomaly()
        made.settings = self.settings
        return made


class detect_anomaly(_Anomaly):
    """Inside, what goes wrong in a backward pass is told together with the call that it is of.

    An error that a node, a hook or a Function raises is preceded by a UserWarning with the
    traceback of the call that recorded the node, and with those of the calls before it where the
    node was recorded by a backward pass itself. With `check_nan`, a node that returns NaN raises
    RuntimeError, which names its operator, the line that called it, and what of its inputs held
    NaN or Inf; so does a sum of gradients that makes one.

    Beyond PyTorch: the error says which operator of the forward pass first made a NaN of none. With
    `check_forward` that operator itself raises RuntimeError. With `check_inf` all of this holds for
    Inf as well. A function compiled by `jaxgrad.jit` whose result holds one is run again, operator
    by operator, on the same arguments, so that the error is found inside of it; what it does
    besides computing is then done twice. A NaN inside of it that its result does not show is not
    looked for.

    It holds in this thread or asyncio task. It costs a few times what the operators themselves
    cost. As a decorator it works too.

    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> x = jaxgrad.tensor(0.0, requires_grad=True)
    >>> with jaxgrad.autograd.detect_anomaly():
    ...     y = x.sqrt() * 0
    ...     try:
    ...         y.backward()
    ...     except RuntimeError as error:
    ...         print(str(error)[:62])
    Function 'SqrtBackward0' returned nan values in its 0th output
    """

    def __init__(self, check_nan: bool = True, *, check_inf=False, check_forward=False):
        self.settings = _checked("detect_anomaly", True, check_nan, check_inf, check_forward)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )


class set_detect_anomaly(_Anomaly):
    """Switch anomaly mode on or off: from this call on, or as a context manager until its end.

    For the options see `detect_anomaly`. Raises TypeError for a `mode` that is no bool.

    >>> with jaxgrad.autograd.set_detect_anomaly(True, check_nan=False):
    ...     jaxgrad.is_anomaly_enabled(), jaxgrad.is_anomaly_check_nan_enabled()
    (True, False)
    >>> jaxgrad.is_anomaly_enabled()
    False
    """

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf=False, check_forward=False):
        self.settings = _checked("set_detect_anomaly", mode, check_nan, check_inf, check_forward)
        self.place = holder()
        self.before = self.place.settings
        self.place.set(self.settings)

    def __enter__(self):
        self.undo()
        super().__enter__()

    def __call__(self, function):
        self.undo()
        return super().__call__(function)

    def undo(self):
        """Take back what the call has set: it holds in a block or a function only."""
        if self.place is not None:
            self.place.set(self.before)
            self.place = None


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off, and its search for NaN.

    Outside of `detect_anomaly` it holds in all threads. Raises TypeError for what is no bool.

    >>> jaxgrad.set_anomaly_enabled(True)
    >>> jaxgrad.is_anomaly_enabled()
    True
    >>> jaxgrad.set_anomaly_enabled(False)
    """
    holder().set(_checked("set_anomaly_enabled", enabled, check_nan, False, False))


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode holds, here and now.

    >>> jaxgrad.is_anomaly_enabled()
    False
    """
    return settings().enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, where it holds, looks for NaN.

    >>> jaxgrad.is_anomaly_check_nan_enabled()
    True
    """
    return settings().check_nan


def _checked(name, enabled, *checks) -> Settings:
    names = ("enabled", "check_nan", "check_inf", "check_forward")
    for position, (argument, value) in enumerate(zip(names, (enabled, *checks), strict=True), 1):
        if not isinstance(value, bool):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be bool, not "
                f"{type(value).__name__}"
            )
    return Settings(enabled, *checks)
