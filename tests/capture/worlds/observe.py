"""All that can be observed of a world, by path: values, kinds, order, and which paths lead to the
same object or to the same memory.
"""

import collections
import contextlib
import contextvars
import enum
import functools
import math
import types
import weakref

import numpy as np

import jaxgrad

from . import prelude

ATOMS = str | int | float | complex | bytes | type(None) | jaxgrad.dtype | enum.Enum

# what an optimizer, a schedule or a module keeps for itself; the rest is the user's
SHOWN = {
    jaxgrad.optim.Optimizer: ("param_groups", "state", "defaults"),
    jaxgrad.optim.lr_scheduler.LRScheduler: ("last_epoch", "base_lrs", "_last_lr", "optimizer"),
}
OF_MODULES = {"_changes", "_state_dict_hooks"}

TOLERANCES = {
    "torch.float64": 2e-5,
    "torch.float32": 2e-4,
    "torch.bfloat16": 5e-2,
    "torch.float16": 1e-2,
}

# beyond these, rounding grows from call to call
LARGEST = 1e4

SETTINGS = {
    "grad mode": (jaxgrad.is_grad_enabled, jaxgrad.set_grad_enabled),
    "default dtype": (jaxgrad.get_default_dtype, jaxgrad.set_default_dtype),
    "autocast dtype": (
        lambda: jaxgrad.get_autocast_dtype("cpu"),
        lambda v: jaxgrad.set_autocast_dtype("cpu", v),
    ),
    "autocast cache": (jaxgrad.is_autocast_cache_enabled, jaxgrad.set_autocast_cache_enabled),
    "anomaly mode": (jaxgrad.is_anomaly_enabled, jaxgrad.autograd.set_detect_anomaly),
    "threads": (jaxgrad.get_num_threads, jaxgrad.set_num_threads),
    "debug mode": (jaxgrad.get_deterministic_debug_mode, jaxgrad.set_deterministic_debug_mode),
    "warn always": (jaxgrad.is_warn_always_enabled, jaxgrad.set_warn_always),
    **{
        f"{name}.{flag}": (
            functools.partial(getattr, owner, flag),
            functools.partial(setattr, owner, flag),
        )
        for name, owner, flag in (
            ("cudnn", jaxgrad.backends.cudnn, "benchmark"),
            ("cudnn", jaxgrad.backends.cudnn, "deterministic"),
            ("opt_einsum", jaxgrad.backends.opt_einsum, "strategy"),
            ("mkldnn", jaxgrad.backends.mkldnn, "enabled"),
        )
    },
}


class Observer:
    """Notes everything below some roots in `noted`, by path."""

    def __init__(self, watched=()):
        """watched: the tensors whose versions are observed."""
        self.noted, self.seen, self.memory = {}, {}, {}
        self.watched = {id(tensor) for tensor in watched}

    def tensors(self):
        """The tensors that were met."""
        return [value for _, value in self.seen.values() if isinstance(value, jaxgrad.Tensor)]

    def world(self, names):
        """All that can be observed of the globals of a world, and of the settings."""
        for name, value in names.items():
            if name not in prelude.NAMES and name != "step" and not name.startswith("__"):
                self.note(name, value)
        for name, (read, _) in SETTINGS.items():
            self.noted[f"setting {name}"] = repr(read())
        self.noted["random state"] = jaxgrad.get_rng_state().tolist()
        return self.noted

    def note(self, path, value):
        if isinstance(value, ATOMS):
            self.noted[path] = value
        elif id(value) in self.seen and not isinstance(value, tuple):
            self.noted[path] = "same as " + self.seen[id(value)][0]
        else:
            self.seen.setdefault(id(value), (path, value))
            if isinstance(value, jaxgrad.Tensor):
                self.note_tensor(path, value)
                return
            self.noted[path] = type(value).__name__
            for name, part in shown(value):
                self.note(path + name, part)

    def note_tensor(self, path, tensor):
        self.noted[path] = (
            *(type(tensor).__name__, str(tensor.dtype), tuple(tensor.shape)),
            *(f"requires_grad={tensor.requires_grad}", f"is_leaf={tensor.is_leaf}"),
        )
        self.noted[f"{path}.values"] = numbers_of(tensor), str(tensor.dtype)
        if id(tensor) in self.watched:
            self.noted[f"{path}._version"] = tensor._version
        if tensor._alias is not None:
            storage = tensor._alias.storage
            first = self.memory.setdefault(id(storage), (path, storage))[0]
            if first != path:
                self.noted[f"{path}.memory"] = f"that of {first}"
        if tensor.is_leaf or tensor.retains_grad:
            self.note(f"{path}.grad", tensor.grad)
        for name, part in vars(tensor).items():
            self.note(f"{path}.{name}", part)


