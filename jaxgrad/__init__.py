"""PyTorch's autograd on JAX, eager or compiled: `import jaxgrad as torch`.

>>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

import importlib
import importlib.util
import sys as _sys
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

if importlib.util.find_spec("jaxgrad.rules") is None:
    raise ImportError("this checkout of jaxgrad is not installed: run pip install -e . in it")

__version__ = "0.2.0"

from .core.supported_jax import warn_of_others as _warn_of_other_jax

_warn_of_other_jax()  # before what may fail under another one

from . import autograd as autograd
from . import functions, late
from . import ops as ops
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
from .core.aval import Size as Size
from .core.device import channels_last as channels_last
from .core.device import channels_last_3d as channels_last_3d
from .core.device import contiguous_format as contiguous_format
from .core.device import device as device
from .core.device import jagged as jagged
from .core.device import layout as layout
from .core.device import legacy_contiguous_format as legacy_contiguous_format
from .core.device import memory_format as memory_format
from .core.device import preserve_format as preserve_format
from .core.device import sparse_bsc as sparse_bsc
from .core.device import sparse_bsr as sparse_bsr
from .core.device import sparse_coo as sparse_coo
from .core.device import sparse_csc as sparse_csc
from .core.device import sparse_csr as sparse_csr
from .core.device import strided as strided
from .core.dtypes import bfloat16 as bfloat16
from .core.dtypes import bool as bool
from .core.dtypes import cdouble as cdouble
from .core.dtypes import cfloat as cfloat
from .core.dtypes import complex64 as complex64
from .core.dtypes import complex128 as complex128
from .core.dtypes import double as double
from .core.dtypes import dtype as dtype
from .core.dtypes import finfo as finfo
from .core.dtypes import float as float
from .core.dtypes import float8_e4m3fn as float8_e4m3fn
from .core.dtypes import float8_e4m3fnuz as float8_e4m3fnuz
from .core.dtypes import float8_e5m2 as float8_e5m2
from .core.dtypes import float8_e5m2fnuz as float8_e5m2fnuz
from .core.dtypes import float8_e8m0fnu as float8_e8m0fnu
from .core.dtypes import float16 as float16
from .core.dtypes import float32 as float32
from .core.dtypes import float64 as float64
from .core.dtypes import get_default_dtype as get_default_dtype
from .core.dtypes import half as half
from .core.dtypes import iinfo as iinfo
from .core.dtypes import int as int
from .core.dtypes import int8 as int8
from .core.dtypes import int16 as int16
from .core.dtypes import int32 as int32
from .core.dtypes import int64 as int64
from .core.dtypes import long as long
from .core.dtypes import set_default_dtype as set_default_dtype
from .core.dtypes import short as short
from .core.dtypes import uint8 as uint8
from .core.dtypes import uint16 as uint16
from .core.dtypes import uint32 as uint32
from .core.dtypes import uint64 as uint64
from .core.named_dtypes import bits1x8 as bits1x8
from .core.named_dtypes import bits2x4 as bits2x4
from .core.named_dtypes import bits4x2 as bits4x2
from .core.named_dtypes import bits8 as bits8
from .core.named_dtypes import bits16 as bits16
from .core.named_dtypes import chalf as chalf
from .core.named_dtypes import complex32 as complex32
from .core.named_dtypes import float4_e2m1fn_x2 as float4_e2m1fn_x2
from .core.named_dtypes import int1 as int1
from .core.named_dtypes import int2 as int2
from .core.named_dtypes import int3 as int3
from .core.named_dtypes import int4 as int4
from .core.named_dtypes import int5 as int5
from .core.named_dtypes import int6 as int6
from .core.named_dtypes import int7 as int7
from .core.named_dtypes import qint8 as qint8
from .core.named_dtypes import qint32 as qint32
from .core.named_dtypes import quint2x4 as quint2x4
from .core.named_dtypes import quint4x2 as quint4x2
from .core.named_dtypes import quint8 as quint8
from .core.named_dtypes import uint1 as uint1
from .core.named_dtypes import uint2 as uint2
from .core.named_dtypes import uint3 as uint3
from .core.named_dtypes import uint4 as uint4
from .core.named_dtypes import uint5 as uint5
from .core.named_dtypes import uint6 as uint6
from .core.named_dtypes import uint7 as uint7
from .core.promotion import can_cast as can_cast
from .core.promotion import promote_types as promote_types
from .core.tracebacks import set_traceback_filtering as set_traceback_filtering
from .frontend import methods
from .frontend.factories import arange as arange
from .frontend.factories import empty as empty
from .frontend.factories import empty_like as empty_like
from .frontend.factories import eye as eye
from .frontend.factories import full as full
from .frontend.factories import full_like as full_like
from .frontend.factories import linspace as linspace
from .frontend.factories import logspace as logspace
from .frontend.factories import ones as ones
from .frontend.factories import ones_like as ones_like
from .frontend.factories import zeros as zeros
from .frontend.factories import zeros_like as zeros_like
from .frontend.indexing import masked_select as masked_select
from .frontend.indexing import nonzero as nonzero
from .frontend.memory_methods import as_strided as as_strided
from .frontend.memory_methods import as_strided_scatter as as_strided_scatter
from .frontend.memory_methods import clone as clone
from .frontend.memory_methods import is_conj as is_conj
from .frontend.memory_methods import is_neg as is_neg
from .frontend.memory_methods import resolve_conj as resolve_conj
from .frontend.memory_methods import resolve_neg as resolve_neg
from .frontend.methods import is_complex as is_complex
from .frontend.methods import is_floating_point as is_floating_point
from .frontend.methods import is_inference as is_inference
from .frontend.methods import is_tensor as is_tensor
from .frontend.methods import numel as numel
from .frontend.tensor_data import as_tensor as as_tensor
from .frontend.tensor_data import asarray as asarray
from .frontend.tensor_data import from_dlpack as from_dlpack
from .frontend.tensor_data import from_numpy as from_numpy
from .frontend.tensor_data import tensor as tensor
from .names.finder import AliasFinder as _AliasFinder
from .names.finder import MissingFinder as _MissingFinder
from .names.missing import MissingName
from .names.missing import reasons as _reasons
from .names.missing import search_by as _search_by
from .tape import interception
from .tape import sparse_tensor as _sparse_tensor
from .tape.mode import is_grad_enabled as is_grad_enabled
from .tape.mode import is_inference_mode_enabled as is_inference_mode_enabled
from .tape.tensor import Tensor as Tensor

methods.install()
functions.install()

_sys.meta_path.insert(0, _AliasFinder())
# what an import misses
_sys.meta_path.append(_MissingFinder())
_not_provided = late.LateModule("jaxgrad.names.not_provided")
_pytorch_names = late.LateModule("jaxgrad.names.pytorch")
_deprecated = late.LateModule("jaxgrad.frontend.deprecated")

# private names of PyTorch's modules whose home is another module here
_HOMES = {"jaxgrad.storage": "jaxgrad.frontend.storages"}


def _name_elsewhere(module, name):
    home = _HOMES.get(module) if name.startswith("_") else None
    value = None if home is None else vars(importlib.import_module(home)).get(name)
    return _not_provided.imported(module, name) if value is None else value


_search_by(_name_elsewhere)

_sparse_tensor.implement_by(late.LateModule("jaxgrad.sparse._dispatch"))

# what autograd.functional calls often is compiled as a whole
_shared = late.LateModule("jaxgrad.func.shared_function")
interception.intercept(
    repeated=lambda function, arguments: _shared.called(function, arguments),
    passes=lambda count: _shared.refuse_passes(count),
)

_aten = late.LateModule("jaxgrad.library._aten")
ops.search_too(lambda name, is_form: _aten.find(name, is_form))

newaxis = None

# modules of names that few programs use or whose import is slow; imported at the first use
_LATER = {"load": "serialization", "save": "serialization"}
_LATER |= dict.fromkeys(
    ("is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled"),
    "autograd.anomaly_mode",
)
_LATER |= {"gradient": "frontend.gradient", "to_jax": "frontend.jax_interop"}
_LATER |= {"set_printoptions": "frontend.printing.arrays", "jit": "scripting"}
_LATER |= dict.fromkeys(
    (
        *("Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed"),
        *("rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"),
        *("seed", "set_rng_state"),
    ),
    "frontend.random",
)
_LATER |= dict.fromkeys(("cond", "fori_loop", "scan", "while_loop"), "capture.control_flow")
_LATER |= dict.fromkeys(
    (
        *("autocast", "clear_autocast_cache", "get_autocast_dtype", "is_autocast_cache_enabled"),
        *("is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_dtype"),
        *("set_autocast_enabled", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype"),
        "is_autocast_cpu_enabled",
    ),
    "amp.autocast_mode",
)

_LATER |= {name: f"functions.{module}" for name, module in functions.MODULE_OF.items()}

_LATER |= {"compile": "nn.compile", "from_jax": "nn.jax_modules", "to_dlpack": "utils.dlpack"}
_LATER |= {"Event": "frontend.stream", "Stream": "frontend.stream"}
_LATER |= {"get_device_module": "accelerator"}
_LATER |= {"GradScaler": "amp.grad_scaler"}
_LATER |= dict.fromkeys(("OutOfMemoryError", "AcceleratorError"), "cuda")
_LATER |= dict.fromkeys(
    (
        *("SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min"),
        *("sym_not", "sym_sqrt", "sym_sum", "_assert", "_assert_async", "_check", "_check_index"),
        *("_check_is_size", "_check_not_implemented", "_check_tensor_all", "_check_type"),
        "_check_tensor_all_with",
        *("_check_value", "_check_with", "_functional_assert_async", "_shape_as_tensor"),
        "result_type",
    ),
    "frontend.checks",
)
_LATER |= dict.fromkeys(
    (
        *("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor"),
        *("FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor"),
        *("_tensor_classes",),
    ),
    "frontend.legacy_types",
)
_LATER |= dict.fromkeys(
    (
        *("get_default_device", "set_default_device", "set_default_tensor_type", "set_eager"),
        *("synchronize", "compilation_cache"),
        *("get_float32_matmul_precision", "set_float32_matmul_precision", "get_num_threads"),
        *("get_num_interop_threads", "set_num_threads", "set_num_interop_threads"),
        *("use_deterministic_algorithms", "are_deterministic_algorithms_enabled"),
        *("is_deterministic_algorithms_warn_only_enabled", "get_deterministic_debug_mode"),
        *("set_deterministic_debug_mode", "is_warn_always_enabled", "set_warn_always"),
    ),
    "frontend.settings",
)
_LATER |= dict.fromkeys(
    (
        *("UntypedStorage", "TypedStorage", "FloatStorage", "DoubleStorage", "HalfStorage"),
        *("BFloat16Storage", "ByteStorage", "CharStorage", "ShortStorage", "IntStorage"),
        *("LongStorage", "BoolStorage", "ComplexFloatStorage", "ComplexDoubleStorage"),
        *("QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage"),
        *("_storage_classes",),
        *("StorageBase", "is_storage"),
    ),
    "frontend.storages",
)
_LATER |= {"ScriptModule": "scripting", "Future": "compiled.future"}
_LATER |= dict.fromkeys(
    (
        *("dsmm", "spmm", "hsmm", "hspmm", "smm", "saddmm", "sspaddmm", "_sparse_broadcast_to"),
        *("values_copy", "indices_copy", "crow_indices_copy", "col_indices_copy"),
        *("ccol_indices_copy", "row_indices_copy", "_values_copy", "_indices_copy"),
        "resize_as_sparse_",
    ),
    "sparse._early_names",
)
_LATER |= {"sparse_coo_tensor": "sparse._construction"}
_LATER |= dict.fromkeys(
    (
        *("per_channel_affine", "per_channel_affine_float_qparams", "per_channel_symmetric"),
        *("per_tensor_affine", "per_tensor_symmetric", "qscheme"),
    ),
    "functions.quantization",
)
_LATER |= dict.fromkeys(
    (
        *("sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor"),
        *("sparse_bsr_tensor", "sparse_bsc_tensor"),
    ),
    "sparse._compressed_construction",
)
_LATER |= dict.fromkeys(
    (
        *("_validate_sparse_coo_tensor_args", "_validate_sparse_compressed_tensor_args"),
        *("_validate_sparse_csr_tensor_args", "_validate_sparse_csc_tensor_args"),
        *("_validate_sparse_bsr_tensor_args", "_validate_sparse_bsc_tensor_args"),
    ),
    "sparse._checks",
)
_LATER |= dict.fromkeys(
    (
        *("_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned"),
        *("_nested_from_padded", "_nested_view_from_buffer"),
    ),
    "nested._construction",
)
_LATER |= {"summary": "utils.summary"}
_LATER |= {"vmap": "func.vmap"}

# the names of libraries and of old programs, in `utils._library_names`
_UNLISTED = frozenset(
    (
        *("has_lapack", "has_spectral", "has_openmp", "has_mkl", "is_vulkan_available", "fork"),
        *("compiled_with_cxx11_abi", "get_file_path", "init_num_threads", "set_flush_denormal"),
        *("cudnn_is_acceptable", "sym_constrain_range", "sym_constrain_range_for_size", "wait"),
        *("mkldnn_convolution", "parse_schema"),
        *("set_autocast_cpu_enabled", "set_autocast_cpu_dtype", "set_autocast_gpu_dtype"),
        *("is_autocast_xla_enabled", "is_autocast_ipu_enabled", "get_autocast_xla_dtype"),
        *("get_autocast_ipu_dtype", "autocast_increment_nesting", "autocast_decrement_nesting"),
    )
)

_LATER_MODULES = (
    *("accelerator", "amp", "ao", "backends", "compat", "compiler", "cpu", "cuda", "distributed"),
    *(
        "distributions",
        "export",
        "fft",
        "func",
        "functional",
        "futures",
        "fx",
        "hub",
        "library",
        "linalg",
    ),
    *("masked", "nested"),
    *("mps", "mtia", "multiprocessing", "nn", "onnx", "optim", "overrides", "profiler"),
    *(
        "quantization",
        "quasirandom",
        "random",
        "return_types",
        "serialization",
        "signal",
        "sparse",
        "special",
    ),
    *("testing", "torch_version", "tracing", "types", "utils", "version", "xpu"),
    *("__config__", "__future__", "_C", "_dynamo", "_functorch", "_higher_order_ops", "_inductor"),
    *("_linalg_utils", "_lobpcg", "_native", "_ops", "_refs", "_tensor", "_tensor_str", "_utils"),
    *("_utils_internal", "_vendor", "_vmap_internals"),
)
_MODULES = ("accelerator", "amp", "autograd", "backends", "compiler", "cpu", "cuda", "distributed")
_MODULES += ("distributions",)
_MODULES += ("fft", "func", "hub", "library", "linalg", "masked", "mps", "multiprocessing")
_MODULES += ("nested", "nn")
_MODULES += ("ops", "optim", "overrides", "profiler", "quasirandom", "random", "signal", "sparse")
_MODULES += ("special", "testing", "tracing", "utils", "version")


def _is_function(name: str) -> bool:
    """Whether PyTorch has an operator of the table, or an in-place form, as a function of `torch`;
    others are methods, or functions of modules, and `jaxgrad.ops` has all.
    """
    # the short list first: the whole one takes 40 ms to read
    return ops.library.has(name) and (
        f"torch.{name}" in _reasons() or name in _pytorch_names.names_in("torch")
    )


def __getattr__(name):
    """The operators of the table and their in-place forms become names here at their first use."""
    if name == "__all__":
        return [member for member in __dir__() if member not in _MODULES]
    if name in _LATER_MODULES:
        return importlib.import_module(f"jaxgrad.{name}")
    if name in _LATER:
        value = getattr(importlib.import_module(f"jaxgrad.{_LATER[name]}"), name)
    elif name.startswith("_foreach_"):
        value = importlib.import_module("jaxgrad.functions.foreach").find(name)
    elif _is_function(name):
        value = getattr(ops, name)
    elif name == "Storage":
        return importlib.import_module("jaxgrad.frontend.storages").default_type()
    elif name in ("has_mps", "has_cuda", "has_cudnn", "has_mkldnn"):
        return _deprecated.has_backend(name)  # not kept: each use warns
    elif name in _UNLISTED:
        return getattr(importlib.import_module("jaxgrad.utils._library_names"), name)
    elif name in _not_provided.MODULES:
        return importlib.import_module(f"jaxgrad.{name}")
    elif not name.startswith("_") and name in _not_provided.listed()["torch"]:
        return _not_provided.resolve(f"torch.{name}")  # not kept: `dir` would show it
    else:
        raise MissingName("jaxgrad", name)
    globals()[name] = value
    return value


def __dir__():
    """The names that users call, without internal modules and operators that only formulas call."""
    mine = [name for name, value in globals().items() if not isinstance(value, type(importlib))]
    offered = {*mine, *filter(_is_function, dir(ops)), *_MODULES, *_LATER}
    helpers = ("_backward", "_forward")
    return sorted(n for n in offered if not n.startswith("_") and not n.endswith(helpers))
