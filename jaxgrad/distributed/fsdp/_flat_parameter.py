"""The parameters of a unit as one vector, which programs ask of `FullyShardedDataParallel`."""

from __future__ import annotations

from ... import ops
from ...autograd.grad_mode import no_grad
from ...names.missing import missing_in
from ...nn.module import Module
from ...tape.tensor import Tensor
from ..tensor._redistribute import redistributed


class FlatParameter:
    """The part of PyTorch's flat parameter that programs read and change. A unit has no such
    tensor: this object stands for its parameters, one after the other.

    module: the unit, whose names `_fqns` has; sharded: its parameters.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> flat = FullyShardedDataParallel(jaxgrad.nn.Linear(2, 4), device_mesh=mesh)._flat_param
    >>> flat.dtype, flat.data.shape, flat._fqns
    (torch.float32, torch.Size([12]), ('weight', 'bias'))
    """

    def __init__(self, module: Module, sharded: list):
        paths = {id(inner): path for path, inner in module.named_modules()}
        self._sharded, names = {}, {}
        for slot in sharded:
            slot.follow()
            path = f"{paths[id(slot.owner)]}.{slot.name}"
            self._sharded.setdefault(id(slot.parameter), slot)
            names.setdefault(id(slot.parameter), path.removeprefix("."))
        self._fqns = (*names.values(),)

    def _common(self, name: str):
        """The value that all parameters have under a name. Raises ValueError if they differ."""
        values = {getattr(slot.parameter, name) for slot in self._sharded.values()}
        if len(values) > 1:
            raise ValueError(f"Must flatten tensors with uniform {name} but got {values}")
        return values.pop()

    @property
    def dtype(self):
        """The dtype of all parameters."""
        return self._common("dtype")

    @property
    def device(self):
        """The device of all parameters."""
        return self._common("device")

    @property
    def requires_grad(self) -> bool:
        """Whether any parameter requires a gradient."""
        return any(slot.parameter.requires_grad for slot in self._sharded.values())

    @property
    @no_grad()
    def data(self) -> Tensor:
        """All numbers in a vector; an assignment sets the parameters, and their dtype."""
        return ops.cat([slot.parameter.detach().reshape(-1) for slot in self._sharded.values()])

    @data.setter
    @no_grad()
    def data(self, vector: Tensor):
        sizes = [slot.parameter.numel() for slot in self._sharded.values()]
        pieces = vector.detach().split(sizes)
        for slot, piece in zip(self._sharded.values(), pieces, strict=True):
            piece = piece.reshape(slot.parameter.shape)
            slot.parameter.data = redistributed(piece, slot.sharding, slot.sharding)


class FlatParamHandle:
    """The part of the handle of a flat parameter that programs read."""

    def __init__(self, flat_param: FlatParameter):
        self.flat_param = flat_param

    @property
    def _orig_param_dtype(self):
        """The dtype of the parameters, which an assignment may repeat and not change."""
        return self.flat_param.dtype

    @_orig_param_dtype.setter
    def _orig_param_dtype(self, dtype):
        if dtype != self.flat_param.dtype:
            raise NotImplementedError(
                f"_handle._orig_param_dtype = {dtype}: the parameters are {self.flat_param.dtype}, "
                "and jaxgrad keeps no other dtype of them: set _flat_param.data before"
            )


__getattr__ = missing_in(__name__)
