"""Jacobians, Hessians, and their products with vectors, as torch.autograd.functional.

In all functions `inputs` is a tensor or a tuple of tensors of any shape, and `func` returns a
tensor or a tuple of tensors; results are nested in the same way. Another object raises TypeError.
`func` runs under `enable_grad`, in inference mode too, on new tensors, so no `.grad` changes. If an
output does not depend on an input, the result is zero, or with `strict` a RuntimeError. Results are
detached; with `create_graph` they can be differentiated, with respect to the inputs too.

For complex tensors reverse mode gives PyTorch's gradients, which for a holomorphic function are the
conjugate of the derivative; forward mode gives the derivative.
"""

from __future__ import annotations

import functools

from .. import autograd, ops
from ..core.tracebacks import shows_users_frames
from ..names.missing import missing_in
from ..tape import interception
from ..tape.dual import apart
from ..tape.mode import IN_A_TRANSFORM, recording, transforms
from ..tape.tensor import Tensor, is_concrete
from . import _jacobian_blocks
from ._inspect.dependence import depends
from ._jacobian_blocks import zeros_like

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]

FORWARD, REVERSE = "forward-mode", "reverse-mode"
RESULT = "outputs of the user-provided function"
OUTPUT = "The output of the user-provided function"
JACOBIAN = "The jacobian of the user-provided function"
NOT_STRICT = "This is not allowed in strict mode"


