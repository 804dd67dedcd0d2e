"""`Function`: operators whose derivative their author writes, as torch.autograd.function.

`_function/call.py` runs a call on the tape, `_function/jax_rules.py` a call under JAX's
transformations. This module has what authors see: the class, and `ctx`, which is the node of the
call.
"""

from __future__ import annotations

import functools
import warnings

from .. import ops
from ..core.pytorch_tensors import type_name
from ..core.tracebacks import shows_users_frames
from ..names.missing import missing_in
from ..tape.mode import is_grad_enabled
from ..tape.node import Node, next_sequence_number
from ..tape.tensor import Tensor, abstract_value, edge_of, may_require_grad, set_node, set_tracked
from ._function import call as function_call
from ._function import jax_rules, user_rules
from .grad_mode import no_grad


class FunctionCtx:
    """The `ctx` that `forward`, `backward` and `jvp` of a Function share.

    Keep what is no tensor as an attribute of it.

    >>> class Scale(jaxgrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, factor):
    ...         ctx.factor = factor
    ...         return x * factor
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * ctx.factor, None
    >>> x = jaxgrad.tensor(1.0, requires_grad=True)
    >>> Scale.apply(x, 3).backward()
    >>> x.grad
    tensor(3.)
    """

    def save_for_backward(self, *tensors: Tensor | None):
        """Save tensors for `backward`, which reads them from `ctx.saved_tensors`.

        Inputs and outputs keep their history, so gradients computed from them can be
        differentiated. An intermediate result gets its history when a second derivative needs it:
        `forward` then runs again.

        tensors: tensors of any shape and dtype, or None.

        Raises TypeError for any other object: keep those as attributes of `ctx`. For an example see
        `Function`.
        """
        for position, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {position} is of "
                    f"type {type_name(tensor)}: keep it as an attribute of ctx"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None):
        """Save tensors for `jvp`, which reads them from `ctx.saved_tensors`.

        tensors: tensors of any shape and dtype, or None.

        Raises AssertionError for any other object.

        >>> import jaxgrad.autograd.forward_ad as fwAD
        >>> class Square(jaxgrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_forward(x)
        ...         return x * x
        ...
        ...     @staticmethod
        ...     def jvp(ctx, tangent):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * tangent
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(jaxgrad.tensor(3.0), jaxgrad.tensor(1.0))
        ...     fwAD.unpack_dual(Square.apply(x)).tangent
        tensor(6.)
        """
        for tensor in tensors:
            assert tensor is None or isinstance(tensor, Tensor), (
                "save_for_forward expects all arguments to be tensors; you should save non-tensors "
                "as attributes on ctx."
            )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor):
        """Declare the inputs that `forward` writes to in place; `forward` must return them.

        args: input tensors.

        Raises RuntimeError for an object that is not a tensor, and for a leaf that requires grad.

        >>> class Double(jaxgrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.mark_dirty(x)
        ...         return x.mul_(2)
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> x = jaxgrad.ones(2)
        >>> _ = Double.apply(x)
        >>> x
        tensor([2., 2.])
        """
        for tensor in args:
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    "mark_dirty can only accept variables, but argument is of type "
                    f"{type_name(tensor)}"
                )
        function_call.permit_dirty(self, args)
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor):
        """Declare the outputs that have no gradient; `backward` gets zeros for them.

        args: output tensors.

        Raises RuntimeError for an object that is not a tensor.

        >>> class Signs(jaxgrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         sign = x.sign()
        ...         ctx.mark_non_differentiable(sign)
        ...         return x.clone(), sign
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad, grad_of_sign):
        ...         return grad
        >>> [y.requires_grad for y in Signs.apply(jaxgrad.ones(2, requires_grad=True))]
        [True, False]
        """
        for tensor in args:
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    "mark_non_differentiable only accepts variable arguments, but got "
                    f"{type_name(tensor)}"
                )
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool):
        """Choose whether missing gradients and tangents are zeros, the default, or None.

        value: True for zeros.

        Raises TypeError if `value` is not a bool.

        >>> class Both(jaxgrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.set_materialize_grads(False)
        ...         return x * 2, x * 3
        ...
        ...     @staticmethod
        ...     def backward(ctx, first, second):
        ...         print(second)
        ...         return first * 2
        >>> first, _ = Both.apply(jaxgrad.tensor(1.0, requires_grad=True))
        >>> first.backward()
        None
        """
        if not isinstance(value, bool):
            raise TypeError(
                f"set_materialize_grads takes a bool, but got {type(value).__name__}: {value!r}"
            )
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs):
        """Deprecated, without effect: tensors that share memory are always known."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class BackwardCFunction(function_call.FunctionNode, FunctionCtx):
    """The base class of the nodes of Functions; each Function has its own subclass.

    Do not use it directly.

    >>> class Double(jaxgrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    >>> y = Double.apply(jaxgrad.ones(2, requires_grad=True))
    >>> isinstance(y.grad_fn, jaxgrad.autograd.function.BackwardCFunction)
    True
    """

    def apply(self, *grads):
        """Call the Function's `backward` on gradients, a tensor or None for each output."""
        return user_rules.user_backward(self._forward_cls)(self, *grads)

    def apply_boxed(self, grads: list):
        """Call the Function's `backward` on one list of gradients, which it may empty."""
        return user_rules.user_backward(self._forward_cls)(self, grads)

    def apply_jvp(self, *tangents):
        """Call the Function's `jvp` on tangents, a tensor or None for each argument."""
        return self._forward_cls.jvp(self, *tangents)


class FunctionMeta(type):
    """The metaclass of Functions: it makes the class of the Function's nodes.

    >>> class Double(jaxgrad.autograd.Function):
    ...     pass
    >>> type(Double) is jaxgrad.autograd.function.FunctionMeta
    True
    """

    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        members = {"_forward_cls": cls, "__module__": cls.__module__}
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), members)


