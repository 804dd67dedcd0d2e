"""Anomaly mode: trace an error or a NaN in a backward pass to its line in the forward pass.

In a `with` block the mode applies to the thread or asyncio task that entered it. What a function
sets outside of every block applies to all threads, as in PyTorch.
"""

from __future__ import annotations

import warnings

from ..names.missing import missing_in
from ..tape.settings import let_last, noted
from ._inspect.anomaly_detection import AnomalySettings, current_scope, enter, leave, settings
from .grad_mode import _Mode

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class _Anomaly(_Mode):
    """Settings for a `with` block or a decorated function."""

    settings: AnomalySettings

    def __enter__(self):
        enter(self, self.settings)

    def __exit__(self, *exception):
        leave(self)

    def clone(self):
        clone = _Anomaly()
        clone.settings = self.settings
        return clone


class detect_anomaly(_Anomaly):
    """Report errors and NaN of a backward pass together with the forward call that they belong to.

    If a node, a hook or a Function raises an error, a UserWarning shows the stack of the call that
    recorded the node, and the stacks of earlier calls if a backward pass recorded it. With
    `check_nan`, a node that returns NaN raises RuntimeError; the message names the operator, its
    line, and which of its inputs contained NaN or Inf. A sum of gradients that becomes NaN raises
    too.

    Beyond PyTorch, the message names the first operator of the forward pass that made a NaN. If the
    result of a function compiled by `jaxgrad.jit` contains a NaN, the function runs again on the
    same arguments, operator by operator, so its side effects happen twice. A NaN inside of it that
    does not reach its result is not found.

    The mode applies to this thread or asyncio task; operators then take a few times as long. It
    also works as a decorator.

    check_nan: search for NaN in gradients.
    check_inf: search for Inf as well.
    check_forward: raise RuntimeError in the forward pass already.

    Raises TypeError for an option that is not a bool.

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
    """Switch anomaly mode on or off, from this call on or for a `with` block.

    mode: whether it is on.
    check_nan, check_inf, check_forward: as for `detect_anomaly`.

    Raises TypeError for an argument that is not a bool.

    >>> with jaxgrad.autograd.set_detect_anomaly(True, check_nan=False):
    ...     jaxgrad.is_anomaly_enabled(), jaxgrad.is_anomaly_check_nan_enabled()
    (True, False)
    >>> jaxgrad.is_anomaly_enabled()
    False
    """

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf=False, check_forward=False):
        self.settings = _checked("set_detect_anomaly", mode, check_nan, check_inf, check_forward)
        self.place = current_scope()
        self.before = self.place.settings
        self.place.set(self.settings)

    def __enter__(self):
        self.undo()
        super().__enter__()

    def __call__(self, function):
        self.undo()
        return super().__call__(function)

    def undo(self):
        """Revert what the constructor has set: the mode applies to the block or function only."""
        if self.place is not None:
            self.place.set(self.before)
            self.place = None


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode, and its search for NaN, on or off.

    Outside of `detect_anomaly` it applies to all threads. Raises TypeError for an argument that is
    not a bool.

    >>> jaxgrad.set_anomaly_enabled(True)
    >>> jaxgrad.is_anomaly_enabled()
    True
    >>> jaxgrad.set_anomaly_enabled(False)
    """
    current_scope().set(_checked("set_anomaly_enabled", enabled, check_nan, False, False))


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this context.

    >>> jaxgrad.is_anomaly_enabled()
    False
    """
    return noted(_settings_of_thread).enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, if it is on, searches for NaN in this context.

    >>> jaxgrad.is_anomaly_check_nan_enabled()
    True
    """
    return noted(_settings_of_thread).check_nan


def _settings_of_thread(_) -> AnomalySettings:
    return settings()


def _set_for_thread(wanted: AnomalySettings):
    current_scope().set(wanted)


let_last(settings, _set_for_thread, watches=True)


def _checked(name, enabled, *checks) -> AnomalySettings:
    names = ("enabled", "check_nan", "check_inf", "check_forward")
    for position, (argument, value) in enumerate(zip(names, (enabled, *checks), strict=True), 1):
        if not isinstance(value, bool):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be bool, not "
                f"{type(value).__name__}"
            )
    return AnomalySettings(enabled, *checks)


__getattr__ = missing_in(__name__)
