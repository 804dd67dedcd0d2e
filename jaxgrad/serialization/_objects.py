"""The table of the names that PyTorch's files may contain, with the objects that are made for them.

These are the names that `torch.load(weights_only=True)` of PyTorch 2.13 accepts, as far as jaxgrad
has the object, and some more that hold only data: NumPy's arrays and numbers, `defaultdict`,
`frozenset`.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict

import numpy as np

from .. import ops
from ..core import device as devices
from ..core import dtypes, named_dtypes
from ..core import strides as layouts
from ..core.aval import Size
from ..core.named_dtypes import RAW_BITS, bytes_of, complex32
from ..frontend import factories, storages
from ..frontend.half_complex import HalfComplex
from ..frontend.storages import TypedStorage, UntypedStorage
from ..frontend.subclassing import as_instance
from ..functions import creation, quantization
from ..late import LateModule
from ..nn.parameter import (
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
    mark,
    mark_buffer,
)
from ..sparse._compressed_construction import sparse_compressed_tensor
from ..sparse._construction import sparse_coo_tensor
from ..tape.tensor import Tensor, abstract_value, held, hold, may_require_grad
from ._instructions import DICTS, ITEM, Objects, named
from ._memory import FileStorage, Loading, count_of
from ._refused import shown
from ._safe_classes import INTERNAL, NUMPY_TYPE, safe_classes

strided_nested = LateModule("jaxgrad.nested._strided")
jagged = LateModule("jaxgrad.nested._construction")
masked = LateModule("jaxgrad.masked")


class TorchObjects(Objects):
    """The objects of a file of PyTorch.

    loading: makes the tensors; find_storage: gives the bytes of a storage by its id.
    """

    def __init__(self, loading: Loading, find_storage):
        self.loading, self.find_storage = loading, find_storage
        self.safe = safe_classes()

    def builder(self, function):
        return BUILDERS.get(id(function))

    def find(self, module: str, name: str):
        """The meaning of a name, None if it is not read."""
        module, name = plain_name(module, name)
        full = f"{'builtins' if module == '__builtin__' else module}.{name}"
        # what a program allows may be known here, as the functions of NumPy are
        meaning = NAMES.get(full, self.safe.get(full))
        return torch_constant(name) if meaning is None and module == "torch" else meaning

    def named(self, machine, module, name):
        meaning = self.find(module, name)
        if meaning is None:
            raise machine.refuse(_refusal(module, name))
        return meaning

    def instance(self, machine, kind, arguments):
        if not self.is_allowed(kind):
            raise machine.refuse(f"jaxgrad makes no instance of {named(kind)}")
        if type(arguments) is not tuple:
            raise machine.refuse(f"an instance of {named(kind)} is made without arguments")
        return kind.__new__(kind, *arguments)

    def set_state(self, machine, target, state):
        kind = type(target)
        if kind in STATES:
            STATES[kind](machine, target, state)
        elif self.is_allowed(kind):
            set_attributes(machine, target, state)
        else:
            super().set_state(machine, target, state)

    def is_allowed(self, function) -> bool:
        is_data = function is DimensionRange
        return is_data or any(function is safe for safe in self.safe.values())

    def persistent(self, machine, identity):
        # PyTorch before 1.6 kept the code of modules beside their class, for a warning
        if type(identity) is tuple and len(identity) == 4 and identity[0] == "module":
            return identity[1]
        return self.find_storage(machine, identity)


def set_attributes(machine, target, state):
    """Give an instance of a class that the user allows its state, as pickling does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    for part in (attributes or {}, slots or {}):
        if not {*map(type, _need(machine, part, dict, "the attributes"))} <= {str}:
            raise machine.refuse(f"an attribute of a {named(target)} has a name that is no text")
        machine.spend(ITEM * len(part))
    if attributes:
        vars(target).update(attributes)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def plain_name(module: str, name: str) -> tuple[str, str]:
    """The module and the name of a constant, which pickle finds in a module that imports torch."""
    return ("torch", name.removeprefix("torch.")) if name.startswith("torch.") else (module, name)


def torch_constant(name):
    """The dtype or memory format of a name, None if there is none."""
    for module in (dtypes, named_dtypes, devices):
        value = getattr(module, name, None)
        if isinstance(value, dtypes.dtype | devices.memory_format) and value.name == name:
            return value
    return None


