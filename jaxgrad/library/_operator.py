"""Operators that users define: their kernels and rules, and `ops.<namespace>.<name>`."""

from __future__ import annotations

from .. import ops
from ..core.device import default_device, device_of
from ..core.tracebacks import shows_users_frames
from ..ops.aten import Overload, Packet
from ..tape import mode
from . import _call
from ._schema import bind, parse

DEVICES = ("cpu", "cuda", "xpu", "mps", "tpu")
RESERVED = ("aten", "prim", "prims")

_namespaces = {}


class OpOverload(Overload):
    """An operator that a user defined, as `torch.ops.NAMESPACE.NAME.default`.

    A call binds its arguments by the schema, runs the kernel for their device, and records it.
    """

    def __init__(self, namespace: str, schema: str):
        self._schema = parse(namespace, schema)
        self.namespace, self._opname = namespace, self._schema.name
        self._overloadname = self._schema.overload or "default"
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self._kernels, self._whole, self._autocast = {}, None, {}
        self._fake = self._backward = self._setup_context = self._vmap = None
        self._is_custom_op = False
        self._function = _call.function_of(self)

    def name(self) -> str:
        """The qualified name, `namespace::name`, with the overload if it is not the default one."""
        overload = f".{self._schema.overload}" if self._schema.overload else ""
        return f"{self.namespace}::{self._opname}{overload}"

    def __repr__(self):
        return (
            f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"
        )

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    @shows_users_frames
    def __call__(self, /, *args, **kwargs):
        bound = bind(self._schema, args, kwargs)
        whole = self._of_autocast(bound) or self._whole
        if whole is not None:
            pairs = list(zip(self._schema.arguments, bound, strict=True))
            positional = [value for a, value in pairs if not a.keyword_only]
            return whole(*positional, **{a.name: v for a, v in pairs if a.keyword_only})
        return _call.call(self, bound)

    def _of_autocast(self, bound):
        """The function that the autocast which is on calls in place of the operator, or None."""
        casting = mode.casting.get()
        if casting is None or not self._autocast:
            return None
        kinds = {device_of(tensor._value).type for tensor in _call.tensors_in(bound)}
        on = (kind for kind, _ in casting if kind in kinds)
        return next(filter(None, map(self._autocast.get, on)), None)

    def kernel(self, tensors) -> _call.Kernel:
        """The kernel for tensors. Raises NotImplementedError if their device has none."""
        kind = device_of(tensors[0]._array).type if tensors else default_device().type
        kernel = self._kernels.get(kind, self._kernels.get(None))
        if kernel is None:
            have = ", ".join(map(str, self._kernels)) or "none"
            raise NotImplementedError(
                f"Could not run '{self.name()}' with arguments from the '{kind.upper()}' backend: "
                f"it has kernels for {have}; add one by register_kernel"
            )
        return kernel

    def register_kernel(self, devices, function):
        """Set the kernel for devices; None means all that have none of their own."""
        for device in (devices,) if devices is None or isinstance(devices, str) else devices:
            if device not in (None, *DEVICES):
                raise RuntimeError(
                    f"{self.name()}: Expected one of {', '.join(DEVICES)} device type, but got "
                    f"{device!r}"
                )
            self._kernels[device] = _call.Kernel(function)

    def register_whole(self, function):
        """Set a function that computes the operator and its derivative, of recorded operators."""
        self._whole = function

    def register_autocast(self, device: str, function):
        """Set a function that is called in its place while autocast for a device is on."""
        self._autocast[device] = function

    def register_fake(self, function):
        self._fake = function

    def register_autograd(self, backward, setup_context):
        schema = self._schema
        if schema.written or any(spec.type.alias for spec in schema.returns):
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self.name()} with "
                f"schema {schema}. Please create a functional operator and register an autograd "
                "formula for that."
            )
        if any(a.keyword_only and a.type.tensor for a in schema.arguments):
            raise NotImplementedError(
                "register_autograd with kwarg-only Tensor args. Please make your tensors not "
                f"kwarg-only. Got: {schema}"
            )
        self._backward, self._setup_context = backward, setup_context
        self._function = _call.function_of(self)

    def register_vmap(self, function):
        if self._schema.written:
            raise RuntimeError(
                f"Cannot register a vmap rule for {self._schema}, which writes to an argument: its "
                "kernel is traced and mapped"
            )
        self._vmap = function
        self._function = _call.function_of(self)


