"""`torch.compiler.set_stance`: whether compiled functions run compiled, and may be traced."""

from __future__ import annotations

import functools

from . import verify

STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)

current = "default"


class set_stance:
    """Set how compiled functions run; also a context manager and a decorator, which set it back.

    stance: "default"; "force_eager", to run all of them uncompiled; "eager_on_recompile", to run
    them uncompiled where they would have to be traced; "fail_on_recompile", to raise RuntimeError
    there; "eager_then_compile" and "aot_eager_then_compile", which are as "default".

    The other arguments have no effect. Raises RuntimeError for an unknown stance.

    >>> double = jaxgrad.jit(lambda x: x * 2)
    >>> with jaxgrad.compiler.set_stance("force_eager"):
    ...     _ = double(jaxgrad.ones(1))
    >>> double.count
    0
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend=None
    ):
        if stance not in STANCES:
            known = ", ".join(map(repr, STANCES))
            raise RuntimeError(f"invalid torch.compile stance {stance!r}: it is one of {known}")
        self.stance, self.before = stance, current
        _put(stance)

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        _put(self.before)

    def __call__(self, function):
        _put(self.before)

        @functools.wraps(function)
        def call(*args, **kwargs):
            with set_stance(self.stance):
                return function(*args, **kwargs)

        return call


def _put(stance: str):
    global current
    # what compiled functions look at before each call
    verify.add_reasons((stance == "force_eager") - (current == "force_eager"))
    current = stance
