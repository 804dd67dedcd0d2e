"""PyTorch's table of operators for jaxgrad: its functions and its sample inputs, converted.

No entry is kept in this module: a trace would walk through all of PyTorch's tests.
"""

import functools
import types

import numpy
import torch
import torch.testing._internal.common_methods_invocations as table

import jaxgrad

SPACES = {
    "": torch,
    "nn.functional": torch.nn.functional,
    "linalg": torch.linalg,
    "fft": torch.fft,
    "special": torch.special,
    "masked": torch.masked,
    "signal.windows": torch.signal.windows,
    "sparse": torch.sparse,
    "Tensor": torch.Tensor,
    "nn.init": torch.nn.init,
}
KINDS = torch.dtype, torch.layout, torch.memory_format
RECIPES = torch.nn.functional.ScalingType, torch.nn.functional.SwizzleType


def _public_first(space):
    return sorted(dir(space), key=lambda name: name.startswith("_"))


def _names():
    """The path of each function of PyTorch, by its identity."""
    paths = {}
    for path, space in SPACES.items():
        for name in _public_first(space):
            value = getattr(space, name, None)
            if callable(value) and not isinstance(value, type):
                paths.setdefault(id(value), f"{path}.{name}".strip("."))
    return paths


NAMES = _names()


def operators():
    """The entries, without those for GPUs."""
    return [entry for entry in table.op_db if "jiterator" not in entry.name]


def at(path):
    return functools.reduce(getattr, path.split("."), jaxgrad)


def function_of(function):
    """The function of jaxgrad for one of PyTorch, or one of the table's with jaxgrad in its place.

    Raises AttributeError for a name that jaxgrad lacks.
    """
    if isinstance(function, functools.partial):
        arguments = converted(function.keywords)
        return functools.partial(function_of(function.func), *function.args, **arguments)
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return at(f"ops.{function}")
    if id(function) in NAMES:
        return at(NAMES[id(function)])
    if isinstance(function, types.FunctionType):
        if function.__module__.startswith("torch.testing"):
            return _rebuilt(function)
        return at(f"{function.__module__.removeprefix('torch.')}.{function.__qualname__}")
    owner = type(function).__name__
    is_method = owner in ("method_descriptor", "wrapper_descriptor")
    return at(f"Tensor.{function.__name__}" if is_method else function.__name__)


def _seeded(function, *args, **kwargs):
    jaxgrad.manual_seed(42)
    return function(*args, **kwargs)


@functools.cache
def _rebuilt(function):
    if function.__name__ == "wrapper_set_seed":
        return _seeded
    scope, code = dict(function.__globals__), function.__code__
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    for name in {*code.co_names, *(name for part in inner for name in part.co_names)}:
        if name in scope:
            scope[name] = converted(scope[name])
    cells = tuple(
        types.CellType(converted(cell.cell_contents)) for cell in function.__closure__ or ()
    )
    defaults = converted(function.__defaults__)
    rebuilt = types.FunctionType(code, scope, function.__name__, defaults, cells or None)
    rebuilt.__kwdefaults__ = converted(function.__kwdefaults__)
    return rebuilt


def converted(value):
    """A value with jaxgrad's functions, modules, constants and tensors in place of PyTorch's."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, KINDS):
        return getattr(jaxgrad, str(value).removeprefix("torch."))
    if isinstance(value, types.ModuleType):
        return _module(value)
    if isinstance(value, RECIPES):
        return value.value
    if isinstance(value, torch.nn.PairwiseDistance):
        return jaxgrad.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
    if isinstance(value, dict):
        return {name: converted(item) for name, item in value.items()}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(converted, value))
    if value is torch.Tensor:
        return jaxgrad.Tensor
    if callable(value) and not isinstance(value, type):
        return _function_or_itself(value)
    return value


def _module(module):
    name = module.__name__
    is_library = name.split(".")[0] == "torch" and not name.startswith("torch.testing")
    if not is_library:
        return module
    return at(name.removeprefix("torch").strip(".")) if "." in name else jaxgrad


def _function_or_itself(value):
    try:
        return function_of(value)
    except AttributeError:
        return value


def pair(function):
    """A function, or None, by the library that it is for."""
    return {torch: function, jaxgrad: function and _function_or_itself(function)}


def tensor(value):
    """A tensor of jaxgrad with the numbers, dtype and strides of a strided one of PyTorch."""
    if value.layout != torch.strided or value.device.type != "cpu":
        raise NotImplementedError("the tensor is not dense")
    dtype = getattr(jaxgrad, str(value.dtype).removeprefix("torch."))
    copy = jaxgrad.from_numpy(numbers(value).copy()).to(dtype)
    is_dense = torch.empty_like(value).stride() == value.stride()
    if not value.is_contiguous() and is_dense:
        copy = jaxgrad.empty_strided(value.shape, value.stride(), dtype=dtype).copy_(copy)
    return copy.requires_grad_(value.requires_grad)


def cloned(value):
    """A value with new leaves for its tensors: PyTorch gives no gradient to some that are views."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {name: cloned(item) for name, item in value.items()}
    return type(value)(map(cloned, value)) if type(value) in (list, tuple) else value


def widened(value):
    """A value with new leaves in double precision for its floating-point and complex tensors."""
    if isinstance(value, torch.Tensor):
        is_float = value.is_floating_point() or value.is_complex()
        dtype = torch.complex128 if value.is_complex() else torch.float64
        copy = value.detach().to(dtype if is_float else value.dtype, copy=True)
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {name: widened(item) for name, item in value.items()}
    return type(value)(map(widened, value)) if type(value) in (list, tuple) else value


def numbers(value) -> numpy.ndarray:
    """The numbers of a tensor of PyTorch or of jaxgrad; those of half precision in single."""
    value = value.detach()
    if value.layout not in (torch.strided, jaxgrad.strided):
        value = value.to_dense()
    value = value.resolve_conj().resolve_neg()
    if str(value.dtype) in ("torch.bfloat16", "torch.float16") or "float8" in str(value.dtype):
        value = value.float()
    if str(value.dtype) == "torch.complex32":
        value = value.cfloat() if isinstance(value, torch.Tensor) else value.to(jaxgrad.complex64)
    if getattr(value, "_is_zerotensor", bool)():
        value = value.clone()
    return numpy.asarray(value.numpy())


def tensors(value, kind):
    """The tensors in lists, tuples and dicts."""
    if isinstance(value, kind):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    is_list = isinstance(value, list | tuple | dict)
    return [leaf for item in items for leaf in tensors(item, kind)] if is_list else []