class OpOverloadPacket(Packet):
    """The overloads of one name, as `torch.ops.NAMESPACE.NAME`; a call takes the default one."""

    def __init__(self, namespace: str, name: str):
        self.__name__, self._qualified_op_name = name, f"{namespace}::{name}"
        self._namespace, self._overloads = namespace, {}

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._overloads)

    def __getattr__(self, name):
        if name.startswith("__") or name not in self._overloads:
            raise AttributeError(
                f"The underlying op of '{self._namespace}.{self.__name__}' has no overload name "
                f"'{name}'"
            )
        return self._overloads[name]

    def __call__(self, /, *args, **kwargs):
        overload = self._overloads.get("default") or next(iter(self._overloads.values()))
        return overload(*args, **kwargs)

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __str__(self):
        return f"{self._namespace}.{self.__name__}"


class OpNamespace:
    """The operators of one namespace, as `torch.ops.NAMESPACE`."""

    def __init__(self, name: str):
        self.name, self._packets = name, {}

    def __getattr__(self, name):
        if name.startswith("__") or name not in vars(self).get("_packets", ()):
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return self._packets[name]

    def __dir__(self):
        return sorted(self._packets)


def split(qualname: str) -> tuple[str, str]:
    """The namespace and the name. Raises ValueError if there are not two."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(part.replace(".", "_").isidentifier() for part in parts):
        raise ValueError(
            f"Expected {qualname!r} to be of the form 'namespace::name', such as 'mylib::sin'"
        )
    return parts[0], parts[1]


def check_namespace(namespace: str):
    """Raise ValueError for a namespace that users cannot define operators in."""
    is_taken = namespace not in _namespaces and ops.has(namespace)
    if namespace in RESERVED or is_taken or not namespace.isidentifier():
        raise ValueError(
            f"{namespace!r} is a reserved namespace, or the name of an operator or table: choose "
            "another name for your library"
        )


def define(namespace: str, schema: str, *, replaces: bool = False) -> OpOverload:
    """Make an operator of a schema without a namespace, found as `ops.<namespace>.<name>`."""
    check_namespace(namespace)
    operator = OpOverload(namespace, schema)
    known = _namespaces[namespace]._packets if namespace in _namespaces else {}
    packet = known.get(operator._opname) or OpOverloadPacket(namespace, operator._opname)
    if operator._overloadname in packet._overloads and not replaces:
        raise RuntimeError(
            f"Tried to register an operator ({operator._schema}) with the same name and overload "
            "name multiple times"
        )
    if namespace not in _namespaces:
        _namespaces[namespace] = OpNamespace(namespace)
        ops.add_namespace(namespace, _namespaces[namespace])
    packet._overloads[operator._overloadname] = operator
    _namespaces[namespace]._packets[operator._opname] = packet
    return operator


def remove(operator: OpOverload):
    """Forget an operator."""
    packets = _namespaces[operator.namespace]._packets
    packet = packets[operator._opname]
    if packet._overloads.get(operator._overloadname) is operator:
        del packet._overloads[operator._overloadname]
    if not packet._overloads:
        del packets[operator._opname]


def find(qualname: str) -> OpOverload:
    """The operator `namespace::name` or `namespace::name.overload`.

    Raises RuntimeError if it is not defined.
    """
    namespace, name = split(qualname)
    name, _, overload = name.partition(".")
    packets = _namespaces[namespace]._packets if namespace in _namespaces else {}
    operator = packets[name]._overloads.get(overload or "default") if name in packets else None
    if operator is None:
        raise RuntimeError(
            f"operator {qualname} does not exist: define it by custom_op or Library.define"
        )
    return operator
