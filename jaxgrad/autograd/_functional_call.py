"""A call of the user's function, for `functional`: what goes in and what comes out, checked."""

from __future__ import annotations

from .. import autograd, ops
from ..tape.dual import apart
from ..tape.mode import transforms
from ..tape.tensor import Tensor, is_concrete
from . import _jacobian_blocks
from ._inspect.dependence import depends
from ._jacobian_blocks import zeros_like

RESULT = "outputs of the user-provided function"
OUTPUT = "The output of the user-provided function"
JACOBIAN = "The jacobian of the user-provided function"
IN_A_TRANSFORM = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using "
    "torch.autograd.functional.* APIs) inside of a function being transformed: {} would lose the "
    "gradient that is asked for"
)
NOT_STRICT = "This is not allowed in strict mode"


class Call:
    """A call of the user's function: what it is given, what it returned, what it may not be."""

    def __init__(self, name, inputs, create_graph, strict):
        self.name, self.create_graph, self.strict = name, create_graph, strict
        self.several_inputs, given = tuple_of(inputs, "inputs", name)
        if transforms.get() and not create_graph and any(each.requires_grad for each in given):
            cure = f"{name} without create_graph=True"
            raise RuntimeError(IN_A_TRANSFORM.format(cure))
        self.inputs = [_own(each, create_graph) for each in given]
        self.weights = ()

    def run(self, func):
        self.several_outputs, self.outputs = tuple_of(func(*self.inputs), RESULT, self.name)
        if self.strict:
            need_graph(self.outputs)

    def vector_for_inputs(self, v):
        """The user's vector, which a function applies to the inputs; ones for None."""
        if v is None:
            need_one_element(self.inputs, "input to the user-provided function is")
        return self.vector(v, self.inputs, self.several_inputs)

    def vector_for_outputs(self, v):
        if v is None:
            need_one_element(self.outputs, "user-provided function returns")
        return self.vector(v, self.outputs, self.several_outputs)

    def vector(self, v, like, several):
        if v is None:
            return [None]
        entries = tuple_of(v, "v", self.name)[1]
        if len(entries) != len(like):
            wanted = f"v is a tuple of invalid length: should be {len(like)} but got {len(entries)}"
            alone = len(like) == 1 and not several
            raise RuntimeError("The given v should contain a single Tensor." if alone else wanted)
        for position, (entry, each) in enumerate(zip(entries, like, strict=True)):
            if entry.shape != each.shape:
                raise RuntimeError(
                    f"{f'Entry {position} in ' if several else ''}v has invalid size: should be "
                    f"{each.shape} but got {entry.shape}."
                )
        return [each if self.create_graph else apart(each) for each in entries]

    def gradient(self, func):
        """The gradient, recorded, of a function that must return one element."""
        self.run(func)
        output = single(self.several_outputs, self.outputs, self.name)
        found = gradients([output.reshape(())], self.inputs, [None], True)
        self.need(found, OUTPUT)
        if self.strict:
            need_second_order(found)
        pairs = zip(found, self.inputs, strict=True)
        return [zeros_like(other) if each is None else each for each, other in pairs]

    def transposed(self, outputs, inputs, subject):
        """The map from weights of the outputs to gradients of the inputs, as tensors of both. What
        it gives is linear in the weights: its derivative with respect to them is the map itself.
        """
        self.weights = [zeros_like(each).requires_grad_() for each in outputs]
        back = gradients(outputs, inputs, self.weights, True)
        self.need(back, subject)
        if any(each is not None and not each.requires_grad for each in back):
            self.refuse_detached(outputs, inputs, back)
        return self.weights, back

    def refuse_detached(self, outputs, inputs, back):
        """Refuse gradients that do not follow their weights, unless zero for others too."""
        ones = [zeros_like(each) + 1 for each in outputs]
        found = gradients(outputs, inputs, ones, False, True)
        for position, (each, other) in enumerate(zip(back, found, strict=True)):
            if each is None or each.requires_grad:
                continue
            if self.strict:
                raise RuntimeError(
                    f"The gradient with respect to input {position} is independent of the inputs "
                    f"of the user-provided function. {NOT_STRICT}."
                )
            if not is_concrete(other) or other.ne(0).any().item():
                raise RuntimeError(
                    f"{self.name}: the gradient with respect to input {position} was not recorded: "
                    "a backward of the user-provided function detaches what it returns. It cannot "
                    "be differentiated; with a jvp, autograd.forward_ad can."
                )

    def rows(self, position):
        """The rows of the Jacobian of an output, each by a backward pass."""
        output = self.outputs[position]
        if output.dtype.is_complex:
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{output.dtype}: output {position} of the function. Use `vectorize=True`, for the "
                "gradients of the real part, or torch.view_as_real in the function."
            )
        for index in range(output.numel() if output.requires_grad else 0):
            one = _jacobian_blocks.one_hot(output, index)
            found = gradients([output], self.inputs, [one], self.create_graph, True)
            self.need(found, f"Output {position} of the user-provided function")
            self.need_graph(found, "The jacobian")
            yield found

    def need(self, found, subject):
        """Refuse, where strict, an input that has no derivative."""
        for position, each in enumerate(found):
            if self.strict and each is None:
                raise RuntimeError(f"{subject} is independent of input {position}. {NOT_STRICT}.")

    def need_graph(self, found, subject):
        """Refuse, where strict, a derivative to be differentiated that is constant."""
        for position, each in enumerate(found):
            if self.strict and self.create_graph and not depends(each, self.weights):
                raise RuntimeError(
                    f"{subject} of the user-provided function is independent of input {position}. "
                    f"{NOT_STRICT} when create_graph=True."
                )

    def result(self, found, like, several):
        """The outputs, and what was found, with zeros of the shape of `like` for None."""
        pairs = zip(found, like, strict=True)
        found = [zeros_like(other) if each is None else each for each, other in pairs]
        return self.nested(self.outputs, self.several_outputs), self.nested(found, several)

    def nested(self, tensors, several):
        """Tensors as the user is given them."""
        given = tensors if self.create_graph else [apart(each, True) for each in tensors]
        return tuple(given) if several else given[0]


