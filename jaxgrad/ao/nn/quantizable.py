"""torch.ao.nn.quantizable: layers whose parts can be observed and quantized.

`prepare` puts them in place of the layers of `nn` that compute in one function.
"""

from __future__ import annotations

import math
import sys
import warnings

from ... import nn, ops
from ...core import dtypes
from ...core.tracebacks import users_stacklevel
from ...frontend.factories import zeros
from ...functions.quantization import quantize_per_tensor
from ...names.not_provided import names_of
from ...tape.tensor import Tensor
from ..quantization.insertion import OfParts, add_observers, convert_layers, propagate_qconfig_
from ..quantization.stubs import DeQuantStub, QuantStub
from . import qat
from .quantized.functional_modules import FloatFunctional

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
modules = sys.modules[__name__]  # torch.ao.nn.quantizable.modules


def _like(tensor, x):
    """A tensor, quantized with scale 1 and zero point 0 if `x` is quantized."""
    return quantize_per_tensor(tensor, 1.0, 0, x.dtype) if x.is_quantized else tensor


class LSTMCell(nn.Module):
    """`nn.LSTMCell` of parts. Arguments, inputs and results: those of `nn.LSTMCell`."""

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(self, input_dim, hidden_dim, bias=True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_dim, hidden_dim, bias
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.igates = nn.Linear(input_dim, 4 * hidden_dim, **options)
        self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, **options)
        self.gates = FloatFunctional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()

    def _get_name(self):
        return "QuantizableLSTMCell"

    def forward(self, x, hidden=None):
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x)
        hx, cx = hidden
        gates = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        activations = self.input_gate, self.forget_gate, self.cell_gate, self.output_gate
        i, f, g, o = (apply(part) for apply, part in zip(activations, gates, strict=True))
        kept, taken = self.fgate_cx.mul(f, cx), self.igate_cgate.mul(i, g)
        cell = self.fgate_cx_igate_cgate.add(kept, taken)
        return self.ogate_cy.mul(o, ops.tanh(cell)), cell

    def initialize_hidden(self, x):
        """A state of zeros for an input."""
        state = _like(zeros(len(x), self.hidden_size), x)
        return state, state

    @classmethod
    def from_float(cls, other, use_precomputed_fake_quant=False):
        """The cell with the parameters of an `nn.LSTMCell`."""
        return cls(other.input_size, other.hidden_size, other.bias)._with_parameters(other, "")

    def _with_parameters(self, other, end):
        for layer, kind in ((self.igates, "ih"), (self.hgates, "hh")):
            layer.weight = getattr(other, f"weight_{kind}{end}")
            if self.bias:
                layer.bias = getattr(other, f"bias_{kind}{end}")
        return self


class _LSTMSingleLayer(nn.Module):
    """One direction of a layer, of inputs (steps, batch, features)."""

    def __init__(self, *arguments):
        super().__init__()
        self.cell = LSTMCell(*arguments)

    def forward(self, x, hidden=None):
        outputs = []
        for step in range(len(x)):
            hidden = self.cell(x[step], hidden)
            outputs.append(hidden[0])
        return ops.stack(outputs), hidden


class _LSTMLayer(nn.Module):
    """A layer of one or two directions; `hidden` has the state of both, one after the other."""

    def __init__(self, input_dim, hidden_dim, bias, bidirectional):
        super().__init__()
        self.bidirectional = bidirectional
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, bias)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, bias)

    def forward(self, x, hidden):
        if not self.bidirectional:
            return self.layer_fw(x, hidden)
        forth, back = (tuple(part[direction] for part in hidden) for direction in (0, 1))
        outputs, forth = self.layer_fw(x, forth)
        reversed_outputs, back = self.layer_bw(x.flip(0), back)
        result = ops.cat([outputs, reversed_outputs.flip(0)], outputs.dim() - 1)
        return result, tuple(ops.stack(parts) for parts in zip(forth, back, strict=True))


