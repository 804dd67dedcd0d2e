"""What users call to define operators and to register their kernels and rules."""

from __future__ import annotations

import contextlib
import functools

from .. import ops
from . import _call, _operator
from ._operator import DEVICES, OpOverload, OpOverloadPacket, find
from ._schema import infer_schema


class CustomOpDef:
    """An operator that `custom_op` defined; call it as a function.

    >>> from jaxgrad import Tensor
    >>> @jaxgrad.library.custom_op("docs::tripled", mutates_args=())
    ... def tripled(x: Tensor) -> Tensor:
    ...     return x * 3
    >>> tripled
    <CustomOpDef(docs::tripled)>
    >>> tripled(jaxgrad.ones(2))
    tensor([3., 3.])
    """

    def __init__(self, namespace: str, name: str, schema: str, fn):
        self._namespace, self._name, self._init_fn = namespace, name, fn
        self._opoverload = _operator.define(namespace, name + schema, replaces=True)
        self._opoverload._is_custom_op = True
        functools.update_wrapper(self, fn, updated=())

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, /, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types, fn=None, /):
        """Register the kernel for the tensors of a device; see `register_kernel`."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn, /):
        """Register the function that says what the results look like; see `register_fake`."""
        return register_fake(self, fn)

    def register_autograd(self, backward, /, *, setup_context=None) -> None:
        """Register the derivative; see `register_autograd`."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func=None):
        """Register the rule for batches; see `register_vmap`."""
        return register_vmap(self, func)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True):
        """Inside of the block, use or leave out the kernel that is registered for a device.

        device_type: "cpu", "cuda", ...; enabled: whether calls use it.
        """
        kernels = self._opoverload._kernels
        before = dict(kernels)
        if not enabled:
            kernels.pop(device_type, None)
        try:
            yield
        finally:
            kernels.clear()
            kernels.update(before)


