"""Settings: what code sets for a whole process, thread or task, and reads elsewhere.

A program is right for the settings that its function read. Settings of the process are attributes
of `process`: reading one becomes a guard, and each call sets again those that the function set.
Settings of a thread or task are context variables, whose readers are wrapped by `noted`. Settings
that operators and the tape read while they run, such as the grad mode, belong to the key of every
program: `in_key`. Code may set the `lasting` settings of both kinds without a block.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from ..core import dtypes
from ..core.device import current_indices, is_meta
from . import mode, node_annotations, version_counter


def in_key() -> tuple:
    """The settings that operators and the tape read while a function is traced: each is a constant
    of its program.
    """
    return (
        mode.current_mode.get(),
        mode.casting.get(),
        dtypes.default,
        node_annotations.packing.get(),
        version_counter.strict.get(),
        jax.config.jax_enable_x64,
        jax.config.jax_default_device,
        jax.config.jax_default_matmul_precision,
        is_meta(None),
        current_indices(),
    )


class ProcessSettings:
    """The settings of the process. No operator reads them."""

    def __init__(self):
        self.threads: int | None = None
        self.interop_threads: int | None = None
        self.debug_mode = 0  # of deterministic algorithms
        self.warn_always = False
        self.print_options: Any = None  # those of frontend/printing/arrays.py
        # of checkpointed calls; None: what the call says
        self.checkpoint_early_stop: bool | None = None
        self.checkpoint_debug: bool | None = None
        self.hub_folder: str | None = None  # None: as the environment says
        self.start_method: str | None = None  # of processes, once one has been needed
        self.sharing_strategy = "file_descriptor"
        self.flags_are_frozen = False  # those of backends
        # conversions of a module give it other parameters, or exchange them with these
        self.overwrites_parameters = self.swaps_parameters = False


process = ProcessSettings()


def get(name: str):
    """A setting of the process."""
    scope = mode.scope.get()
    if scope is not None:
        scope.objects.guard_attribute(process, name)
    return getattr(process, name)


def put(name: str, value):
    """Change a setting of the process."""
    scope = mode.scope.get()
    if scope is not None:
        scope.objects.record_set(process, name, getattr(process, name))
    setattr(process, name, value)


@contextlib.contextmanager
def put_for_block(name: str, value):
    """Change a setting of the process until the end of the block."""
    before = get(name)
    put(name, value)
    try:
        yield
    finally:
        put(name, before)


def _flag(name: str, value, write=put) -> property:
    """An attribute of a class that is a setting of the process."""
    setattr(process, name, value)
    return property(lambda _: get(name), lambda _, new: write(name, new))


def flags(name: str, **defaults):
    """An object whose attributes are settings of the process."""
    members = {flag: _flag(f"{name}.{flag}", value) for flag, value in defaults.items()}
    return type("Flags", (), {"__doc__": f"The settings of {name}."} | members)()


def make_flags(module_name: str, *names: str, write=put):
    """Make variables of a module settings of the process. write: how an assignment sets one."""
    module = sys.modules[module_name]
    flags = {name: _flag(f"{module_name}.{name}", getattr(module, name), write) for name in names}
    module.__class__ = type("Module", (types.ModuleType,), flags)


def put_unless_frozen(name: str, value):
    """Change a setting of a library. Raises RuntimeError after `backends.disable_global_flags`."""
    refuse_if_frozen(name.rpartition(".")[0])
    put(name, value)


def refuse_if_frozen(module_name: str):
    """Raise RuntimeError if the settings of the libraries can be set for blocks alone."""
    if get("flags_are_frozen"):
        place = module_name.replace("jaxgrad", "torch", 1)
        raise RuntimeError(
            f"not allowed to set {place} flags after disable_global_flags; please use flags() "
            "context manager instead"
        )


@contextlib.contextmanager
def flags_for_block(module_name: str, values: dict):
    """Set settings of a module that `make_flags` has made, frozen or not, in the block."""
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(put_for_block(f"{module_name}.{name}", value))
        yield


def noted(read: Callable[[Any], Any]):
    """The result of `read`, a setting of the current thread or task. It takes one argument, which
    it ignores.
    """
    scope = mode.scope.get()
    if scope is not None:
        scope.objects.guard(process, read)
    return read(process)


class Lasting(NamedTuple):
    """A setting of the context that code may set without a block: the functions that read and set
    it, and its value when its module was imported, which may happen during a trace. `watches`:
    whether the setting observes runs, also those that look for the origin of an anomaly.
    """

    get: Callable[[], Any]
    put: Callable[[Any], Any]
    initial: Any
    watches: bool


lasting: list[Lasting] = []


def let_last(get, put, watches=False):
    """Let each call of a compiled function leave a setting as the function does."""
    lasting.append(Lasting(get, put, get(), watches))


let_last(mode.current_mode.get, mode.current_mode.set)
let_last(dtypes.get_default_dtype, dtypes.set_default_dtype)
let_last(version_counter.strict.get, version_counter.strict.set)


def lasting_values() -> list:
    """The values of the lasting settings, for `put_back`."""
    return [setting.get() for setting in lasting]


def watched(values) -> list:
    """Values of the lasting settings, with the present values of those of observers."""
    pairs = zip(lasting, values, strict=False)
    return [setting.get() if setting.watches else value for setting, value in pairs]


@contextlib.contextmanager
def put_back(values=None):
    """Put the lasting settings back at the end of the block. Yields a list that then has the
    settings that the block has changed, with their values. values: the values for the block.
    """
    before, changed = lasting_values(), []
    try:
        # those whose module has been imported since had their initial values
        later = [] if values is None else [setting.initial for setting in lasting[len(values) :]]
        for setting, value in zip(lasting, [*(values or ()), *later], strict=False):
            if setting.get() != value:
                setting.put(value)
        yield changed
    finally:
        known = [*before, *[setting.initial for setting in lasting[len(before) :]]]
        for setting, value in zip(lasting, known, strict=True):
            if (new := setting.get()) != value:
                changed.append((setting, new))
                setting.put(value)