class LSTM(OfParts, nn.Module):
    """`nn.LSTM` of parts. Arguments, inputs and results: those of `nn.LSTM`, without projections.

    `dropout` is ignored, with a warning. `from_float` gives the layer with observers.

    >>> layer = jaxgrad.ao.nn.quantizable.LSTM(2, 3)
    >>> layer(jaxgrad.ones(4, 1, 2))[0].shape
    torch.Size([4, 1, 3])
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.training = bidirectional, False
        if dropout:
            warnings.warn(
                "dropout option for quantizable LSTM is ignored: train nn.LSTM and call prepare",
                stacklevel=users_stacklevel(),
            )
        width = hidden_size * (1 + bidirectional)
        self.layers = nn.ModuleList(
            _LSTMLayer(width if number else input_size, hidden_size, bias, bidirectional)
            for number in range(num_layers)
        )

    def _get_name(self):
        return "QuantizableLSTM"

    def forward(self, x, hidden=None):
        x = x.transpose(0, 1) if self.batch_first else x
        states = self._states(x, hidden)
        finals = []
        for layer, state in zip(self.layers, states, strict=True):
            x, final = layer(x, state)
            finals.append(final)
        h, c = (ops.stack(parts) for parts in zip(*finals, strict=True))
        state = tuple(part.reshape(-1, *part.shape[-2:]) for part in (h, c))
        return x.transpose(0, 1) if self.batch_first else x, state

    def _states(self, x, hidden):
        """The first state of every layer."""
        directions = (2,) if self.bidirectional else ()
        if hidden is None:
            start = _like(zeros(*directions, x.shape[1], self.hidden_size), x)
            return [(start, start)] * self.num_layers
        if not isinstance(hidden[0], Tensor):
            return hidden
        shape = (self.num_layers, *directions, x.shape[1], self.hidden_size)
        h, c = (part.reshape(shape) for part in hidden)
        return [(h[number], c[number]) for number in range(self.num_layers)]

    @classmethod
    def from_float(cls, other, qconfig=None):
        """The layer with the parameters of an `nn.LSTM` that has a `qconfig`, and observers."""
        _check(cls, other, qconfig)
        if other.proj_size:
            raise NotImplementedError("quantizable.LSTM: an LSTM with proj_size is not provided")
        names = ("num_layers", "bias", "batch_first", "dropout", "bidirectional")
        options = {name: getattr(other, name) for name in names}
        layer = cls(other.input_size, other.hidden_size, **options)
        layer.qconfig = getattr(other, "qconfig", qconfig)
        for number, part in enumerate(layer.layers):
            part.layer_fw.cell._with_parameters(other, f"_l{number}")
            if other.bidirectional:
                part.layer_bw.cell._with_parameters(other, f"_l{number}_reverse")
        return _observed(layer.train(other.training))

    @classmethod
    def from_observed(cls, other):
        raise NotImplementedError(
            "It looks like you are trying to convert a non-quantizable LSTM module: "
            "quantized.LSTM.from_observed does that"
        )


def _observed(layer):
    """A layer, with observers in its parts; in training its weights are rounded, too."""
    propagate_qconfig_(layer)
    if layer.training:
        convert_layers(layer, {nn.Linear: qat.Linear})
    add_observers(layer, {nn.Linear, QuantStub}, {qat.Linear}, {})
    return layer


def _check(cls, other, qconfig=None):
    if not isinstance(other, cls._FLOAT_MODULE):
        raise AssertionError(
            f"quantizable.{cls.__name__}.from_float works for nn.{cls.__name__}, not "
            f"{type(other).__name__}"
        )
    if not (hasattr(other, "qconfig") or qconfig):
        raise AssertionError("The float module must have 'qconfig'")


class MultiheadAttention(OfParts, nn.MultiheadAttention):
    """`nn.MultiheadAttention` of parts: products with weights can be quantized, attention computes
    with numbers. Arguments, inputs and results: those of `nn.MultiheadAttention`.

    Raises NotImplementedError for `add_bias_kv` and `add_zero_attn`.
    """

    _FLOAT_MODULE = nn.MultiheadAttention

    def __init__(self, embed_dim, num_heads, *arguments, **options):
        super().__init__(embed_dim, num_heads, *arguments, **options)
        if self.bias_k is not None or self.add_zero_attn:
            raise NotImplementedError(
                "quantizable.MultiheadAttention: add_bias_kv and add_zero_attn are not provided"
            )
        has_bias = self.in_proj_bias is not None
        self.linear_Q = nn.Linear(embed_dim, embed_dim, has_bias)
        self.linear_K = nn.Linear(self.kdim, embed_dim, has_bias)
        self.linear_V = nn.Linear(self.vdim, embed_dim, has_bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, has_bias)
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k = DeQuantStub(), DeQuantStub()
        self.dequant_v = DeQuantStub()

    def _get_name(self):
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other):
        """The layer with the parameters of an `nn.MultiheadAttention` that has a `qconfig`, and
        observers.
        """
        _check(cls, other)
        layer = cls(
            other.embed_dim,
            other.num_heads,
            dropout=other.dropout,
            bias=other.in_proj_bias is not None,
            add_bias_kv=other.bias_k is not None,
            add_zero_attn=other.add_zero_attn,
            kdim=other.kdim,
            vdim=other.vdim,
            batch_first=other.batch_first,
        )
        layer.qconfig = other.qconfig
        layer.out_proj.weight, layer.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        products = layer.linear_Q, layer.linear_K, layer.linear_V
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.detach().chunk(3)
        else:
            weights = (getattr(other, f"{name}_proj_weight").detach() for name in "qkv")
        for product, weight in zip(products, weights, strict=True):
            product.weight = nn.Parameter(weight)
        if other.in_proj_bias is not None:
            for product, bias in zip(products, other.in_proj_bias.detach().chunk(3), strict=True):
                product.bias = nn.Parameter(bias)
        return _observed(layer.eval())

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if is_causal and attn_mask is None:
            raise AssertionError("MultiheadAttention: is_causal needs an attn_mask")
        queries = self.q_scaling_product.mul_scalar(
            self.linear_Q(query), 1 / math.sqrt(self.head_dim)
        )
        parts = queries, self.linear_K(key), self.linear_V(value)
        leave = self.dequant_q, self.dequant_k, self.dequant_v
        q, k, v = (self._heads(leaving(part)) for leaving, part in zip(leave, parts, strict=True))
        scores = ops.matmul(q, k.transpose(-2, -1))
        weights = _masked(scores, attn_mask, key_padding_mask).softmax(-1)
        weights = nn.functional.dropout(weights, self.dropout, self.training)
        output = ops.matmul(weights, v).transpose(1, 2).flatten(2)
        output = output if self.batch_first else output.transpose(0, 1)
        output = self.out_proj(self.quant_attn_output(output.contiguous()))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return output, None
        return output, weights.mean(1) if average_attn_weights else weights

    def _heads(self, x):
        """Numbers as (batch, heads, steps, features of a head)."""
        x = x if self.batch_first else x.transpose(0, 1)
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)


def _masked(scores, attn_mask, key_padding_mask):
    """Scores (batch, heads, target, source) with both masks; booleans say what to leave out."""
    if attn_mask is not None and attn_mask.ndim == 3:
        attn_mask = attn_mask.unflatten(0, scores.shape[:2])
    if key_padding_mask is not None:
        key_padding_mask = key_padding_mask[:, None, None]
    for mask in (attn_mask, key_padding_mask):
        if mask is None:
            continue
        is_choice = mask.dtype is dtypes.bool
        scores = scores.masked_fill(mask, -math.inf) if is_choice else scores + mask
    return scores


__getattr__, __dir__ = names_of(__name__)
