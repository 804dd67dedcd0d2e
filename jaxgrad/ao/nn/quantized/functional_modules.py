"""Operators of two tensors as modules, so that an observer can record their results."""

from __future__ import annotations

from .... import ops
from ....functions import quantized_kernels as kernels
from ....names.not_provided import names_of
from ....nn.linear import Identity
from ....nn.module import Module
from .quantize import QuantizedLayer, output_parameters


def _no_forward(self):
    return RuntimeError(
        f"{type(self).__name__} is not intended to use the 'forward'. Please use the corresponding "
        "operation: add, mul, cat and others"
    )


class FloatFunctional(Module):
    """Operators on numbers, whose results pass through `activation_post_process`.

    >>> jaxgrad.ao.nn.quantized.FloatFunctional().add(jaxgrad.ones(1), jaxgrad.ones(1))
    tensor([2.])
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        raise _no_forward(self)

    def add(self, x, y):
        return self.activation_post_process(ops.add(x, y))

    def add_scalar(self, x, y):
        return ops.add(x, y)  # the range of the result follows from that of x

    def mul(self, x, y):
        return self.activation_post_process(ops.mul(x, y))

    def mul_scalar(self, x, y):
        return ops.mul(x, y)

    def cat(self, x, dim=0):
        return self.activation_post_process(ops.cat(x, dim))

    def add_relu(self, x, y):
        return self.activation_post_process(ops.add(x, y).relu())

    def matmul(self, x, y):
        return self.activation_post_process(ops.matmul(x, y))


class FXFloatFunctional(Module):
    """Operators on numbers."""

    def forward(self, x):
        raise _no_forward(self)

    add = add_scalar = lambda self, x, y: ops.add(x, y)
    mul = mul_scalar = lambda self, x, y: ops.mul(x, y)
    cat = lambda self, x, dim=0: ops.cat(x, dim)  # noqa: E731
    add_relu = lambda self, x, y: ops.add(x, y).relu()  # noqa: E731
    matmul = lambda self, x, y: ops.matmul(x, y)  # noqa: E731


class QFunctional(QuantizedLayer):
    """Operators on quantized tensors; `scale` and `zero_point` are those of the results."""

    def __init__(self):
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = Identity()

    def _get_name(self):
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x):
        raise _no_forward(self)

    def add(self, x, y):
        return self.activation_post_process(kernels.add(x, y, self.scale, self.zero_point))

    def add_scalar(self, x, y):
        return kernels.add_scalar(x, y)

    def mul(self, x, y):
        return self.activation_post_process(kernels.mul(x, y, self.scale, self.zero_point))

    def mul_scalar(self, x, y):
        return kernels.mul_scalar(x, y)

    def cat(self, x, dim=0):
        return self.activation_post_process(kernels.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x, y):
        return self.activation_post_process(kernels.add_relu(x, y, self.scale, self.zero_point))

    def matmul(self, x, y):
        return kernels.matmul(x, y, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The operators for the range that the observer of a `FloatFunctional` has recorded."""
        layer = cls()
        layer.scale, layer.zero_point = output_parameters(mod)
        return layer


__getattr__, __dir__ = names_of(__name__)
