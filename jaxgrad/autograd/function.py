"""`Function`: operators whose derivative their author writes, as torch.autograd.function.

What a call does is in `function_call.py`, what JAX's own transformations make of it in
`function_jax.py`. Here is what authors see: the class, and `ctx`, which is the call's node.
"""

from __future__ import annotations

import functools
import warnings

from ..core.tracebacks import api_boundary
from ..ops import alias
from ..tape.mode import is_grad_enabled
from ..tape.node import Node, next_sequence_number
from ..tape.tensor import Tensor, edge_of
from ._function import call as function_call
from ._function import jax_rules, user_rules
from ._function.outputs import permit_dirty
from .grad_mode import no_grad


class FunctionCtx:
    """What `forward`, `backward` and `jvp` of a Function share: `ctx`."""

    def save_for_backward(self, *tensors: Tensor | None):
        """Keep tensors for `backward`, which finds them in `ctx.saved_tensors`.

        Inputs and outputs keep their history there, so that the gradient can be differentiated. So
        does an intermediate result: where a second derivative is asked for, it is computed again
        from the inputs. Raises TypeError for anything but tensors and None.
        """
        for position, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {position} is of "
                    f"type {type(tensor).__name__}: keep it as an attribute of ctx"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None):
        """Keep tensors for `jvp`, which finds them in `ctx.saved_tensors`."""
        for tensor in tensors:
            assert tensor is None or isinstance(tensor, Tensor), (
                "save_for_forward expects all arguments to be tensors; you should save non-tensors "
                "as attributes on ctx."
            )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor):
        """Tell which inputs `forward` writes to in place: they must be among its outputs."""
        for tensor in args:
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    "mark_dirty can only accept variables, but argument is of type "
                    f"{type(tensor).__name__}"
                )
        permit_dirty(self, args)
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor):
        """Tell which outputs have no gradient. `backward` gets zeros for them."""
        for tensor in args:
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    "mark_non_differentiable only accepts variable arguments, but got "
                    f"{type(tensor).__name__}"
                )
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool):
        """Whether gradients and tangents that are not there come as zeros, as by default, or as
        None.
        """
        if not isinstance(value, bool):
            raise TypeError(
                f"set_materialize_grads takes a bool, but got {type(value).__name__}: {value!r}"
            )
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs):
        """Does nothing: tensors that share memory are always known."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class BackwardCFunction(function_call.FunctionNode, FunctionCtx):
    """The node of a Function's call; each Function has its own subclass. Code does not use it
    directly.
    """

    def apply(self, *grads):
        """The Function's `backward` of these gradients, as the engine calls it."""
        return user_rules.user_backward(self._forward_cls)(self, *grads)

    def apply_boxed(self, grads: list):
        """As `apply`, with a list of gradients, which `backward` may empty."""
        return user_rules.user_backward(self._forward_cls)(self, grads)

    def apply_jvp(self, *tangents):
        """The Function's `jvp` of these tangents."""
        return self._forward_cls.jvp(self, *tangents)


class FunctionMeta(type):
    """Gives each Function the class of its nodes."""

    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        members = {"_forward_cls": cls, "__module__": cls.__module__}
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), members)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """An operator with a derivative of its own.

    A subclass has static methods. `forward(ctx, *args)` computes, or `forward(*args)` with
    `setup_context(ctx, inputs, output)`, which keeps what is needed. `backward(ctx, *grads)` gives
    a gradient for each argument, None where there is none to be had. `jvp(ctx, *tangents)` gives
    the tangents of the outputs; without it they are those that `backward` implies, by transposing
    it. `vmap(info, in_dims, *args)` gives outputs and their batch dimensions; without it the code
    of `forward` is batched. Called by `apply`, with tensors or with JAX arrays, it works eagerly,
    under `jaxgrad.jit`, and under JAX's own transformations.

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

    # whether `saved_tensors` may be read only once, and is freed by it
    clear_saved_tensors_on_access = False
    # whether `backward` takes its gradients as one list, which it may empty
    boxed_grads_call = False
    # whether `forward` and `backward` are batched as they are; they are, where there is no `vmap`
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

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs: tuple, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    @api_boundary
    def apply(cls, *args, **kwargs):
        """Call the Function. Its arguments are those of `forward`, by position or by name."""
        args = function_call.bound(cls, args, kwargs)
        call = jax_rules.apply if jax_rules.concerns(args) else function_call.apply
        return call(cls, args)


user_rules.BASE = Function


class InplaceFunction(Function):
    """Kept for old code: a Function that notes whether it works in place."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old code, which names it; a Function's `apply` is what runs."""

    def forward_extended(self, *input):
        raise NotImplementedError(f"{type(self).__name__} has no forward_extended")

    def backward_extended(self, *grad_output):
        raise NotImplementedError(f"{type(self).__name__} has no backward_extended")


def once_differentiable(fn):
    """Decorates a `backward` that cannot be differentiated: it runs under `no_grad`, and to
    differentiate what it gave raises RuntimeError.
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
        made = tuple(
            node.output(result) if isinstance(result, Tensor) else result
            for result in (results if several else (results,))
        )
        return made if several else made[0]

    backward.is_once_differentiable = True
    return backward


class DelayedError(Node):
    """The node of a gradient that must not be differentiated."""

    __slots__ = ("avals", "edges", "extras", "output_count", "sequence", "what")

    def __init__(self, ctx, edges):
        self.edges, self.extras, self.output_count = edges, None, 0
        self.sequence = next_sequence_number()
        self.what, self.avals = ctx.name(), []

    def output(self, value: Tensor) -> Tensor:
        with no_grad():
            made = alias(value) if not value.is_leaf else value.detach()
        if made._aval.differentiable:
            made._node, made._nr, made._tracked = self, len(self.avals), True
            self.avals.append(made._aval)
            self.output_count += 1
        return made

    def name(self):
        return "DelayedErrorBackward"

    def outputs(self):
        return self.avals

    def run(self, run, gradients):
        raise RuntimeError(f"{user_rules.TWICE}: the gradient that {self.what} gave")
