"""The types that the source leaves open, and what no signature expresses."""

import types

# parameters by name
PARAMETERS = {
    **dict.fromkeys(("input", "target", "x1", "x2", "tensor", "key", "value"), "Tensor"),
    **dict.fromkeys(("weight", "bias", "running_mean", "running_var"), "Tensor"),
    **dict.fromkeys(("func", "function"), "Callable[..., Any]"),
    **dict.fromkeys(("size", "kernel_size", "output_size"), "int | Sequence[int]"),
    **dict.fromkeys(("stride", "dilation", "output_padding"), "int | Sequence[int]"),
    "padding": "int | Sequence[int] | str",
    "dtype": "dtype",
    "device": "device | str | int | None",
    "generator": "Generator | None",
    "fill_value": "Number",
}

# results by path
TRANSFORMS = (
    *("grad", "value_and_grad", "grad_and_value", "hessian", "jacfwd", "jacrev"),
    "functionalize",
)
METHODS_THAT_GIVE_TENSORS = (
    *("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int"),
    *("long", "short", "where", "__getitem__", "__rfloordiv__", "__rmatmul__", "__rmod__"),
    *("__rpow__", "__rtruediv__"),
)
RETURNS = {
    **{f"jaxgrad.func.{name}": "Callable[..., Any]" for name in TRANSFORMS},
    **{f"jaxgrad.Tensor.{name}": "Tensor" for name in METHODS_THAT_GIVE_TENSORS},
    "jaxgrad.to_jax": "Callable[..., Any]",
    **dict.fromkeys(("jaxgrad.dtype.to_complex", "jaxgrad.dtype.to_real"), "dtype"),
    "jaxgrad.Tensor.__iter__": "Iterator[Tensor]",
    "jaxgrad.Tensor.backward": "None",
    "jaxgrad.autograd.grad": "tuple[Any, ...]",
}

# Python's own methods, which are declared besides the public ones, and their results
SPECIAL = {
    **{"__init__": "None", "__call__": None, "__enter__": None, "__exit__": "None"},
    **{"__iter__": None, "__next__": None, "__len__": "int", "__contains__": "bool"},
    **{"__getitem__": None, "__setitem__": "None", "__delitem__": "None", "__getattr__": "Any"},
    **{"__bool__": "bool", "__int__": "int", "__float__": "float", "__complex__": "complex"},
    **{"__index__": "int", "__array__": "NDArray[Any]", "__jax_array__": "Any"},
    **{"__dlpack__": "Any", "__dlpack_device__": "Any", "__reversed__": None},
    **{"__add__": None, "__iadd__": None, "__or__": None, "__ior__": None, "__ror__": None},
    **{"__rtruediv__": None, "__rpow__": None, "__rmatmul__": None, "__rfloordiv__": None},
    "__rmod__": None,
}

# attributes and properties by class
ATTRIBUTES = {
    "BackwardCFunction": {"saved_tensors": "tuple[Tensor, ...]"},
    "Tensor": {
        "grad": "Tensor | Any",  # None before a backward pass, which programs know
        **dict.fromkeys(("T", "H", "mT", "mH", "real", "imag", "data"), "Tensor"),
        **{"shape": "Size", "dtype": "dtype", "device": "device"},
        **dict.fromkeys(("itemsize", "nbytes"), "int"),
    },
    "device": {"type": "str", "index": "int | None"},
    "dtype": {
        **dict.fromkeys(("is_complex", "is_floating_point", "is_signed"), "bool"),
        **{"itemsize": "int", "category": "int", "name": "str"},
    },
    "finfo": dict.fromkeys(("eps", "max", "min", "resolution", "tiny"), "float"),
    "iinfo": dict.fromkeys(("bits", "max", "min"), "int"),
}

# what an instance has that its class does not define
ADDED = {
    "FunctionCtx": [
        "@property",
        "def saved_tensors(self) -> tuple[Tensor, ...]: ...",
        "needs_input_grad: tuple[bool, ...]",
        "def __getattr__(self, name: str) -> Any: ...",
        "def __setattr__(self, name: str, value: Any) -> None: ...",
    ],
}

BASES = {
    types.ModuleType: "ModuleType",
    tuple: "tuple[Any, ...]",
    list: "list[Any]",
    dict: "dict[Any, Any]",
}

# what no signature expresses
OPTIONS_OF_JIT = (
    'donate: int | str | Sequence[int | str] = "auto", '
    "static_argnames: str | Sequence[str] = (), verify: int | None = None"
)
DECLARATIONS = {
    # JAX's class, whose properties have no Python code
    **{
        f"jaxgrad.{name}": [f"class {name}(RuntimeError): ..."]
        for name in ("AcceleratorError", "OutOfMemoryError")
    },
    "jaxgrad.jit": [
        f"@overload\ndef jit(function: F, *, {OPTIONS_OF_JIT}) -> F: ...",
        f"@overload\ndef jit(function: None = None, *, {OPTIONS_OF_JIT}) -> Callable[[F], F]: ...",
    ],
}