class Function(FunctionCtx, user_rules.Rules, metaclass=FunctionMeta):
    """An operator whose derivative its author writes.

    A subclass overrides static methods: `forward`, with `setup_context` if `forward` does not take
    `ctx`; `backward` for reverse mode; `jvp` for forward mode; `vmap` for batches. Without `jvp`
    the tangents are the transpose of `backward`. Without `vmap` the code of `forward` is batched.
    Call it by `apply`, on tensors or on JAX arrays: eagerly, under `jaxgrad.jit`, and under JAX's
    transformations.

    >>> class Cube(jaxgrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad
    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    # whether the first read of `saved_tensors` frees them
    clear_saved_tensors_on_access = False
    # whether `backward` takes one list of gradients, which it may empty
    boxed_grads_call = False
    # kept for PyTorch's code: without `vmap`, `forward` and `backward` are always batched
    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            f"new-style autograd function with static forward method: {type(self).__name__}.apply"
        )

    @classmethod
    @shows_users_frames
    def apply(cls, *args, **kwargs):
        """Call the Function.

        args, kwargs: the arguments of `forward`, without `ctx`.
        Returns what `forward` returned. Tensors in it have this call as their `grad_fn` if an
        argument requires grad. JAX arrays as arguments give JAX arrays.

        >>> class Double(jaxgrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> Double.apply(jaxgrad.ones(2, requires_grad=True))
        tensor([2., 2.], grad_fn=<DoubleBackward>)
        """
        args = function_call.bound(cls, args, kwargs)
        call = jax_rules.apply if jax_rules.concerns(cls, args) else function_call.apply
        return call(cls, args)


class InplaceFunction(Function):
    """Kept for old code: a Function with an attribute `inplace`.

    >>> class Double(jaxgrad.autograd.function.InplaceFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    >>> Double.apply(jaxgrad.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old code that names it; `apply` runs it as any Function.

    >>> class Double(jaxgrad.autograd.NestedIOFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    >>> Double.apply(jaxgrad.ones(2))
    tensor([2., 2.])
    """

    def forward_extended(self, *input):
        raise NotImplementedError(f"{type(self).__name__} has no forward_extended")

    def backward_extended(self, *grad_output):
        raise NotImplementedError(f"{type(self).__name__} has no backward_extended")


def once_differentiable(fn):
    """Decorate a `backward` that cannot be differentiated.

    fn: `backward(ctx, *grads)`. It runs under `no_grad`. Differentiating its results raises
        RuntimeError.

    >>> class Cube(jaxgrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     @jaxgrad.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad
    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> jaxgrad.autograd.grad(Cube.apply(x), x)
    (tensor(12.),)
    """

    @functools.wraps(fn)
    def backward(ctx, *grads):
        with no_grad():
            results = fn(ctx, *grads)
        moving = [grad for grad in grads if isinstance(grad, Tensor) and grad.requires_grad]
        if not is_grad_enabled() or not moving:
            return results
        several = isinstance(results, tuple)
        node = DelayedError(ctx, [edge_of(grad) for grad in moving])
        outputs = tuple(
            node.output(result) if isinstance(result, Tensor) else result
            for result in (results if several else (results,))
        )
        return outputs if several else outputs[0]

    backward.is_once_differentiable = True
    return backward


class DelayedError(Node):
    """The node of a gradient that cannot be differentiated: running it raises RuntimeError."""

    __slots__ = ("avals", "edges", "extras", "node_name", "output_count", "sequence")

    def __init__(self, ctx, edges):
        self.edges, self.extras, self.output_count = edges, None, 0
        self.sequence = next_sequence_number()
        self.node_name, self.avals = ctx.name(), []

    def output(self, value: Tensor) -> Tensor:
        with no_grad():
            output = ops.alias(value) if not value.is_leaf else value.detach()
        if may_require_grad(output):
            set_node(output, self, len(self.avals))
            set_tracked(output, True)
            self.avals.append(abstract_value(output))
            self.output_count += 1
        return output

    def name(self):
        return "DelayedErrorBackward"

    def outputs(self):
        return self.avals

    def run(self, run, gradients):
        raise RuntimeError(f"{user_rules.TWICE}: the gradient that {self.node_name} gave")


__getattr__ = missing_in(__name__)
