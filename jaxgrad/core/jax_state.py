"""Repairs the state of JAX after an interrupt: its setting of 64-bit types, its trace, its caches.

JAX changes the setting and the trace in `with` blocks. An interrupt may come between the body of
such a block and its end, and nothing would change them back: later results would have the wrong
setting, or belong to a trace that has ended. An interrupt may also leave an entry of a cache
unfinished, so that each later lookup raises a RecursionError.
"""

import functools
import traceback

import jax

from ..late import LateModule
from .jax_internals import is_of_broken_cache, put_back_trace

jax_core = LateModule("jax.extend.core")


def put_back_wide_types(is_wide: bool):
    """Set JAX's 64-bit types as they were."""
    if jax.config.jax_enable_x64 != is_wide:
        jax.enable_x64(is_wide).__enter__()


def repairs_caches(function):
    """`function`, called once more with empty caches of JAX if an interrupt has left one broken."""

    @functools.wraps(function)
    def call(*args):
        try:
            return function(*args)
        except RecursionError as error:
            if not is_of_broken_cache(error):
                raise
            jax.clear_caches()
        return function(*args)

    return call


def keeps_jax_state(function):
    """`function`, after whose errors JAX's state is what it was before. It is for functions that
    trace, to which a microsecond is nothing.
    """
    function = repairs_caches(function)

    @functools.wraps(function)
    def call(*args):
        is_wide, taking = jax.config.jax_enable_x64, jax_core.take_current_trace()
        try:
            with taking:
                pass
            return function(*args)
        except BaseException as error:
            if not isinstance(error, Exception):
                # an interrupt may also have come before the end of a generator's first step or the
                # begin of its last: it would change the state when it is freed
                traceback.clear_frames(error.__traceback__)
            put_back_wide_types(is_wide)
            put_back_trace(taking)
            raise

    return call