def tuple_of(value, what, name):
    """Whether it is a tuple, and a tuple of the tensors."""
    several = isinstance(value, tuple)
    wrong = f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the"
    if not several and not isinstance(value, Tensor):
        raise TypeError(f"{wrong} given {what} has type {type(value)}.")
    for position, each in enumerate(value if several else ()):
        if not isinstance(each, Tensor):
            raise TypeError(f"{wrong} value at index {position} has type {type(each)}.")
    return several, value if several else (value,)


def _own(tensor, create_graph):
    """A tensor to call the user's function with: in the graph of the one given, where that is to be
    differentiated, else a leaf.
    """
    if create_graph and tensor.requires_grad:
        return ops.alias(tensor)
    return apart(tensor).requires_grad_()


def gradients(outputs, inputs, vectors, create_graph, retain_graph=None):
    """The gradients, None where nothing depends on an input."""
    pairs = [
        pair
        for pair in zip(outputs, vectors, strict=True)
        if pair[0] is not None and pair[0].requires_grad
    ]
    if not pairs:
        return [None] * len(inputs)
    outputs, vectors = zip(*pairs, strict=True)
    return autograd.grad(outputs, inputs, vectors, retain_graph, create_graph, allow_unused=True)


def single(several, outputs, name):
    """The tensor of one element that a function of `name` must return."""
    if several:
        raise RuntimeError(
            f"The function given to {name} should return a single Tensor, not a tuple of "
            f"{len(outputs)}"
        )
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element, "
            f"but its shape is {list(outputs[0].shape)}: reduce it with sum() or mean()"
        )
    return outputs[0]


def need_one_element(tensors, where):
    if len(tensors) != 1 or tensors[0].numel() != 1:
        shapes = ", ".join(str(list(each.shape)) for each in tensors)
        raise RuntimeError(
            f"The vector v can only be None if the {where} a single Tensor with a single element, "
            f"not of shape {shapes}."
        )


def need_graph(outputs):
    for position, output in enumerate(outputs):
        if not output.requires_grad:
            raise RuntimeError(
                f"Output {position} of the user-provided function does not require gradients. The "
                "outputs must be computed in a differentiable manner from the input when running "
                "in strict mode."
            )


def need_second_order(gradient):
    for position, each in enumerate(gradient):
        if not depends(each):
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided "
                f"function with respect to input {position} is independent of the input. "
                f"{NOT_STRICT}: it is for functions whose gradient depends on every input, not for "
                "linear ones."
            )