def custom_op(name: str, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Define an operator from a function; a decorator if `fn` is left out.

    name: "namespace::name"; a second definition takes the place of the first.
    fn: the kernel, annotated with types as `infer_schema` wants them. Results must not share memory
        with arguments.
    mutates_args: the names of the arguments that `fn` writes to, or "unknown".
    device_types: the devices that `fn` is for, as "cpu"; None for all.
    schema: the schema, in place of the one from the annotations.
    tags: accepted for PyTorch's code, without effect.

    Returns a `CustomOpDef`. Raises ValueError for a name or an annotation that cannot be used.

    >>> from jaxgrad import Tensor
    >>> @jaxgrad.library.custom_op("docs::numpy_cube", mutates_args=())
    ... def numpy_cube(x: Tensor) -> Tensor:
    ...     return jaxgrad.from_numpy(x.numpy() ** 3)
    >>> @numpy_cube.register_fake
    ... def _(x):
    ...     return jaxgrad.empty_like(x)
    >>> jaxgrad.jit(numpy_cube)(jaxgrad.tensor([1.0, 2.0]))
    tensor([1., 8.])
    """

    def decorate(function):
        namespace, opname = _operator.split(name)
        if "." in opname:
            raise ValueError(f"{name!r}: custom_op defines no overloads; use Library.define")
        text = schema or infer_schema(function, mutates_args=mutates_args)
        definition = CustomOpDef(namespace, opname, text, function)
        _refuse_keyword_tensors(definition._opoverload)
        definition._opoverload.register_kernel(device_types, function)
        return definition

    return decorate if fn is None else decorate(fn)


def _refuse_keyword_tensors(operator):
    if any(a.keyword_only and a.type.tensor for a in operator._schema.arguments):
        _operator.remove(operator)
        raise NotImplementedError(
            "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: "
            f"{operator._schema}"
        )


def operator_of(op, function: str) -> OpOverload:
    """The operator that a name, a `CustomOpDef`, or an overload means."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, str):
        return find(op)
    if not isinstance(op, OpOverload):
        raise ValueError(
            f"{function}({op}): got unexpected type for op: {type(op).__name__}; pass "
            "'namespace::name', a CustomOpDef or an overload such as torch.ops.mylib.sin.default"
        )
    return op


def _registered(register, function):
    """Call `register` with a function, or return a decorator that does."""

    def decorate(function):
        register(function)
        return function

    return decorate if function is None else decorate(function)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Register the kernel of an operator for devices; a decorator if `func` is left out.

    op: a name, a `CustomOpDef` or an overload; device_types: "cpu", "cuda", ..., several of them,
    or None for all; func: takes the arguments of the operator; lib: without effect.

    Raises RuntimeError for an unknown operator or device.

    >>> from jaxgrad import Tensor
    >>> @jaxgrad.library.custom_op("docs::twice", mutates_args=(), device_types="cuda")
    ... def twice(x: Tensor) -> Tensor:
    ...     return x + x
    >>> @jaxgrad.library.register_kernel(twice, "cpu")
    ... def _(x):
    ...     return 2 * x
    >>> twice(jaxgrad.ones(2))
    tensor([2., 2.])
    """
    operator = operator_of(op, "register_kernel")
    return _registered(functools.partial(operator.register_kernel, device_types), func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """Register the function that says what an operator returns; a decorator if `func` is left out.

    op: a name, a `CustomOpDef` or an overload.
    func: takes the arguments of the operator, without numbers in the tensors, and returns tensors
        of the shapes and dtypes of its results, such as `empty_like(x)`.
    lib, allow_override: without effect.

    Raises RuntimeError for an unknown operator.

    >>> jaxgrad.library.define("docs::numpy_sum", "(Tensor x) -> Tensor")
    >>> @jaxgrad.library.impl("docs::numpy_sum", "cpu")
    ... def _(x):
    ...     return jaxgrad.tensor(x.numpy().sum())
    >>> @jaxgrad.library.register_fake("docs::numpy_sum")
    ... def _(x):
    ...     return x.new_empty(())
    >>> jaxgrad.jit(jaxgrad.ops.docs.numpy_sum)(jaxgrad.ones(3))
    tensor(3.)
    """
    if isinstance(op, str) and op.partition("::")[0] in ops.refused:
        return _registered(lambda function: None, func)  # of an operator that was not loaded
    return _registered(operator_of(op, "register_fake").register_fake, func)


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """Register the derivative of an operator.

    op: a name, a `CustomOpDef` or an overload.
    backward: takes `ctx` and the gradient of each result, a list for a list of tensors; returns the
        gradient of each positional argument, None where there is none, a list for a list. It can be
        differentiated again if it calls operators that can.
    setup_context: takes `ctx`, `inputs` and `output`, and `keyword_only_inputs` where there are
        some; saves what `backward` needs, by `ctx.save_for_backward` or as an attribute.
    lib: without effect.

    Raises RuntimeError for an unknown operator and for one that writes to an argument.

    >>> from jaxgrad import Tensor
    >>> @jaxgrad.library.custom_op("docs::square", mutates_args=())
    ... def square(x: Tensor) -> Tensor:
    ...     return x * x
    >>> def setup_context(ctx, inputs, output):
    ...     ctx.save_for_backward(inputs[0])
    >>> def backward(ctx, grad):
    ...     return 2 * ctx.saved_tensors[0] * grad
    >>> jaxgrad.library.register_autograd(square, backward, setup_context=setup_context)
    >>> x = jaxgrad.tensor(3.0, requires_grad=True)
    >>> square(x).backward()
    >>> x.grad
    tensor(6.)
    """
    operator_of(op, "register_autograd").register_autograd(backward, setup_context)


def register_vmap(op, func=None, /, *, lib=None):
    """Register the rule of an operator for batches; a decorator if `func` is left out.

    op: a name, a `CustomOpDef` or an overload.
    func: takes `info`, with `batch_size`, `in_dims`, the batch dimension of each positional
        argument or None, and the arguments; returns the results and their batch dimensions.
    lib: without effect.

    Without a rule the kernel is traced and mapped; one that reads numbers runs for each example.
    Raises RuntimeError for an unknown operator and for one that writes to an argument.

    >>> from jaxgrad import Tensor
    >>> @jaxgrad.library.custom_op("docs::doubled", mutates_args=())
    ... def doubled(x: Tensor) -> Tensor:
    ...     return x * 2
    >>> @jaxgrad.library.register_vmap(doubled)
    ... def _(info, in_dims, x):
    ...     return doubled(x), in_dims[0]
    >>> jaxgrad.func.vmap(doubled)(jaxgrad.ones(2))
    tensor([2., 2.])
    """
    return _registered(operator_of(op, "register_vmap").register_vmap, func)


def define(qualname, schema, *, lib=None, tags=()):
    """Define an operator from a schema.

    qualname: "namespace::name"; schema: as "(Tensor x, int n=1) -> Tensor"; lib: keeps it until the
    library is gone; tags: without effect.

    Raises RuntimeError for a schema that cannot be read and a name that is defined already,
    ValueError for a name without a namespace and a schema without parentheses.

    >>> jaxgrad.library.define("docs::raised", "(Tensor x, int n=2) -> Tensor")
    >>> @jaxgrad.library.impl("docs::raised", "default")
    ... def raised(x, n=2):
    ...     return x**n
    >>> jaxgrad.ops.docs.raised(jaxgrad.tensor([3.0]))
    tensor([9.])
    """
    namespace, name = _operator.split(qualname)
    if not schema.startswith("("):
        raise ValueError(
            "define(qualname, schema, ...): expected schema to look like e.g. "
            f'"(Tensor x) -> Tensor" but got "{schema}"'
        )
    operator = _operator.define(namespace, name + schema)
    if lib is not None:
        lib._defined.append(operator)


def impl(qualname, types, func=None, *, lib=None):
    """Register the kernel of an operator for devices; a decorator if `func` is left out.

    qualname: "namespace::name"; types: "cpu", "cuda", ..., several of them, or "default" for all;
    func: takes the arguments of the operator; lib: without effect.

    Raises RuntimeError for an unknown operator or device.

    >>> jaxgrad.library.define("docs::halved", "(Tensor x) -> Tensor")
    >>> @jaxgrad.library.impl("docs::halved", "cpu")
    ... def halved(x):
    ...     return x / 2
    >>> jaxgrad.ops.docs.halved(jaxgrad.ones(2, device="cpu"))
    tensor([0.5000, 0.5000])
    """
    names = (types,) if isinstance(types, str) else types
    devices = tuple([None if name == "default" else name for name in names])
    return _registered(functools.partial(find(qualname).register_kernel, devices), func)


_WHOLE = ("", "CompositeImplicitAutograd", "Autograd", *(f"Autograd{d.upper()}" for d in DEVICES))


# the namespaces that a library of kind "DEF" owns
_OWNED = set()


class Library:
    """Defines operators of a namespace, or registers kernels for them.

    ns: the namespace; kind: "DEF" for the one library that owns it, "FRAGMENT" for more of its
    operators, "IMPL" for kernels alone; dispatch_key: the one that `impl` takes if none is given.

    Raises ValueError for another kind and for a namespace of PyTorch's own, RuntimeError for a
    second owner.

    >>> lib = jaxgrad.library.Library("docs_lib", "DEF")
    >>> lib.define("plus(Tensor x, int n=1) -> Tensor")
    'plus'
    >>> lib.impl("plus", lambda x, n: x + n, "CPU")
    >>> jaxgrad.ops.docs_lib.plus(jaxgrad.ones(2), 3)
    tensor([4., 4.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}; it is DEF, FRAGMENT or IMPL")
        _operator.check_namespace(ns)
        if kind == "DEF" and ns in _OWNED:
            raise RuntimeError(
                f"Only a single Library can register the namespace {ns}: use FRAGMENT for more"
            )
        if kind == "DEF":
            _OWNED.add(ns)
        self.ns, self.kind, self.dispatch_key, self._defined = ns, kind, dispatch_key, []

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags=()) -> str:
        """Define an operator, as "name(Tensor x) -> Tensor", and return its name.

        alias_analysis, tags: without effect. Raises RuntimeError for a schema that cannot be read
        and a name that is defined already.
        """
        if self.kind == "IMPL":
            raise RuntimeError(f"Library({self.ns!r}, 'IMPL') cannot define: use FRAGMENT")
        self._defined.append(_operator.define(self.ns, schema))
        return schema.partition("(")[0].strip()

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """Register a function for an operator of the namespace.

        op_name: the name, or an overload.
        fn: takes the arguments of the operator.
        dispatch_key: a device in capitals or "CompositeExplicitAutograd" for a kernel; "Meta" for
            the fake; "Autograd", "CompositeImplicitAutograd" or "" for a function that is recorded
            as its operators are, which then are the derivative too; "AutocastCPU" and the like for
            a function that is called in place of the operator while autocast is on.

        Raises ValueError for another key, RuntimeError for an unknown operator.
        """
        key = dispatch_key or self.dispatch_key
        if with_keyset:
            raise ValueError("Library.impl: with_keyset is not supported: there are no keysets")
        is_overload = isinstance(op_name, OpOverload | OpOverloadPacket)
        name = str(op_name).partition(".")[2] if is_overload else op_name.rpartition("::")[2]
        operator = find(f"{self.ns}::{name.removesuffix('.default')}")
        if key == "Meta":
            operator.register_fake(fn)
        elif key in _WHOLE:
            operator.register_whole(fn)
        elif key.startswith("Autocast"):
            operator.register_autocast(key.removeprefix("Autocast").lower(), fn)
        elif key == "CompositeExplicitAutograd" or key.lower() in DEVICES:
            operator.register_kernel(None if key.startswith("Comp") else key.lower(), fn)
        else:
            raise ValueError(
                f"Library.impl: dispatch key {key!r} is not supported; use CPU, CUDA, Meta, "
                "Autograd, AutocastCPU, CompositeExplicitAutograd or CompositeImplicitAutograd"
            )

    def _destroy(self):
        """Forget the operators that this library defined."""
        for operator in self._defined:
            _operator.remove(operator)
        self._defined.clear()
        if self.kind == "DEF":
            _OWNED.discard(self.ns)


class FakeImplCtx:
    """What `get_ctx` returns inside of a fake."""

    def new_dynamic_size(self, *, min=0, max=None):
        """Raise NotImplementedError: XLA compiles no size that depends on numbers."""
        raise NotImplementedError(
            "get_ctx().new_dynamic_size(): a size that depends on numbers is not supported, since "
            "XLA compiles for fixed shapes: pad the result to its largest size"
        )


def get_ctx() -> FakeImplCtx:
    """Return the context of the fake that is running.

    Raises RuntimeError outside of a function given to `register_fake`.

    >>> try:
    ...     jaxgrad.library.get_ctx()
    ... except RuntimeError as error:
    ...     print(error)
    get_ctx() was called outside of a function given to register_fake: call it there
    """
    if not _call.fake_runs.get():
        raise RuntimeError(
            "get_ctx() was called outside of a function given to register_fake: call it there"
        )
    return FakeImplCtx()


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A library whose operators are removed at the end of the block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()
