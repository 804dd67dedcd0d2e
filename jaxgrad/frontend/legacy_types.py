"""`torch.Tensor(2, 3)`, `torch.FloatTensor` and the other types of tensors of early PyTorch."""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..core.aval import Size
from ..core.device import as_device, default_device, device, device_of_jax, is_meta, strided
from ..core.tracebacks import shows_users_frames
from ..late import LateModule
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor
from . import factories, tensor_data
from .factory_options import size_of

storages = LateModule("jaxgrad.frontend.storages")
storage_tensors = LateModule("jaxgrad.frontend.storage_tensors")


@shows_users_frames
def construct(what: str, dtype, place: device | None, arguments, options) -> Tensor:
    """A tensor by its sizes, or of data, or an alias of a tensor.

    what: the name of the constructor; dtype: the default dtype if it is None, which takes tensors
    of all dtypes. Raises TypeError for other arguments.
    """
    unknown = sorted(options.keys() - {"device", "data", "other", "size"})
    if unknown:
        raise TypeError(
            f"{what}: new() received an invalid combination of arguments: {', '.join(unknown)}; it "
            "takes sizes, data or a tensor, and a device"
        )
    has_device = "device" in options
    device = options.pop("device", None)
    if device is not None and place is not None and as_device(device).type != place.type:
        raise RuntimeError(
            f"{what}: legacy constructor expects device type: {place.type} but device type: "
            f"{as_device(device).type} was passed"
        )
    device = place if device is None else device
    named = options.keys() & {"data", "other"}
    if named and not arguments:
        arguments = (options.pop(named.pop()),)
    (argument,) = arguments if len(arguments) == 1 else [()]
    if isinstance(argument, Tensor) and has_device:
        raise RuntimeError(
            f"Legacy tensor constructor of the form {what} of a tensor and a device is not "
            "supported. Use torch.tensor(...) or torch.as_tensor(...) instead."
        )
    if isinstance(argument, Tensor):
        return _alias(what, argument, dtype, device)
    if storages.is_storage(argument):
        wanted = dtype or dtypes.get_default_dtype()
        row = storage_tensors.elements_of(argument, wanted, "type {} for argument 1 'storage'")
        return _alias(what, row, dtype, device).detach()
    if device is None and is_meta(None):  # as in PyTorch, whose class Tensor is that of CPUs
        device = device_of_jax()
    dtype = dtype or dtypes.get_default_dtype()
    is_one = len(arguments) == 1 and not isinstance(argument, Size)
    if is_one and _is_data(argument):
        return tensor_data.tensor(argument, dtype=dtype, device=device)
    if is_one and not hasattr(argument, "__index__"):
        raise TypeError(f"{what}: new(): data must be a sequence (got {type(argument).__name__})")
    shape = size_of(what, arguments, options) if arguments or options else (0,)
    return factories.empty(shape, dtype=dtype, device=device)


def _is_data(argument) -> bool:
    """Whether an argument is a sequence of numbers, as of C: `range` and `deque` are."""
    is_sequence = hasattr(argument, "__getitem__") and hasattr(argument, "__len__")
    return is_sequence and not isinstance(argument, str | bytes | dict)


def _alias(what, tensor, dtype, place):
    is_elsewhere = place is not None and as_device(place).type != tensor.device.type
    if is_elsewhere or (dtype is not None and tensor.dtype is not dtype):
        raise TypeError(
            f"{what}: expected a tensor of {dtype or tensor.dtype} on "
            f"{place or default_device()}, but got one of {tensor.dtype} on {tensor.device}"
        )
    return ops.alias(tensor)


class TensorType(type):
    """The class of the types of tensors by dtype and device, which their tensors are not made of:
    all are of the class `Tensor`.
    """

    def __new__(metaclass, name, bases, namespace):
        if bases:
            raise TypeError(
                f"type '{bases[0].__module__}.{bases[0].__name__}' is not an acceptable base type: "
                "derive from torch.Tensor"
            )
        return super().__new__(metaclass, name, bases, namespace)

    def __call__(cls, *arguments, **options):
        name = f"{cls.__module__}.{cls.__name__}"
        return construct(name, cls.dtype, device(cls.device_type), arguments, options)

    def __instancecheck__(cls, instance):
        is_right = isinstance(instance, Tensor) and instance.dtype is cls.dtype
        return is_right and instance.device.type == cls.device_type and not is_sparse(instance)

    def __repr__(cls):
        return f"<class '{cls.__module__}.{cls.__name__}'>"

    is_cuda = property(lambda cls: cls.device_type == "cuda")
    is_sparse = is_xpu = property(lambda cls: False)
    layout = property(lambda cls: strided)


def types_on(device_type: str, module: str) -> dict[str, TensorType]:
    """The types of tensors of a device, by their names."""
    known = {"device_type": device_type, "__module__": module}
    return {
        name: TensorType(name, (), {**known, "dtype": dtype, "__doc__": _text(name, dtype, module)})
        for name, dtype in DTYPES.items()
    }


def _text(name: str, dtype, module: str) -> str:
    """The docstring of a type, with an example that also runs where there is no GPU."""
    where, ours = f"jaxgrad{module.removeprefix('torch')}.{name}", str(dtype).removeprefix("torch.")
    of_data = f">>> {where}([1, 0]).dtype\n{dtype}\n"
    on_cpu = f'>>> x = jaxgrad.ones(2, dtype=jaxgrad.{ours}, device="cpu")\n'
    is_cpu = module == "torch"
    return (
        f"The type of tensors of {dtype} on {'CPUs' if is_cpu else 'GPUs'}. A call makes one by "
        f"its sizes, or of data.\n\n{of_data if is_cpu else ''}"
        f"{on_cpu}>>> isinstance(x, {where})\n{is_cpu}\n"
    )


DTYPES = {
    f"{dtype.scalar_type}Tensor": dtype
    for dtype in (
        *(dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.uint8),
        *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.bool),
    )
}

TYPES = types_on("cpu", "torch")
CUDA_TYPES = types_on("cuda", "torch.cuda")
globals().update(TYPES)

_tensor_classes = {*TYPES.values(), *CUDA_TYPES.values()}


def place_and_dtype_of(name: str) -> tuple[str, dtypes.dtype]:
    """The type of device and the dtype of a type by its name, "torch.FloatTensor". Raises
    ValueError for another text.
    """
    module, _, short = name.rpartition(".")
    if module not in ("torch", "torch.cuda") or short not in DTYPES:
        raise ValueError(f"invalid type: {name!r}; a type is like 'torch.FloatTensor'")
    return "cuda" if module == "torch.cuda" else "cpu", DTYPES[short]
