"""Functions and methods that are replaced while a program is traced.

Traces of several threads wait for one another; calls of other threads meanwhile go to what was
replaced.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..nn.module import Module
from .proxy import Proxy, _proxies_in

_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__

# by the globals of a module and a name the globals in which `wrap` replaces it
_wrapped_fns_to_patch: dict[tuple[int, str], dict] = {}
# the methods that `wrap` replaces, by class and name
_wrapped_methods_to_patch: list[tuple[type, str]] = []

_lock = threading.RLock()
_ABSENT = object()


class _PatchedFn:
    """A name that is replaced, in a dict or a class."""

    def __init__(self, frame_dict: Any, fn_name: str, orig_fn: Any, new_fn: Any):
        self.frame_dict, self.fn_name = frame_dict, fn_name
        self.orig_fn, self.new_fn = orig_fn, new_fn

    def patch(self):
        """Set the name."""
        if isinstance(self.frame_dict, dict):
            self.frame_dict[self.fn_name] = self.new_fn
        else:
            setattr(self.frame_dict, self.fn_name, self.new_fn)

    def revert(self):
        """Set the name to what it was before."""
        if isinstance(self.frame_dict, dict) and self.orig_fn is _ABSENT:
            del self.frame_dict[self.fn_name]
        elif isinstance(self.frame_dict, dict):
            self.frame_dict[self.fn_name] = self.orig_fn
        elif self.orig_fn is _ABSENT:
            delattr(self.frame_dict, self.fn_name)
        else:
            setattr(self.frame_dict, self.fn_name, self.orig_fn)


class _Patcher:
    """A context in which names are replaced; at its end they are what they were, also after an
    exception.
    """

    def __init__(self):
        self.patches_made: list[_PatchedFn] = []
        self.visited: set[int] = set()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Callable, deduplicate: bool = True
    ):
        """Replace a name of a dict; deduplicate: not what is replaced already."""
        before = frame_dict.get(name, _ABSENT)
        self._replace(frame_dict, name, before, new_fn, deduplicate)

    def patch_method(self, cls: type, name: str, new_fn: Callable, deduplicate: bool = True):
        """Replace a method of a class."""
        before = vars(cls).get(name, _ABSENT)
        self._replace(cls, name, before, new_fn, deduplicate)

    def _replace(self, place, name, before, new, deduplicate):
        if getattr(before, "__fx_already_patched", False):
            return
        if deduplicate:
            new.__fx_already_patched = True
        self.patches_made.append(_PatchedFn(place, name, before, new))
        self.patches_made[-1].patch()

    def visit_once(self, thing: Any) -> bool:
        """Return whether this is the first call with an object."""
        is_new = id(thing) not in self.visited
        self.visited.add(id(thing))
        return is_new

    def revert_all_patches(self) -> list[_PatchedFn]:
        """Set all names to what they were, for now; return them."""
        for patch in reversed(self.patches_made):
            patch.revert()
        return self.patches_made

    def reapply_all_patches(self) -> list[_PatchedFn]:
        """Replace all names again; return them."""
        for patch in self.patches_made:
            patch.patch()
        return self.patches_made

    def __enter__(self):
        _lock.acquire()
        return self

    def __exit__(self, *exception):
        try:
            while self.patches_made:
                self.patches_made.pop().revert()
            self.visited.clear()
        finally:
            _lock.release()


CURRENT_PATCHER: _Patcher | None = None


@contextlib.contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    global CURRENT_PATCHER
    before = CURRENT_PATCHER
    with _Patcher() as patcher:
        CURRENT_PATCHER = patcher
        try:
            yield patcher
        finally:
            CURRENT_PATCHER = before


@contextlib.contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    patcher = CURRENT_PATCHER
    if patcher is None:
        yield
        return
    patcher.revert_all_patches()
    try:
        yield
    finally:
        patcher.reapply_all_patches()


def in_this_thread(replacement: Callable, original: Callable) -> Callable:
    """A function that is the replacement in this thread, and the original in others."""
    owner = threading.get_ident()

    @functools.wraps(original)
    def call(*args, **kwargs):
        is_owner = threading.get_ident() == owner
        return (replacement if is_owner else original)(*args, **kwargs)

    return call


# ---- functions that are recorded as one call


def _find_proxy(*values) -> Proxy | None:
    """The first stand-in in values, None where there is none."""
    return next(_proxies_in(values), None)


def _create_wrapped_func(orig_fn: Callable) -> Callable:
    """A function that records a call with stand-ins, and otherwise calls another one."""

    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        recorded = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        recorded.node.meta["is_wrapped"] = True
        return recorded

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable:
    """A method that records a call with stand-ins, and otherwise calls that of a class."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _patch_wrapped_functions(patcher: _Patcher):
    """Replace the functions and methods that `wrap` names."""
    for (_, name), frame_dict in _wrapped_fns_to_patch.copy().items():
        if name not in frame_dict and hasattr(builtins, name):
            orig_fn = getattr(builtins, name)
        elif name in frame_dict:
            orig_fn = frame_dict[name]
        else:
            continue
        patcher.patch(frame_dict, name, _create_wrapped_func(orig_fn))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]):
    """Replace the names of a module whose values are functions that are always recorded."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in tuple(frame_dict.items()):
        is_named = not name.startswith("_") and callable(value)
        if is_named and id(value) in function_ids:
            patcher.patch(frame_dict, name, _create_wrapped_func(value))