def numbers_of(tensor):
    try:
        return np.array(tensor.tolist())
    except RuntimeError:
        return np.array("left behind by a trace")


def shown(value):
    """What an object holds, each with the suffix of its path."""
    for kind, names in SHOWN.items():
        if isinstance(value, kind):
            return [(f".{name}", getattr(value, name)) for name in names if hasattr(value, name)]
    if isinstance(value, dict | types.MappingProxyType):
        return [(f"[{label(key)}]#{n}", part) for n, (key, part) in enumerate(value.items())] + (
            attributes(value)
        )
    if isinstance(value, set | frozenset):
        return [(f"[{n}]", part) for n, part in enumerate(sorted(value, key=repr))]
    if isinstance(value, list | tuple | collections.deque):
        return [(f"[{n}]", part) for n, part in enumerate(value)] + attributes(value)
    if isinstance(value, np.ndarray):
        return [(".tolist()", value.tolist())]
    if isinstance(value, contextvars.ContextVar):
        return [(".get()", value.get("unset"))]
    if isinstance(value, weakref.ref):
        return [("()", value())]
    if isinstance(value, jaxgrad.Generator):
        return [(".state", tuple(value.get_state().tolist()))]
    return of_code(value) or attributes(value)


def label(key):
    return "tensor" if isinstance(key, jaxgrad.Tensor) else repr(key)


def of_code(value):
    """What functions, methods and classes hold."""
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        code = value.__code__
        return [
            (".__code__", f"{code.co_name} {code.co_firstlineno}"),
            (".__defaults__", value.__defaults__),
            (".__kwdefaults__", value.__kwdefaults__),
            *[(f" variable {name}", contents(cell)) for name, cell in cells],
            *attributes(value),
        ]
    if isinstance(value, types.MethodType):
        return [(".__self__", value.__self__), (".__func__", value.__func__)]
    if isinstance(value, functools.partial):
        return [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
    if isinstance(value, type):
        if not value.__module__.startswith("world"):
            return [("", None)]
        return [(f".{n}", v) for n, v in sorted(vars(value).items()) if not n.startswith("__")]
    if isinstance(value, types.ModuleType):
        return [(f".{n}", v) for n, v in vars(value).items() if not n.startswith("__")]
    return []


def contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return "empty"


def attributes(value):
    """The attributes of an instance, its slots included, but for what the library keeps."""
    is_module = isinstance(value, jaxgrad.nn.Module)
    if type(value).__module__.startswith("jaxgrad") and not is_module:
        return []
    try:
        attributes = dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        attributes = {}
    for kind in type(value).__mro__:
        for name in vars(kind).get("__slots__", ()):
            if not name.startswith("__") and name in vars(kind):
                with contextlib.suppress(AttributeError):
                    attributes[name] = vars(kind)[name].__get__(value)
    if is_module:
        attributes = {n: v for n, v in attributes.items() if n not in OF_MODULES}
        attributes |= {n: len(v) for n, v in attributes.items() if n.endswith("_hooks")}
    return [(f".{name}", part) for name, part in attributes.items()]


# ---- comparison


def difference(one, other):
    """The first path at which two observations differ, with both values; None for none."""
    for path in [*other, *(path for path in one if path not in other)]:
        a, b = one.get(path, "absent"), other.get(path, "absent")
        if not is_same(a, b):
            return path, a, b
    if list(one) != list(other):
        return next((a, a, b) for a, b in zip(one, other, strict=False) if a != b)
    return None


def is_same(a, b):
    if is_numbers(a) and is_numbers(b):
        tolerance = TOLERANCES.get(a[1], 0)
        return (
            a[1] == b[1]
            and a[0].shape == b[0].shape
            and "U" not in (a[0].dtype.kind, b[0].dtype.kind)
            and np.allclose(a[0], b[0], tolerance, tolerance, equal_nan=True)
        )
    if type(a) is type(b) is float:
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (a != a and b != b)
    return type(a) is type(b) and a == b


def is_numbers(value):
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray)


def is_large(observation):
    """Whether some number is so large that rounding grows."""
    numbers = [v[0] for v in observation.values() if is_numbers(v)]
    return any(v.size and v.dtype.kind != "U" and not np.all(np.abs(v) < LARGEST) for v in numbers)
