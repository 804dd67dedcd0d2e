"""A sample with its values drawn: as an operator on tensors, and as a function from R^n to R^m.

The second has the parts of complex numbers as coordinates of their own. A gradient in PyTorch's
convention is then the transposed Jacobian times the output's gradient, and JAX differentiates the
function with the operator's own rules.
"""

import jax
import jax.numpy as jnp
import numpy

import jaxgrad
from jaxgrad.tape.tensor import wrap


def pack(arrays):
    """All numbers of some arrays as one real vector, of numpy for numpy's arrays."""
    xp = jnp if any(isinstance(array, jax.Array) for array in arrays) else numpy
    parts = []
    for array in arrays:
        is_complex = numpy.iscomplexobj(array)
        parts.extend(map(xp.ravel, [array.real, array.imag] if is_complex else [array]))
    return xp.concatenate(parts) if parts else numpy.zeros(0)


def unpack(vector, like):
    """The inverse of `pack` for arrays of the shapes and dtypes of those of `like`."""
    arrays, start = [], 0
    for template in like:
        count = int(numpy.prod(template.shape))
        numbers = vector[start : start + count].reshape(template.shape)
        start += count
        if numpy.iscomplexobj(template):
            imaginary = vector[start : start + count].reshape(template.shape)
            numbers, start = numbers + 1j * imaginary, start + count
        arrays.append(numbers)
    return arrays


def to_tensor(array, requires_grad=False):
    return jaxgrad.tensor(array, requires_grad=requires_grad)


def to_array(tensor):
    return numpy.asarray(tensor._array)


class Problem:
    """A sample over the "real" or "complex" numbers, with the values of a seed.

    `arrays` are the values as numpy's arrays, `constants` as JAX's, which are no part of a trace;
    `recorded`: PyTorch's answer for seed 0; which outputs have gradients depends on no seed.
    """

    def __init__(self, sample, field, recorded, seed=0):
        self.sample, self.field, self.recorded, self.seed = sample, field, recorded, seed
        self.arrays = sample.draw(field, seed)
        self.constants = [to_tensor(array)._array for array in self.arrays]
        self.moving = [i for i, flag in enumerate(sample.differentiated) if flag]
        outputs = recorded["outputs"]
        self.differentiable = [i for i, output in enumerate(outputs) if output["requires_grad"]]

    def with_seed(self, seed):
        return Problem(self.sample, self.field, self.recorded, seed)

    @property
    def varying(self):
        """Which arguments may be traced and batched."""
        integers = not self.sample.dynamic
        return [i for i, a in enumerate(self.arrays) if integers or a.dtype.kind in "fc"]

    def output_gradients(self):
        """A random gradient for each differentiable output."""
        outputs = [self.recorded["outputs"][i] for i in self.differentiable]
        return [
            self.sample.direction(f"output {i} {self.seed}", output["shape"], output["dtype"])
            for i, output in enumerate(outputs)
        ]

    # on tensors

    def tensors(self, arrays=None):
        arrays = self.arrays if arrays is None else arrays
        return [to_tensor(array, i in self.moving) for i, array in enumerate(arrays)]

    def outputs(self, tensors):
        """The operator's outputs, as a list."""
        result = self.sample.call(jaxgrad, tensors)
        return [result] if isinstance(result, jaxgrad.Tensor) else list(result)

    def gradients(self, tensors, outputs, output_gradients, **options):
        """Gradients by the tape, one tensor for each moving input; zeros for an unused one."""
        results = [outputs[i] for i in self.differentiable]
        wanted = [tensors[i] for i in self.moving]
        options |= {"materialize_grads": True}
        return jaxgrad.autograd.grad(results, wanted, output_gradients, **options)

    def on_tape(self, tensors=None, output_gradients=None):
        """Outputs and gradients."""
        tensors = self.tensors() if tensors is None else tensors
        outputs = self.outputs(tensors)
        if not (self.moving and self.differentiable):
            return outputs, ()
        if output_gradients is None:
            output_gradients = list(map(to_tensor, self.output_gradients()))
        return outputs, self.gradients(tensors, outputs, output_gradients)

    # from R^n to R^m

    @property
    def point(self):
        return pack([self.arrays[i] for i in self.moving])

    @property
    def parts(self):
        """The coordinates of each moving input."""
        sizes = [pack([self.arrays[i]]).size for i in self.moving]
        ends = [int(end) for end in numpy.cumsum(sizes)]
        return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def all_outputs(self, *arrays):
        """The operator as a function from JAX arrays to JAX arrays."""
        return [output._array for output in self.outputs(list(map(wrap, arrays)))]

    def function(self, vector, arrays=None):
        """The differentiable outputs; of `arrays`, those that move are taken from `vector`."""
        arrays = list(self.constants if arrays is None else arrays)
        moved = unpack(vector, [self.arrays[i] for i in self.moving])
        for position, array in zip(self.moving, moved, strict=True):
            arrays[position] = array
        outputs = self.all_outputs(*arrays)
        return pack([outputs[i] for i in self.differentiable])

    def directions(self, count):
        """Random ones of the inputs, and of the outputs: first `output_gradients`."""
        first = pack(self.output_gradients())
        inputs = self.sample.direction("inputs", [count, self.point.size], "float64")
        outputs = self.sample.direction("outputs", [count - 1, first.size], "float64")
        return inputs, numpy.concatenate([first[None], outputs])