def _refusal(module, name):
    full = shown(f"{module}.{name}")
    text = f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
    library, _, rest = module.partition(".")
    if library == "torch" and (not rest or rest.startswith("_")):
        return text + "jaxgrad has no such dtype, class or function"
    if module in ("builtins", "__builtin__"):
        return text + "jaxgrad reads tensors, numbers, text and containers of these"
    kind = (
        "The file holds a whole module, an optimizer or the like, which only its code can make"
        if library == "torch"
        else "jaxgrad reads tensors, numbers, text and containers of these"
    )
    return text + (
        f"{kind}. If you trust the class, torch.serialization.add_safe_globals([{shown(name)}]) "
        "before the call allows it; weights_only=False reads any file, and runs what it names"
    )


def _need(machine, value, kind, what):
    """The value. Raises RefusedFile for one of another type, and for an int of more than 64 bits.

    A bool is no int here.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) not in kinds:
        raise machine.refuse(f"{what} should be of type {kinds[0].__name__}, not {named(value)}")
    if type(value) is int and value.bit_length() > 64:
        raise machine.refuse(f"{what} has more than 64 bits")
    return value


def _ints(machine, values, what):
    machine.spend(ITEM * len(_need(machine, values, (tuple, Size), what)))
    for value in values:
        _need(machine, value, int, f"a number of {what}")
    return tuple(values)


# ---- Python's objects


def _ordered_dict(machine, pairs=()):
    dictionary = OrderedDict()
    machine.spend(2 * ITEM * len(_need(machine, pairs, (list, tuple), "the items")))
    for pair in pairs:
        if len(_need(machine, pair, (tuple, list), "an item of a dict")) != 2:
            raise machine.refuse("an item of a dict is no pair")
        dictionary[machine.key(pair[0])] = pair[1]
    return dictionary


def _state_of_ordered_dict(machine, target, state):
    # the rest of the attributes could hide methods
    if "_metadata" in _need(machine, state, dict, "the attributes"):
        target._metadata = state["_metadata"]


def _counter(machine, counts=None):
    counter = Counter()
    if counts is not None:
        machine.spend(ITEM * len(_need(machine, counts, (dict, *DICTS), "the counts")))
        dict.update(counter, counts)
    return counter


FACTORIES = (list, dict, set, tuple, int, float, str, bool)


def _default_dict(machine, factory=None):
    if factory is not None and not any(factory is kind for kind in FACTORIES):
        raise machine.refuse(f"a defaultdict has the factory {named(factory)}")
    return defaultdict(factory)


def _set(machine, items=()):
    machine.spend(ITEM * len(_need(machine, items, (list, tuple), "the elements of a set")))
    return set(map(machine.key, items))


def _frozenset(machine, items=()):
    return frozenset(_set(machine, items))


def _complex(machine, real, imag):
    _need(machine, real, (float, int), "a real part")
    return complex(real, _need(machine, imag, (float, int), "an imaginary part"))


def _bytes(machine, data=b""):
    machine.spend(len(_need(machine, data, bytes, "bytes")))
    return data


def _bytearray(machine, data=b"", encoding=None):
    data = data if encoding is None else _encode(machine, data, encoding)
    return bytearray(_bytes(machine, data))


def _encode(machine, text, encoding):
    """`codecs.encode` as it writes bytes: by the code points."""
    machine.spend(len(_need(machine, text, str, "text for bytes")))
    if encoding not in ("latin1", "latin-1"):
        raise machine.refuse(f"bytes are written by the code {shown(encoding)}")
    try:
        return text.encode("latin1")
    except UnicodeEncodeError:
        raise machine.refuse("text for bytes has characters beyond 255") from None


# ---- PyTorch's objects


def _tensor(machine):
    """A tensor without elements, to which its state gives them: as files of 2016 make tensors."""
    return factories.empty(0)


def _state_of_tensor(machine, target, state):
    if len(_need(machine, state, tuple, "the state of a tensor")) != 4:
        raise machine.refuse("a tensor has a storage, an offset, a size and strides")
    tensor = _tensor_1(machine, *state)
    hold(target, held(tensor), abstract_value(tensor))
    state[0].replace(tensor, target)


def _size(machine, extents=()):
    return Size(_ints(machine, extents, "a torch.Size"))


def device(machine, kind, index=None):
    """A device by its type and index. Raises RefusedFile for one that jaxgrad does not know."""
    _need(machine, kind, str, "the type of a device")
    _need(machine, index, (int, type(None)), "the index of a device")
    try:
        return devices.device(kind, index)
    except RuntimeError:
        raise machine.refuse(f"jaxgrad has no device {shown(kind)}") from None


COMPRESSED = devices.sparse_csr, devices.sparse_csc, devices.sparse_bsr, devices.sparse_bsc
LAYOUTS = {str(layout): layout for layout in (devices.strided, devices.sparse_coo, *COMPRESSED)}


def _layout(machine, name):
    layout = LAYOUTS.get(_need(machine, name, str, "a layout"))
    if layout is None:
        raise machine.refuse(f"jaxgrad has no layout {shown(name)}")
    return layout


def _tensor_1(machine, storage, offset, size, stride):
    """The tensors of 2016."""
    return _tensor_2(machine, storage, offset, size, stride, False, OrderedDict())


def _tensor_2(machine, storage, offset, size, stride, requires_grad, backward_hooks, metadata=None):
    _need(machine, storage, FileStorage, "the storage of a tensor")
    return _tensor_3(
        machine,
        storage,
        offset,
        size,
        stride,
        requires_grad,
        backward_hooks,
        storage.dtype,
        metadata,
    )


def _tensor_3(
    machine, storage, offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    _need(machine, storage, FileStorage, "the storage of a tensor")
    _need(machine, offset, int, "an offset")
    _need(machine, dtype, dtypes.dtype, "a dtype")
    flags = {"conj": False, "neg": False}
    if metadata is not None:
        flags |= _need(machine, metadata, dict, "the metadata of a tensor")
    if len(flags) != 2 or not {type(flag) for flag in flags.values()} <= {bool}:
        raise machine.refuse("a tensor has metadata that are not those of PyTorch")
    size, stride = _ints(machine, size, "a size"), _ints(machine, stride, "strides")
    if dtype is complex32:  # of pairs of float16
        size, stride = (*size, 2), (*(2 * step for step in stride), 1)
        pairs = storage.tensor(
            machine, storage.place(machine, dtypes.float16, 2 * offset, size, stride)
        )
        tensor = ops.complex(*pairs.float().unbind(-1))
        tensor = tensor.conj().resolve_conj() if flags["conj"] else tensor
        return requiring(machine, tensor.to(complex32), requires_grad, backward_hooks)
    is_of_bits = dtype in RAW_BITS
    stored = bytes_of(dtype) if is_of_bits else dtype
    tensor = storage.tensor(machine, storage.place(machine, stored, offset, size, stride, **flags))
    tensor = tensor.view(dtype) if is_of_bits else tensor
    return requiring(machine, tensor, requires_grad, backward_hooks)


def requiring(machine, tensor: Tensor, requires_grad: bool, hooks=None) -> Tensor:
    """A tensor that requires grad if it should. Raises RefusedFile if it cannot."""
    if _need(machine, requires_grad, bool, "requires_grad"):
        if not may_require_grad(tensor):
            raise machine.refuse(f"a tensor of {tensor.dtype} requires grad")
        tensor.requires_grad_()
    if len(_need(machine, hooks, (OrderedDict, type(None), dict), "hooks") or ()):
        raise machine.refuse("a tensor has hooks, which are code")
    return tensor


def _meta_tensor(machine, dtype, size, stride, requires_grad):
    _need(machine, dtype, dtypes.dtype, "a dtype")
    place = device(machine, "meta")
    size = _ints(machine, size, "a size")
    stride = _ints(machine, stride, "strides")
    if len(size) != len(stride) or min((*size, *stride), default=0) < 0:
        raise machine.refuse(f"a tensor of size {shown(size)} has the strides {shown(stride)}")
    tensor = creation.empty_strided(size, stride, dtype=dtype, device=place)
    return requiring(machine, tensor, requires_grad)


def _sparse_tensor(machine, layout, data):
    if layout in COMPRESSED:
        if len(_need(machine, data, tuple, "the parts of a sparse tensor")) != 4:
            raise machine.refuse("a compressed tensor has two kinds of indices, values and a size")
        *parts, size = data
        size = _ints(machine, size, "a size")
        return compressed(machine, machine.objects.loading, parts, size, layout)
    if layout is not devices.sparse_coo:
        raise machine.refuse(f"jaxgrad has no sparse tensors of the layout {layout}")
    if len(_need(machine, data, tuple, "the parts of a sparse tensor")) not in (3, 4):
        raise machine.refuse("a sparse tensor has indices, values, a size and maybe a flag")
    indices, values, size, is_coalesced = (*data, False)[:4]
    return sparse(
        machine,
        machine.objects.loading,
        indices,
        values,
        _ints(machine, size, "a size"),
        is_coalesced,
    )


def sparse(machine, loading: Loading, indices, values, size, is_coalesced) -> Tensor:
    """A sparse tensor of its parts. Raises RefusedFile if they do not fit together."""
    _need(machine, indices, Tensor, "the indices of a sparse tensor")
    _need(machine, values, (Tensor, HalfComplex), "the values of a sparse tensor")
    _need(machine, is_coalesced, (bool, type(None)), "is_coalesced")
    if indices.dtype is not dtypes.int64 or indices.ndim != 2 or not values.ndim:
        raise machine.refuse("a sparse tensor has int64 indices of two dimensions, and elements")
    loading.spend(machine, values.numel() * values.dtype.itemsize)
    try:
        return sparse_coo_tensor(
            indices, values, size, is_coalesced=bool(is_coalesced), check_invariants=True
        )
    except (RuntimeError, ValueError) as error:
        raise machine.refuse(f"a sparse tensor does not fit together: {error}") from None


def compressed(machine, loading: Loading, parts, size, layout) -> Tensor:
    """A tensor in a compressed layout of its parts. Raises RefusedFile if they do not fit."""
    for part in parts:
        _need(machine, part, (Tensor, HalfComplex), "a part of a compressed tensor")
        loading.spend(machine, part.numel() * part.dtype.itemsize)
    try:
        return sparse_compressed_tensor(*parts, size, layout=layout)
    except (RuntimeError, ValueError) as error:
        raise machine.refuse(f"a compressed tensor does not fit together: {error}") from None


def _quantized_tensor(
    machine, storage, offset, size, stride, parameters, requires_grad, backward_hooks
):
    _need(machine, requires_grad, bool, "requires_grad")
    integers = _tensor_2(machine, storage, offset, size, stride, False, backward_hooks)
    if integers.dtype not in quantization.INTEGERS.values():
        raise machine.refuse(f"a quantized tensor has elements of {integers.dtype}")
    scheme, *rest = _need(machine, parameters, tuple, "the parameters of a quantized tensor")
    if scheme is quantization.per_tensor_affine and len(rest) == 2:
        _need(machine, rest[0], float, "a scale")
        _need(machine, rest[1], int, "a zero point")
        return quantization._make_per_tensor_quantized_tensor(integers, *rest)
    if scheme is not quantization.per_channel_affine or len(rest) != 3:
        raise machine.refuse(f"a quantized tensor has the scheme {scheme!r}")
    *scales, axis = rest
    _need(machine, axis, int, "the axis of channels")
    is_right = all(type(part) is Tensor and part.ndim == 1 for part in scales)
    if not is_right or not 0 <= axis < integers.ndim:
        raise machine.refuse("the scales of a quantized tensor do not fit")
    if {part.numel() for part in scales} != {integers.shape[axis]}:
        raise machine.refuse("the scales of a quantized tensor do not fit")
    return quantization._make_per_channel_quantized_tensor(integers, *scales, axis)


def _nested_tensor(machine, buffer, sizes, strides, offsets):
    for part, dimensions in ((buffer, 1), (sizes, 2), (strides, 2), (offsets, 1)):
        is_right = type(part) is Tensor and part.ndim == dimensions
        if not is_right or (part is not buffer and part.dtype is not dtypes.int64):
            raise machine.refuse("the parts of a nested tensor do not fit")
    if sizes.shape != strides.shape or sizes.shape[0] != offsets.shape[0]:
        raise machine.refuse("the parts of a nested tensor do not fit")
    rows = zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True)
    for size, stride, offset in rows:
        least = min((*size, *stride, offset))
        if least < 0 or offset + layouts.reach(size, stride) > buffer.numel():
            raise machine.refuse("a component of a nested tensor is out of bounds of its elements")
    return strided_nested.of_tables(buffer, sizes, strides, offsets)


class JaggedTensorName:
    """What stands for the class of jagged nested tensors."""


# the attributes that jagged nested tensors of PyTorch have
JAGGED = {
    *("_values", "_offsets", "_lengths", "_size", "_strides", "_ragged_idx", "_metadata_cache"),
    "_dynamo_propagated_dynamic_indices",
}


class DimensionRange(tuple):
    """What PyTorch's compiler notes of the extents of a jagged nested tensor, in a set: not used
    here.
    """

    __slots__ = ()

    def __setstate__(self, state):
        pass


def _jagged_tensor(machine, parts):
    """A jagged nested tensor of its values, and of where they begin."""
    _need(machine, parts, dict, "the parts of a nested tensor")
    values, offsets, lengths = (parts.get(name) for name in ("values", "offsets", "lengths"))
    ragged = _need(machine, parts.get("_ragged_idx"), int, "the dimension of a nested tensor")
    for part in (values, offsets, *[lengths] * (lengths is not None)):
        _need(machine, part, Tensor, "a part of a nested tensor")
    try:
        places = offsets.tolist()
        if not 0 < ragged <= values.ndim or min(places) < 0:
            raise machine.refuse("the parts of a nested tensor do not fit")
        last = max(places) if lengths is None else max((offsets[:-1] + lengths).tolist(), default=0)
        if last > values.shape[ragged - 1] or sorted(places) != places:
            raise machine.refuse("a component of a nested tensor is out of bounds of its elements")
        tensor = jagged.nested_tensor_from_jagged(values, offsets, lengths, ragged)
    except (TypeError, ValueError) as error:
        raise machine.refuse(f"the parts of a nested tensor do not fit: {error}") from None
    tensor = tensor.detach()
    return tensor.requires_grad_() if parts.get("requires_grad") is True else tensor


class MaskedTensorName:
    """What stands for the class of masked tensors, which is imported for a file that has some."""


def _wrapper(machine, *arguments):
    raise machine.refuse("a tensor that wraps others is no masked tensor")


def _masked_tensor(machine, arguments, state):
    """A masked tensor of the attributes that PyTorch gives it."""
    requires_grad = len(arguments) == 8 and arguments[-1]
    parts = _need(machine, state, dict, "the attributes of a masked tensor")
    data, mask = parts.get("_masked_data"), parts.get("_masked_mask")
    if not isinstance(data, Tensor) or not isinstance(mask, Tensor):
        raise machine.refuse("a masked tensor has data and a mask")
    _need(machine, requires_grad, bool, "requires_grad")
    try:
        return masked.masked_tensor(data, mask, requires_grad)
    except (RuntimeError, TypeError, ValueError) as error:
        raise machine.refuse(f"a masked tensor does not fit together: {error}") from None


def _parameter(machine, data, requires_grad, backward_hooks):
    _need(machine, data, Tensor, "a parameter")
    requiring(machine, data, requires_grad, backward_hooks)
    return mark(data, Parameter, requires_grad)


def _parameter_with_state(machine, data, requires_grad, backward_hooks, state):
    parameter = _parameter(machine, data, requires_grad, backward_hooks)
    _set_on_tensor(machine, parameter, state)
    return parameter


def of_named_class(machine, function, kind, arguments, state):
    """A jagged or a masked tensor."""
    if function is _wrapper and kind is MaskedTensorName:
        return _masked_tensor(machine, arguments, state)
    if function is _jagged_tensor and kind is JaggedTensorName:
        tensor, parts = machine.called(function, arguments), _need(machine, state, dict, "a state")
        users = {name: part for name, part in parts.items() if name not in JAGGED}
        _set_on_tensor(machine, tensor, users)
        return tensor
    raise machine.refuse(f"a tensor is of the class {named(kind)}")


def _of_type(machine, function, kind, arguments, state):
    """A tensor of a class that the user allows, or one that has attributes in Python."""
    if kind is JaggedTensorName or kind is MaskedTensorName:
        return of_named_class(machine, function, kind, arguments, state)
    is_own = kind is Tensor or kind is Parameter
    if not is_own and not (machine.objects.is_allowed(kind) and issubclass(kind, Tensor)):
        raise machine.refuse(f"a tensor is of the class {named(kind)}")
    if not any(function is builder for builder in (*TENSORS, _quantized_tensor, _nested_tensor)):
        raise machine.refuse(f"a tensor is made by {named(function)}")
    return of_class(machine, machine.called(function, arguments), kind, state)


def of_class(machine, tensor, kind, state):
    """A new tensor as an instance of a class, with the attributes that it had."""
    if kind is not Tensor and kind is not Parameter:
        tensor = as_instance(tensor, kind)
        if kind.__setstate__ is not Tensor.__setstate__:
            tensor.__setstate__(state)
            return tensor
    _set_on_tensor(machine, tensor, state)
    return tensor


def _set_on_tensor(machine, tensor, state):
    """Set what users have set on a tensor, under names that are no methods."""
    for part in state if type(state) is tuple else (state,):
        for name, value in ({} if part is None else _need(machine, part, dict, "a state")).items():
            if not machine.is_trusting and (type(name) is not str or name in HIDDEN):
                raise machine.refuse(f"a tensor has the attribute {shown(name)}")
            if name in INTERNAL and name in vars(tensor):
                raise machine.refuse(f"a tensor has the attribute {shown(name)} of its class")
            machine.spend(ITEM)
            setattr(tensor, name, value)
    if vars(tensor).get("_is_buffer") is True:
        mark_buffer(tensor)
    if vars(tensor).get("_is_param") is True and type(tensor) is not Parameter:
        mark(tensor, Parameter, tensor.requires_grad)


def _lazy_parameter(machine, requires_grad=True, where=None, dtype=None):
    return _lazy(machine, UninitializedParameter, requires_grad, where, dtype)


def _lazy_buffer(machine, requires_grad=False, where=None, dtype=None):
    return _lazy(machine, UninitializedBuffer, requires_grad, where, dtype)


def _lazy(machine, kind, requires_grad, where, dtype):
    _need(machine, requires_grad, bool, "requires_grad")
    _need(machine, where, (devices.device, type(None)), "a device")
    _need(machine, dtype, (dtypes.dtype, type(None)), "a dtype")
    return kind(requires_grad, where, dtype)


# ---- NumPy's objects


def _numpy_dtype(machine, code, align=False, copy=True):
    if NUMPY_TYPE.fullmatch(_need(machine, code, str, "a type of NumPy")) is None:
        raise machine.refuse(f"a type of NumPy is {shown(code)}, which is no number")
    return np.dtype(code)


def _state_of_numpy_dtype(machine, target, state):
    _need(machine, state, tuple, "the state of a type of NumPy")
    order = state[1] if len(state) > 1 else None
    if type(order) is not str or order not in "<|=":
        raise machine.refuse("a type of NumPy is not that of numbers in the order little-endian")


def _numpy_number(machine, dtype, data):
    if not isinstance(dtype, np.dtype) or len(_need(machine, data, bytes, "a number")) != (
        dtype.itemsize
    ):
        raise machine.refuse("a number of NumPy has another size than its type")
    return np.frombuffer(data, dtype)[0]


def _empty_array(machine, kind, shape, code):
    if kind is not np.ndarray:
        raise machine.refuse(f"an array of NumPy is of the class {named(kind)}")
    return np.empty(0)


def _state_of_array(machine, target, state):
    if len(_need(machine, state, tuple, "an array of NumPy")) != 5:
        raise machine.refuse("an array of NumPy has 5 parts")
    _, shape, dtype, is_fortran, data = state
    shape = _ints(machine, shape, "the shape of an array")
    if not isinstance(dtype, np.dtype):
        raise machine.refuse("the type of an array of NumPy is missing")
    count = count_of(machine, shape, dtype.itemsize)
    if len(_need(machine, data, bytes, "the elements of an array")) != count * dtype.itemsize:
        raise machine.refuse("the shape of an array of NumPy does not fit its bytes")
    machine.spend(len(data))
    is_fortran = bool(_need(machine, is_fortran, (bool, int), "the order of an array"))
    target.__setstate__((1, shape, dtype, is_fortran, data))


# ---- the tables

# by the name in a file, without the module builtins' name of Python 2
FUNCTIONS = {
    "_codecs.encode": _encode,
    "torch._utils._rebuild_tensor": _tensor_1,
    "torch._utils._rebuild_tensor_v2": _tensor_2,
    "torch._utils._rebuild_tensor_v3": _tensor_3,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta_tensor,
    "torch._utils._rebuild_sparse_tensor": _sparse_tensor,
    "torch._utils._rebuild_qtensor": _quantized_tensor,
    "torch._utils._rebuild_nested_tensor": _nested_tensor,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
    "torch.nested._internal.nested_tensor._rebuild_njt": _jagged_tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch.serialization._get_layout": _layout,
    "numpy._core.multiarray.scalar": _numpy_number,
    "numpy.core.multiarray.scalar": _numpy_number,
    "numpy._core.multiarray._reconstruct": _empty_array,
    "numpy.core.multiarray._reconstruct": _empty_array,
}

# attributes that would hide methods of tensors
HIDDEN = frozenset(dir(Tensor))

TENSORS = (_tensor_1, _tensor_2, _tensor_3, _sparse_tensor, _meta_tensor)
OTHERS = (_quantized_tensor, _nested_tensor, _jagged_tensor)

CLASSES = {
    "collections.OrderedDict": (OrderedDict, _ordered_dict),
    "collections.Counter": (Counter, _counter),
    "collections.defaultdict": (defaultdict, _default_dict),
    "builtins.set": (set, _set),
    "builtins.frozenset": (frozenset, _frozenset),
    "builtins.complex": (complex, _complex),
    "builtins.bytes": (bytes, _bytes),
    "builtins.bytearray": (bytearray, _bytearray),
    "torch.Tensor": (Tensor, _tensor),
    "torch.Size": (Size, _size),
    "torch.device": (devices.device, device),
    "numpy.dtype": (np.dtype, _numpy_dtype),
    "torch.nn.parameter.UninitializedParameter": (UninitializedParameter, _lazy_parameter),
    "torch.nn.parameter.UninitializedBuffer": (UninitializedBuffer, _lazy_buffer),
}

NAMES = {
    **FUNCTIONS,
    **{name: kind for name, (kind, _) in CLASSES.items()},
    **{f"builtins.{kind.__name__}": kind for kind in FACTORIES},
    **{f"torch.{name}": kind for name, kind in storages.TYPES.items()},
    **{f"torch.cuda.{name}": kind for name, kind in storages.TYPES.items()},
    "torch.QUInt8Storage": storages.TYPES["ByteStorage"],
    "torch.QInt8Storage": storages.TYPES["CharStorage"],
    "torch.QInt32Storage": storages.TYPES["IntStorage"],
    **{f"torch.{scheme.name}": scheme for scheme in quantization.SCHEMES},
    "torch.masked.maskedtensor.core.MaskedTensor": MaskedTensorName,
    "torch.nested._internal.nested_tensor.NestedTensor": JaggedTensorName,
    "torch._dynamo.decorators._DimRange": DimensionRange,
    "torch.storage.UntypedStorage": UntypedStorage,
    "torch.storage.TypedStorage": TypedStorage,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.nn.parameter.UninitializedParameter": UninitializedParameter,
    "torch.nn.parameter.UninitializedBuffer": UninitializedBuffer,
    "numpy.ndarray": np.ndarray,
}

BUILDERS = {id(function): function for function in FUNCTIONS.values()}
BUILDERS |= {id(kind): builder for kind, builder in CLASSES.values()}

# those that need the numbers of tensors, or what such a builder has made
NUMBERS = (*TENSORS, *OTHERS, _parameter, _parameter_with_state, _of_type)


def _nothing(machine, a=None, b=None, c=None, d=None, e=None, f=None, g=None, h=None):
    return None


class Rehearsal(TorchObjects):
    """The objects of a file without its tensors, for a first run that finds the storages."""

    def __init__(self, find_storage):
        super().__init__(None, find_storage)

    def builder(self, function):
        if any(function is builder for builder in NUMBERS):
            return _nothing
        return super().builder(function)

    def set_state(self, machine, target, state):
        if type(target) is not Tensor:
            super().set_state(machine, target, state)


STATES = {
    Tensor: _state_of_tensor,
    OrderedDict: _state_of_ordered_dict,
    np.ndarray: _state_of_array,
    **dict.fromkeys({type(np.dtype(code)) for code in "?bhilqBHILQefdFD"}, _state_of_numpy_dtype),
}