@shows_users_frames
def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The outputs of `func`, and the product of a vector with its Jacobian, v^T J.

    func: returns a tensor or a tuple of tensors, of any shape.
    inputs: a tensor or a tuple of tensors, of any shape.
    v: a tensor for each output, of its shape and dtype; may be None for a single output of one
        element.
    create_graph: make the results differentiable.
    strict: raise RuntimeError if an output does not depend on an input.

    Returns `(outputs, product)`, the product with a tensor for each input. Raises RuntimeError for
    a `v` of another size.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.autograd.functional.vjp(lambda x: x * x, x, jaxgrad.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    return _called(_vjp, func, create_graph, strict, inputs, v)


def _vjp(func, create_graph, strict, inputs, v):
    with recording():
        call = _Evaluation("vjp", inputs, create_graph, strict)
        call.run(func)
        vector = call.vector_for_outputs(v)
        products = _gradients(call.outputs, call.inputs, vector, create_graph)
        call.need(products, OUTPUT)
        call.need_graph(products, "The jacobian")
        return call.result(products, call.inputs, call.several_inputs)


@shows_users_frames
def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The outputs of `func`, and the product of its Jacobian with a vector, J v.

    The product is the derivative of u^T J with respect to u, where u has the shape of the outputs
    (the "double backward trick"). So `func` needs no forward mode, but its backward must be
    differentiable. `forward_ad` takes less work if all operators support it.

    func: returns a tensor or a tuple of tensors, of any shape.
    inputs: a tensor or a tuple of tensors, of any shape.
    v: a tensor for each input, of its shape and dtype; may be None for a single input of one
        element.
    create_graph: make the results differentiable.
    strict: raise RuntimeError if an output does not depend on an input.

    Returns `(outputs, product)`, the product with a tensor for each output. Raises RuntimeError for
    a `v` of another size.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.autograd.functional.jvp(lambda x: x * x, x, jaxgrad.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    return _called(_jvp, func, create_graph, strict, inputs, v)


def _jvp(func, create_graph, strict, inputs, v):
    with recording():
        call = _Evaluation("jvp", inputs, create_graph, strict)
        vector = call.vector_for_inputs(v)
        call.run(func)
        weights, back = call.transposed(call.outputs, call.inputs, OUTPUT)
        products = _gradients(back, weights, vector, create_graph)
        call.need_graph(products, "The jacobian")
        return call.result(products, weights, call.several_outputs)


@shows_users_frames
def vhp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of `func`, and the product of a vector with its Hessian, v^T H.

    func: returns a tensor of one element.
    inputs: a tensor or a tuple of tensors, of any shape.
    v: a tensor for each input, of its shape and dtype; may be None for a single input of one
        element.
    create_graph: make the results differentiable.
    strict: raise RuntimeError if the output or the gradient does not depend on an input.

    Returns `(value, product)`, the product with a tensor for each input. Raises RuntimeError for a
    `v` of another size.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.autograd.functional.vhp(lambda x: (x**3).sum(), x, jaxgrad.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _called(_vhp, func, create_graph, strict, inputs, v)


def _vhp(func, create_graph, strict, inputs, v):
    with recording():
        call = _Evaluation("vhp", inputs, create_graph, strict)
        vector = call.vector_for_inputs(v)
        products = _gradients(call.gradient(func), call.inputs, vector, create_graph)
        return _second_order(call, products)


@shows_users_frames
def hvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of `func`, and the product of its Hessian with a vector, H v.

    If the second derivatives are continuous, the Hessian is symmetric, and `vhp` gives the same in
    less time. Arguments, results and errors are those of `vhp`.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.autograd.functional.hvp(lambda x: (x**3).sum(), x, jaxgrad.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _called(_hvp, func, create_graph, strict, inputs, v)


def _hvp(func, create_graph, strict, inputs, v):
    with recording():
        call = _Evaluation("hvp", inputs, create_graph, strict)
        vector = call.vector_for_inputs(v)
        weights, back = call.transposed(call.gradient(func), call.inputs, JACOBIAN)
        products = _gradients(back, weights, vector, create_graph)
        return _second_order(call, products)


def _second_order(call, products):
    call.need(products, JACOBIAN)
    call.need_graph(products, "The hessian")
    return call.result(products, call.inputs, call.several_inputs)


@shows_users_frames
def jacobian(
    func,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = REVERSE,
):
    """The Jacobian of `func`.

    Each block has the shape of an output followed by that of an input. Reverse mode runs a backward
    pass for each element of the outputs, or with `vectorize` one pass under `jax.vmap`. Forward
    mode calls `func` once, with a batch of tangents.

    func: returns a tensor or a tuple of tensors, of any shape.
    inputs: a tensor or a tuple of tensors, of any shape.
    create_graph: make the result differentiable.
    strict: raise RuntimeError if an output does not depend on an input.
    vectorize: compute all rows, or columns, at once.
    strategy: "reverse-mode" or "forward-mode".

    Returns a tensor if there is one output and one input, both not in tuples, else a tuple, or a
    tuple of tuples with one for each output. Raises AssertionError for another `strategy`;
    NotImplementedError for forward mode without `vectorize` or with `create_graph`; RuntimeError
    for `strict` with forward mode or with `vectorize`.

    >>> jaxgrad.autograd.functional.jacobian(lambda x: x * x, jaxgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy(strategy)
    if strategy == FORWARD:
        _check_forward(create_graph, strict, vectorize)
        return _called(_by_columns, func, create_graph, strict, inputs)
    if strict and vectorize:
        raise RuntimeError(
            "jacobian: `strict=True` and `vectorized=True` are not supported together: a batched "
            "pass cannot tell which outputs depend on which inputs. Set `vectorize=False`."
        )
    rows = _by_one_pass if vectorize else _by_rows
    return _called(rows, func, create_graph, strict, inputs)


def _by_one_pass(func, create_graph, strict, inputs):
    with recording():
        call = _Evaluation("jacobian", inputs, create_graph, strict)
        call.run(func)
        return call.jacobian(_jacobian_blocks.by_one_pass(call.outputs, call.inputs, create_graph))


def _by_rows(func, create_graph, strict, inputs):
    with recording():
        call = _Evaluation("jacobian", inputs, create_graph, strict)
        call.run(func)
        interception.passes(sum(output.numel() for output in call.outputs))
        blocks = [
            _jacobian_blocks.of_rows(output, call.inputs, call.rows(position))
            for position, output in enumerate(call.outputs)
        ]
        return call.jacobian(blocks)


@shows_users_frames
def hessian(
    func,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = REVERSE,
):
    """The Hessian of `func`.

    Each block has the shape of one input followed by that of another. It is the Jacobian of the
    gradient; the gradient is computed in reverse mode.

    func: returns a tensor of one element.
    inputs: a tensor or a tuple of tensors, of any shape.
    create_graph, strict, vectorize: as for `jacobian`.
    outer_jacobian_strategy: the `strategy` for the Jacobian of the gradient.

    Raises what `jacobian` raises, and RuntimeError if `func` returns more than one element.

    >>> jaxgrad.autograd.functional.hessian(lambda x: (x**3).sum(), jaxgrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _check_strategy(outer_jacobian_strategy)
    several, _ = _tuple_of(inputs, "inputs", "hessian")

    def value(*tensors):
        output = _single(*_tuple_of(func(*tensors), RESULT, "hessian"), "hessian")
        if strict:
            _need_graph([output])
        return output.reshape(())

    def gradient(*tensors):
        if outer_jacobian_strategy == FORWARD:
            tensors = tuple([tensor.requires_grad_() for tensor in tensors])
        gradients = jacobian(value, tensors, create_graph=True)
        if strict:
            _need_second_order(gradients)
        return gradients if several else gradients[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def _by_columns(func, create_graph, strict, inputs):
    several_inputs, entries = _tuple_of(inputs, "inputs", "jacobian")
    several_outputs = False

    def outputs_of(*duals):
        nonlocal several_outputs
        several_outputs, outputs = _tuple_of(func(*duals), RESULT, "jacobian")
        return outputs

    with recording():
        blocks = _jacobian_blocks.by_forward_mode(outputs_of, [apart(entry) for entry in entries])
    rows = [tuple(row) if several_inputs else row[0] for row in blocks]
    return tuple(rows) if several_outputs else rows[0]


def _construct_standard_basis_for(tensors, tensor_numels) -> tuple[Tensor, ...]:
    """The basis vectors of the product of the spaces of some tensors without dimensions or with
    one, as a matrix for each tensor, with as many rows as there are vectors.

    tensor_numels: the number of elements of each tensor.

    >>> from jaxgrad.autograd.functional import _construct_standard_basis_for
    >>> _construct_standard_basis_for((jaxgrad.ones(1), jaxgrad.ones(1)), (1, 1))
    (tensor([[1.],
            [0.]]), tensor([[0.],
            [1.]]))
    """
    columns = zip(_jacobian_blocks.basis(tensors), tensor_numels, strict=True)
    return tuple([column.reshape(-1, count) for column, count in columns])


def _check_strategy(strategy):
    if strategy not in (FORWARD, REVERSE):
        raise AssertionError(
            f'Expected strategy to be either "{FORWARD}" or "{REVERSE}", but got {strategy!r}. '
            "Forward mode costs a call for each element of the inputs, reverse mode a pass for "
            "each element of the outputs."
        )


def _check_forward(create_graph, strict, vectorize):
    if create_graph:
        raise NotImplementedError(
            'jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together. Set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            'jacobian: `strict=True` and `strategy="forward-mode"` are not supported together. '
            'Set `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )


# the call of `func`: its arguments, its outputs, and what they must be


def _called(evaluate, func, create_graph, strict, *tensors):
    """The result of `evaluate` for these arguments, compiled once there were many such calls."""
    call = functools.partial(evaluate, func, create_graph, strict)
    return call(*tensors) if create_graph else interception.repeated(call, tensors)


class _Evaluation:
    """A call of `func`, with checks of its arguments and results."""

    def __init__(self, name, inputs, create_graph, strict):
        self.name, self.create_graph, self.strict = name, create_graph, strict
        self.several_inputs, entries = _tuple_of(inputs, "inputs", name)
        if transforms.get() and not create_graph and any(entry.requires_grad for entry in entries):
            cure = f"{name} without create_graph=True"
            raise RuntimeError(IN_A_TRANSFORM.format(cure))
        self.inputs = [_differentiated_input(entry, create_graph) for entry in entries]
        self.weights = ()

    def run(self, func):
        """Call `func`."""
        self.several_outputs, self.outputs = _tuple_of(func(*self.inputs), RESULT, self.name)
        if self.strict:
            _need_graph(self.outputs)

    def vector_for_inputs(self, v):
        """The user's `v` for the inputs; `[None]`, which stands for ones, if `v` is None."""
        if v is None:
            _need_one_element(self.inputs, "input to the user-provided function is")
        return self.vector(v, self.inputs, self.several_inputs)

    def vector_for_outputs(self, v):
        """The user's `v` for the outputs; `[None]`, which stands for ones, if `v` is None."""
        if v is None:
            _need_one_element(self.outputs, "user-provided function returns")
        return self.vector(v, self.outputs, self.several_outputs)

    def vector(self, v, like, several):
        if v is None:
            return [None]
        entries = _tuple_of(v, "v", self.name)[1]
        if len(entries) != len(like):
            wanted = f"v is a tuple of invalid length: should be {len(like)} but got {len(entries)}"
            alone = len(like) == 1 and not several
            raise RuntimeError("The given v should contain a single Tensor." if alone else wanted)
        for position, (entry, tensor) in enumerate(zip(entries, like, strict=True)):
            if entry.shape != tensor.shape:
                raise RuntimeError(
                    f"{f'Entry {position} in ' if several else ''}v has invalid size: should be "
                    f"{tensor.shape} but got {entry.shape}."
                )
        return [entry if self.create_graph else apart(entry) for entry in entries]

    def gradient(self, func):
        """The recorded gradient of a function of one element."""
        self.run(func)
        output = _single(self.several_outputs, self.outputs, self.name)
        gradients = _gradients([output.reshape(())], self.inputs, [None], True)
        self.need(gradients, OUTPUT)
        if self.strict:
            _need_second_order(gradients)
        pairs = zip(gradients, self.inputs, strict=True)
        return [zeros_like(other) if gradient is None else gradient for gradient, other in pairs]

    def transposed(self, outputs, inputs, subject):
        """Weights of the outputs, and the gradients of the inputs as a recorded function of them.

        The gradients are linear in the weights, so their derivative with respect to the weights is
        the Jacobian.
        """
        self.weights = [zeros_like(output).requires_grad_() for output in outputs]
        back = _gradients(outputs, inputs, self.weights, True)
        self.need(back, subject)
        if any(gradient is not None and not gradient.requires_grad for gradient in back):
            self.refuse_detached(outputs, inputs, back)
        return self.weights, back

    def refuse_detached(self, outputs, inputs, back):
        """Raise RuntimeError for gradients that ignore the weights, unless they are zero."""
        ones = [zeros_like(output) + 1 for output in outputs]
        others = _gradients(outputs, inputs, ones, False, True)
        for position, (gradient, other) in enumerate(zip(back, others, strict=True)):
            if gradient is None or gradient.requires_grad:
                continue
            if self.strict:
                raise RuntimeError(
                    f"The gradient with respect to input {position} is independent of the inputs "
                    f"of the user-provided function. {NOT_STRICT}."
                )
            if not is_concrete(other) or other.ne(0).any().item():
                raise RuntimeError(
                    f"{self.name}: the gradient with respect to input {position} was not recorded: "
                    "a backward in the user-provided function detaches its results. If the "
                    "function has a jvp, use autograd.forward_ad."
                )

    def rows(self, position):
        """Yield the rows of the Jacobian of an output, each from a backward pass."""
        output = self.outputs[position]
        if output.dtype.is_complex:
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{output.dtype}: output {position} of the function. Use `vectorize=True`, for the "
                "gradients of the real part, or torch.view_as_real in the function."
            )
        for index in range(output.numel() if output.requires_grad else 0):
            one = _jacobian_blocks.one_hot(output, index)
            row = _gradients([output], self.inputs, [one], self.create_graph, True)
            self.need(row, f"Output {position} of the user-provided function")
            self.need_graph(row, "The jacobian")
            yield row

    def need(self, derivatives, subject):
        """With `strict`, raise RuntimeError for an input without derivative."""
        for position, derivative in enumerate(derivatives):
            if self.strict and derivative is None:
                raise RuntimeError(f"{subject} is independent of input {position}. {NOT_STRICT}.")

    def need_graph(self, derivatives, subject):
        """With `strict` and `create_graph`, raise RuntimeError for a constant derivative."""
        for position, derivative in enumerate(derivatives):
            if self.strict and self.create_graph and not depends(derivative, self.weights):
                raise RuntimeError(
                    f"{subject} of the user-provided function is independent of input {position}. "
                    f"{NOT_STRICT} when create_graph=True."
                )

    def result(self, derivatives, like, several):
        """The outputs and the derivatives as the user gets them, with zeros for None."""
        pairs = zip(derivatives, like, strict=True)
        derivatives = [
            zeros_like(other) if derivative is None else derivative for derivative, other in pairs
        ]
        return self.nested(self.outputs, self.several_outputs), self.nested(derivatives, several)

    def jacobian(self, blocks):
        """The blocks of each output and each input as the user gets them."""
        rows = [self.nested(row, self.several_inputs) for row in blocks]
        return tuple(rows) if self.several_outputs else rows[0]

    def nested(self, tensors, several):
        """Tensors as the user gets them: detached unless `create_graph`; a tuple if `several`."""
        results = tensors if self.create_graph else [apart(tensor, True) for tensor in tensors]
        return tuple(results) if several else results[0]


def _tuple_of(value, what, name):
    """Whether a value is a tuple, and its tensors as a tuple.

    Raises TypeError for a value that is neither a tensor nor a tuple of tensors.
    """
    several = isinstance(value, tuple)
    wrong = f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the"
    if not several and not isinstance(value, Tensor):
        raise TypeError(f"{wrong} given {what} has type {type(value)}.")
    for position, entry in enumerate(value if several else ()):
        if not isinstance(entry, Tensor):
            raise TypeError(f"{wrong} value at index {position} has type {type(entry)}.")
    return several, value if several else (value,)


def _differentiated_input(tensor, create_graph):
    """A new tensor to call `func` with: a view if it must be differentiable, else a leaf."""
    if create_graph and tensor.requires_grad:
        return ops.alias(tensor)
    leaf = apart(tensor)
    return (leaf.clone() if leaf.is_inference() else leaf).requires_grad_()


def _gradients(outputs, inputs, vectors, create_graph, retain_graph=None):
    """The gradients of outputs; None for an input that they do not depend on."""
    pairs = [
        pair
        for pair in zip(outputs, vectors, strict=True)
        if pair[0] is not None and pair[0].requires_grad
    ]
    if not pairs:
        return [None] * len(inputs)
    outputs, vectors = zip(*pairs, strict=True)
    return autograd.grad(outputs, inputs, vectors, retain_graph, create_graph, allow_unused=True)


def _single(several, outputs, name):
    """The only output of a function of one element. Raises RuntimeError for other results."""
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


def _need_one_element(tensors, where):
    """Raise RuntimeError unless there is one tensor, of one element."""
    if len(tensors) != 1 or tensors[0].numel() != 1:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors)
        raise RuntimeError(
            f"The vector v can only be None if the {where} a single Tensor with a single element, "
            f"not of shape {shapes}."
        )


def _need_graph(outputs):
    """Raise RuntimeError for an output that does not require grad."""
    for position, output in enumerate(outputs):
        if not output.requires_grad:
            raise RuntimeError(
                f"Output {position} of the user-provided function does not require gradients. The "
                "outputs must be computed in a differentiable manner from the input when running "
                "in strict mode."
            )


def _need_second_order(gradient):
    """Raise RuntimeError for a gradient that does not depend on the inputs."""
    for position, component in enumerate(gradient):
        if not depends(component):
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided "
                f"function with respect to input {position} is independent of the input. "
                f"{NOT_STRICT}, which requires that the gradient depends on every input."
            )


__getattr__ = missing_in(__name__)
