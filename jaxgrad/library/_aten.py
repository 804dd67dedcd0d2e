"""The functions of `torch.ops.aten` that are no entries of the table: jaxgrad's public functions
and methods, and calls that have another form there than in Python.
"""

from __future__ import annotations

import importlib
import inspect
import sys

from .. import ops
from ..core.device import contiguous_format, preserve_format
from ..frontend.indexing import without_masks
from ..frontend.to import suggested_format
from ..functions import indexing, spectral
from ..nn import functional
from ..ops.aten import schemas
from ..storage.inplace_check import give
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from ._aten_functions import FUNCTIONS


def find(name: str, is_form: bool):
    """The function of an operator `add`, or of an overload `add.Tensor` that is called in another
    form; None if there is none. is_form: whether operators that have one are searched only.
    """
    if name in FORMS or is_form:
        return FORMS.get(name)
    if not schemas(name):
        return None
    space, _, inner = name.partition("_")
    if space in ("linalg", "fft", "special"):
        return getattr(importlib.import_module(f"jaxgrad.{space}"), inner, None)
    places = sys.modules["jaxgrad"], Tensor, functional
    functions = (getattr(place, name, None) for place in places)
    return next(filter(callable, functions), None)


def _spread(name: str):
    """A function of tensors one after the other, which gets them in a list."""

    def function(tensors):
        return getattr(sys.modules["jaxgrad"], name)(*tensors)

    return function


def _upsampled(mode: str):
    def upsampled(input, output_size, *options):
        *corners, scale_factors = options
        return functional.interpolate(
            input,
            output_size,
            scale_factors if output_size is None else None,
            mode,
            corners[0] if corners else None,
        )

    return upsampled


_REDUCTIONS = "none", "mean", "sum"  # by PyTorch's numbers


def _nll_loss(self, target, weight=None, reduction=1, ignore_index=-100):
    options = {"ignore_index": ignore_index, "reduction": _REDUCTIONS[reduction]}
    return functional.nll_loss(self, target, weight, **options)


def _multilabel_margin_loss(self, target, reduction=1):
    return functional.multilabel_margin_loss(self, target, reduction=_REDUCTIONS[reduction])


def _mean_by_default(name: str):
    """A loss that reduces by the mean by default, unlike that of `torch`."""

    def loss(*args, **kwargs):
        function = getattr(sys.modules["jaxgrad"], name)
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.arguments.setdefault("reduction", 1)
        return function(*bound.args, **bound.kwargs)

    return loss


def _index(self, indices):
    if not indices:
        raise IndexError("index(): at least one index must be provided")
    return ops.index(self, without_masks(self, indices))


def _to(self, **options):
    kept = {name: value for name, value in options.items() if name not in ("layout", "pin_memory")}
    return self.to(**kept)


def _to_dtype(self, dtype, non_blocking=False, copy=False, memory_format=preserve_format):
    memory_format = preserve_format if memory_format is None else memory_format
    return self.to(dtype, non_blocking, copy, memory_format=memory_format)


def _clone(self, *, memory_format=None):
    return self.clone(memory_format=memory_format or preserve_format)


@api_boundary
def _to_copy(self, **options):
    return _to(self, **options, copy=True)


def _into_out(name: str):
    """The form of a function that writes its result into `out`."""

    def form(*args, out, **options):
        function = FORMS.get(name) or getattr(sys.modules["jaxgrad"], name)
        return give(name, function(*args, **options).clone(memory_format=contiguous_format), out)

    return form


def _resize(self, size, *, memory_format=None):
    return self.detach().clone().resize_(size, memory_format=memory_format)


def _resize_as(self, the_template, *, memory_format=None):
    return self.detach().clone().resize_as_(the_template, memory_format=memory_format)


def _is_strides_like(self, memory_format):
    return bool(memory_format.rank) and suggested_format(self) is memory_format


def _stft(
    self,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    return spectral.stft(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        center=False,
        normalized=normalized,
        onesided=onesided,
        return_complex=return_complex,
        align_to_window=align_to_window,
    )


def _tensordot(self, other, dims_self, dims_other):
    return sys.modules["jaxgrad"].tensordot(self, other, (dims_self, dims_other))


_LOSSES = (
    *("cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss"),
    *("triplet_margin_loss", "ctc_loss", "ctc_loss.IntList", "ctc_loss.Tensor"),
)
_MODES = ("nearest", "linear", "bilinear", "bicubic", "trilinear")

FORMS = {
    **FUNCTIONS,
    **{f"upsample_{mode}{count}d.vec": _upsampled(mode) for mode in _MODES for count in (1, 2, 3)},
    "lift_fresh_copy": lambda self: self.clone(),
    "lift_fresh": lambda self: self,
    "lift": lambda self: self,
    **{name: _spread(name) for name in ("broadcast_tensors", "cartesian_prod", "block_diag")},
    "sym_size.int": lambda self, dim: self.size(dim),
    "sym_stride.int": lambda self, dim: self.stride(dim),
    "sym_numel": lambda self: self.numel(),
    "nll_loss_nd": _nll_loss,
    "multilabel_margin_loss": _multilabel_margin_loss,
    **{name: _mean_by_default(name.partition(".")[0]) for name in _LOSSES},
    # masks are indices too
    **dict.fromkeys(("index", "index.Tensor"), _index),
    **dict.fromkeys(("index_put", "index_put.default"), indexing.index_put),
    **dict.fromkeys(("index_put_", "index_put_.default"), indexing.index_put_),
    **dict.fromkeys(("clone", "clone.default"), _clone),
    "resize": _resize,
    "resize_as": _resize_as,
    "sym_is_contiguous": lambda self, memory_format=contiguous_format: self.is_contiguous(
        memory_format
    ),
    "is_strides_like_format": _is_strides_like,
    **{
        f"{name}.out": _into_out(name)
        for name in (
            *("clone", "resize", "resize_as", "_to_copy", "empty_like", "zeros_like", "ones_like"),
            *("full_like", "rand_like", "randn_like", "randint_like"),
        )
    },
    **dict.fromkeys(("stft", "stft.default"), _stft),
    "stft.center": spectral.stft,
    **dict.fromkeys(("tensordot", "tensordot.default"), _tensordot),
    "to.dtype": _to_dtype,
    "to.dtype_layout": _to,
    "_to_copy": _to_copy,
    "_to_copy.default": _to_copy,
}
