"""Jacobians, Hessians and products with them, of a function at a point.

As torch.autograd.functional: `inputs` is a tensor or a tuple of tensors, and so is what `func`
returns; results are nested in the same way. `func` is called under enable_grad on tensors of its
own, so no leaf's `.grad` is touched. Without `create_graph` results are detached; with it they can
be differentiated, with respect to the inputs too. Where an output does not depend on an input the
result is zero, with `strict` a RuntimeError. What is neither a tensor nor a tuple is a TypeError.

For complex tensors reverse mode gives PyTorch's gradients, the conjugate of the derivative of a
holomorphic function, and forward mode that derivative itself.
"""

from __future__ import annotations

from ..core.tracebacks import api_boundary
from ..tape.dual import apart
from . import _jacobian_blocks
from ._functional_call import (
    JACOBIAN,
    OUTPUT,
    RESULT,
    Call,
    gradients,
    need_graph,
    need_second_order,
    single,
    tuple_of,
)
from .grad_mode import enable_grad

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]

FORWARD, REVERSE = "forward-mode", "reverse-mode"


@api_boundary
def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The outputs of `func`, and the product of a vector `v` with its Jacobian.

    v: a tensor for each output, of its shape; None where the only output has one element. The
    product has a tensor for each input. Raises RuntimeError for a `v` of another size.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.autograd.functional.vjp(lambda x: x * x, x, jaxgrad.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        call = Call("vjp", inputs, create_graph, strict)
        call.run(func)
        vector = call.vector_for_outputs(v)
        found = gradients(call.outputs, call.inputs, vector, create_graph)
        call.need(found, OUTPUT)
        call.need_graph(found, "The jacobian")
        return call.result(found, call.inputs, call.several_inputs)


@api_boundary
def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The outputs of `func`, and the product of its Jacobian with a vector `v`.

    v: a tensor for each input, of its shape; None where the only input has one element. The product
    has a tensor for each output. It is the derivative of a product with the transposed Jacobian:
    `func` needs no forward mode, but its backward must be differentiable. Where there is one,
    `forward_ad` does less work. Raises RuntimeError for a `v` of another size.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.autograd.functional.jvp(lambda x: x * x, x, jaxgrad.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        call = Call("jvp", inputs, create_graph, strict)
        vector = call.vector_for_inputs(v)
        call.run(func)
        weights, back = call.transposed(call.outputs, call.inputs, OUTPUT)
        found = gradients(back, weights, vector, create_graph)
        call.need_graph(found, "The jacobian")
        return call.result(found, weights, call.several_outputs)


@api_boundary
def vhp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of `func`, and the product of a vector `v` with its Hessian.

    func: returns one tensor of one element; v: a tensor for each input, of its shape; None where
    the only input has one element. Raises RuntimeError for a `v` of another size.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.autograd.functional.vhp(lambda x: (x**3).sum(), x, jaxgrad.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        call = Call("vhp", inputs, create_graph, strict)
        vector = call.vector_for_inputs(v)
        found = gradients(call.gradient(func), call.inputs, vector, create_graph)
        return _second_order(call, found)


@api_boundary
def hvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of `func`, and the product of its Hessian with a vector `v`.

    As `vhp`, which is faster: where second derivatives are continuous the two are the same.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.autograd.functional.hvp(lambda x: (x**3).sum(), x, jaxgrad.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        call = Call("hvp", inputs, create_graph, strict)
        vector = call.vector_for_inputs(v)
        weights, back = call.transposed(call.gradient(func), call.inputs, JACOBIAN)
        found = gradients(back, weights, vector, create_graph)
        return _second_order(call, found)


def _second_order(call, found):
    call.need(found, JACOBIAN)
    call.need_graph(found, "The hessian")
    return call.result(found, call.inputs, call.several_inputs)


@api_boundary
def jacobian(
    func,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = REVERSE,
):
    """The Jacobian of `func`: of each output with respect to each input, of the output's shape
    followed by the input's.

    A tensor where both are tensors, a tuple where one is a tuple, else a tuple for each output. In
    reverse mode there is one backward pass for each element of the outputs, or with `vectorize` one
    for all, under `jax.vmap`; in forward mode, which needs `vectorize`, one call of `func` for all
    elements of the inputs. Raises AssertionError for another `strategy`, NotImplementedError for
    forward mode without `vectorize` or with `create_graph`, and RuntimeError for `strict` with
    either of the two.

    >>> jaxgrad.autograd.functional.jacobian(lambda x: x * x, jaxgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy(strategy)
    if strategy == FORWARD:
        _check_forward(create_graph, strict, vectorize)
        return _forward_jacobian(func, inputs)
    if strict and vectorize:
        raise RuntimeError(
            "jacobian: `strict=True` and `vectorized=True` are not supported together: a batched "
            "pass does not tell what depends on what. Set `vectorize=False`."
        )
    with enable_grad():
        call = Call("jacobian", inputs, create_graph, strict)
        call.run(func)
        if vectorize:
            blocks = _jacobian_blocks.by_one_pass(call.outputs, call.inputs, create_graph)
        else:
            blocks = [
                _jacobian_blocks.of_rows(output, call.inputs, call.rows(position))
                for position, output in enumerate(call.outputs)
            ]
        found = [call.nested(row, call.several_inputs) for row in blocks]
        return tuple(found) if call.several_outputs else found[0]


@api_boundary
def hessian(
    func,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = REVERSE,
):
    """The Hessian of `func`, which returns one tensor of one element: for each two inputs the
    second derivatives, of the shape of the one followed by that of the other.

    The Jacobian of the gradient: the gradient in reverse mode, its Jacobian as `vectorize` and
    `outer_jacobian_strategy` say, with the errors of `jacobian`.

    >>> jaxgrad.autograd.functional.hessian(lambda x: (x**3).sum(), jaxgrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _check_strategy(outer_jacobian_strategy)
    several, _ = tuple_of(inputs, "inputs", "hessian")

    def value(*given):
        output = single(*tuple_of(func(*given), RESULT, "hessian"), "hessian")
        if strict:
            need_graph([output])
        return output.reshape(())

    def gradient(*given):
        if outer_jacobian_strategy == FORWARD:
            given = tuple([each.requires_grad_() for each in given])
        found = jacobian(value, given, create_graph=True)
        if strict:
            need_second_order(found)
        return found if several else found[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def _forward_jacobian(func, inputs):
    several_inputs, given = tuple_of(inputs, "inputs", "jacobian")
    several_outputs = False

    def outputs_of(*duals):
        nonlocal several_outputs
        several_outputs, outputs = tuple_of(func(*duals), RESULT, "jacobian")
        return outputs

    with enable_grad():
        blocks = _jacobian_blocks.by_forward_mode(outputs_of, [apart(each) for each in given])
    found = [tuple(row) if several_inputs else row[0] for row in blocks]
    return tuple(found) if several_outputs else found[0]


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
