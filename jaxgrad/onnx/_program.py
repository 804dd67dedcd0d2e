"""`torch.onnx.ONNXProgram`: a model in ONNX, which runs by onnxruntime and is saved in files."""

from __future__ import annotations

import os

import numpy as np

from ..frontend.tensor_data import from_numpy
from ..tape import pytree
from ..tape.pytree import is_tensor
from ._conversion import imported, optimize, packages

_NO_LOG = 4
_LARGEST_FILE = 2**31  # bytes; of protocol buffers


class ONNXProgram:
    """A model in ONNX, which `torch.onnx.export` makes.

    model: an `onnx_ir.Model`; input_names, output_names: in the order of the arguments and results.

    >>> jaxgrad.onnx.ONNXProgram.save.__name__
    'save'
    """

    def __init__(self, model):
        self.model = model
        self._session = None

    def __repr__(self):
        names = ", ".join(self.input_names)
        count = sum(1 for _ in self.model.graph)
        return f"ONNXProgram(inputs=[{names}], outputs={self.output_names}, nodes={count})"

    @property
    def model_proto(self):
        """The model as an `onnx.ModelProto`."""
        return packages()[1].to_proto(self.model)

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return [value.name for value in self.model.graph.inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return [value.name for value in self.model.graph.outputs]

    def save(
        self,
        destination: str | os.PathLike,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file.

        include_initializers: False leaves out the parameters, which become inputs;
        keep_initializers_as_inputs: they are inputs with a default; external_data: True writes the
        parameters to a second file, named `destination` with `.data`; None does so for 2 GB.
        """
        ir = packages()[1]
        model = self.model
        if keep_initializers_as_inputs or not include_initializers:
            model = model.clone()
            model.graph.inputs.extend(model.graph.initializers.values())
        if not include_initializers:
            model.graph.initializers.clear()
        size = sum(value.const_value.nbytes for value in model.graph.initializers.values())
        if external_data or (external_data is None and size >= _LARGEST_FILE):
            name = f"{os.path.basename(os.fspath(destination))}.data"
            ir.save(model, destination, external_data=name)
        else:
            ir.save(model, destination)

    def initialize_inference_session(self, initializer=None) -> None:
        """Load the model into onnxruntime.

        initializer: a function from the bytes of the model to an `onnxruntime.InferenceSession`.
        """
        self._session = (initializer or _session)(self.model_proto.SerializeToString())

    def release(self) -> None:
        """Release the session of onnxruntime."""
        self._session = None

    def __call__(self, *args, **kwargs):
        """The outputs for these arguments, computed by onnxruntime: a sequence of tensors."""
        tensors = filter(is_tensor, pytree.flatten((args, kwargs))[0])
        return [from_numpy(array) for array in self.run(map(np.asarray, tensors))]

    def run(self, arrays) -> list[np.ndarray]:
        """The outputs for arrays of NumPy, in the order of the inputs."""
        if self._session is None:
            self.initialize_inference_session()
        feed = dict(zip(self.input_names, arrays, strict=True))
        return self._session.run(None, feed)

    def apply_weights(self, state_dict) -> None:
        """Replace parameters and buffers by tensors of the same names, also in a running session.

        Raises KeyError for a name that the model has not, ValueError for another shape.
        """
        ir = packages()[1]
        initializers = self.model.graph.initializers
        for name, tensor in state_dict.items():
            if list(initializers[name].shape) != list(tensor.shape):
                shape = list(initializers[name].shape)
                raise ValueError(f"{name}: shape {list(tensor.shape)}, but the model has {shape}")
        for name, tensor in state_dict.items():
            dtype = initializers[name].dtype.numpy()
            array = np.asarray(tensor.detach(), dtype)
            initializers[name].const_value = ir.tensor(array, name=name)
        self.release()

    def optimize(self) -> None:
        """Remove what is computed twice or not used; parameters stay. `export` has done so."""
        optimize(self.model)


def _session(data: bytes):
    onnxruntime = imported("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _NO_LOG  # it raises what it logs as an error
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
