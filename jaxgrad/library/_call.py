"""A call of an operator that users define: a Function whose `forward` runs the kernel.

A kernel that JAX can trace becomes part of the program around it. One that reads numbers, such as
code of numpy, runs at each call of the program, by `jax.pure_callback`; the operator's fake says
what it returns.
"""

from __future__ import annotations

import contextvars
import weakref

import jax
import numpy as np

from ..autograd.function import Function
from ..autograd.grad_mode import no_grad
from ..core.aval import INLINE, mode_of_trace, tracing
from ..frontend.tensor_data import from_numpy
from ..tape import handle_lock, mode
from ..tape.mode import is_grad_enabled
from ..tape.tensor import (
    ReadsNumbers,
    Tensor,
    abstract_value,
    alias_of,
    is_concrete,
    reads_traced_value,
    wrap,
)

# kernels that read numbers. Not an attribute of the kernel: a compiled function would guard it
_opaque = weakref.WeakSet()

# whether a fake is running, for `get_ctx`
fake_runs = contextvars.ContextVar("jaxgrad.fake_runs", default=False)

ALIASED = (
    "The output of this custom operator (1) must not also be an input to this custom operator and "
    "(2) may not alias any inputs to this custom operator or other returns: return a clone()"
)


class Kernel:
    """A function that computes an operator."""

    def __init__(self, function):
        self.function = function


class Call:
    """The structure of one call's arguments and results; Functions take and return flat tuples."""

    def __init__(self, operator, bound):
        self.operator, self.arguments = operator, operator._schema.arguments
        self.lengths = [
            len(value) if a.type.list and a.type.tensor and value is not None else None
            for a, value in zip(self.arguments, bound, strict=True)
        ]
        # set by `forward`: the length of each list among the results
        self.results = ()

    def nested(self, flat) -> list:
        """The arguments, or what belongs to each of them, in the order of the schema."""
        return _nested(self.lengths, flat)

    def split(self, bound):
        """The positional and the keyword arguments of a kernel."""
        pairs = list(zip(self.arguments, bound, strict=True))
        positional = [value for a, value in pairs if not a.keyword_only]
        return positional, {a.name: value for a, value in pairs if a.keyword_only}

    def written(self, bound) -> list:
        """The tensors that the operator writes to."""
        pairs = zip(self.arguments, bound, strict=True)
        return tensors_in([value for a, value in pairs if a.type.written])


def _nested(lengths, flat) -> list:
    supply = iter(flat)
    return [
        next(supply) if length is None else [next(supply) for _ in range(length)]
        for length in lengths
    ]


def _flat(values) -> list:
    """The values with lists of tensors replaced by their items."""
    flat = []
    for value in values:
        flat.extend(value if _is_tensors(value) else [value])
    return flat


def _is_tensors(value) -> bool:
    return isinstance(value, list | tuple) and all(
        v is None or isinstance(v, Tensor | jax.Array) for v in value
    )


def tensors_in(values) -> list:
    return [value for value in _flat(values) if isinstance(value, Tensor)]


def call(operator, bound):
    """Call an operator with bound arguments."""
    call = Call(operator, bound)
    written = call.written(bound)
    _check_written(operator, written, bound)
    flat = []
    for value, length in zip(bound, call.lengths, strict=True):
        flat.extend([value] if length is None else value)
    outputs = operator._function.apply(*flat, call)
    count = len(outputs) - len(written)
    with no_grad():
        for target, value in zip(written, outputs[count:], strict=True):
            target.copy_(value)
    return _returned(operator, bound, _nested(call.results, outputs[:count]))


def _returned(operator, bound, results):
    """The results as the caller gets them; those marked as an argument are that argument."""
    schema, supply = operator._schema, iter(results)
    by_alias = {a.type.alias: v for a, v in zip(schema.arguments, bound, strict=True)}
    values = [
        by_alias[spec.type.alias] if spec.type.written else next(supply) for spec in schema.returns
    ]
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


def _check_written(operator, written, bound):
    """Raise RuntimeError for arguments that the operator must not write to."""
    everything = tensors_in(bound)
    for target in written:
        if target.requires_grad and is_grad_enabled():
            what = "a leaf Variable that requires grad" if target.is_leaf else "one with a history"
            raise RuntimeError(
                f"{operator.name()}: an argument that it writes to is {what}, and is being used in "
                "an in-place operation without a derivative: its gradient would be that of the old "
                "value. Call the operator under no_grad(), or pass a detached clone()"
            )
        if sum(_memory(target) is _memory(tensor) for tensor in everything) > 1:
            raise RuntimeError(
                f"{operator.name()}: an argument that it writes to shares its memory with another "
                "argument: pass a clone() of one of them"
            )


def _memory(tensor):
    alias = alias_of(tensor)
    return tensor if alias is None else alias.storage


# the Function of an operator


def function_of(operator) -> type[Function]:
    """The Function that calls an operator's kernels, with its rules."""

    def forward(*flat):
        return _forward(operator, flat)

    def setup_context(ctx, inputs, output):
        _setup(operator, ctx, inputs, output)

    def backward(ctx, *grads):
        return _backward(operator, ctx, grads)

    def vmap(info, in_dims, *flat):
        return _batched(operator, info, in_dims, flat)

    rules = {"forward": forward, "setup_context": setup_context, "backward": backward}
    if operator._vmap is not None:
        rules["vmap"] = vmap
    name = f"GeneratedBackwardFor_{operator.namespace}_{operator.__name__.replace('.', '_')}"
    return type(Function)(name, (Function,), {k: staticmethod(v) for k, v in rules.items()})


def _forward(operator, flat):
    call, bound = flat[-1], flat[-1].nested(flat[:-1])
    # the kernel writes to copies, and the caller copies these back
    bound = [
        _copied(value) if a.type.written else value
        for a, value in zip(call.arguments, bound, strict=True)
    ]
    before = [(a, t, t._version) for a, t in _unwritten(call, bound)]
    results, written = run_kernel(operator, call, bound)
    for argument, tensor, version in before:
        if tensor._version != version:
            raise RuntimeError(
                f"{operator.name()}: Argument {argument.name} is not defined as mutable but was "
                "mutated: name it in mutates_args, or write to a clone()"
            )
    results = checked(operator, bound, results)
    call.results = [len(r) if isinstance(r, list) else None for r in results]
    return (*[value for r in results for value in (r if isinstance(r, list) else [r])], *written)


def _copied(value):
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value if value is None else value.detach().clone()


def _unwritten(call, bound):
    pairs = zip(call.arguments, bound, strict=True)
    return [(a, t) for a, value in pairs if not a.type.written for t in tensors_in([value])]


def checked(operator, bound, results) -> list:
    """The results of a kernel, as a list without those that are arguments.

    Raises RuntimeError if it does not fit the schema, or shares memory with an argument.
    """
    returns = operator._schema.returns
    several = len(returns) > 1
    if several and not (isinstance(results, tuple | list) and len(results) == len(returns)):
        raise RuntimeError(_wrong_result(operator, results))
    values = list(results) if several else [results] if returns else []
    if not returns and results is not None:
        raise RuntimeError(
            f"Expected {operator.name()} to return None but it returned something else instead: "
            f"{type(results).__name__}"
        )
    pairs = [p for p in zip(returns, values, strict=True) if not p[0].type.written]
    if not all(_fits(spec.type, value) for spec, value in pairs):
        raise RuntimeError(_wrong_result(operator, results))
    outputs = [list(v) if spec.type.list else v for spec, v in pairs]
    seen = [_memory(tensor) for tensor in tensors_in(bound)]
    for tensor in tensors_in(outputs):
        if any(_memory(tensor) is memory for memory in seen):
            raise RuntimeError(f"{operator.name()}: {ALIASED}")
        seen.append(_memory(tensor))
    return outputs


_KINDS = {"Tensor": Tensor, "int": int, "float": float, "bool": bool, "Scalar": int | float}


def _fits(kind, value) -> bool:
    expected = _KINDS.get(kind.base, object)
    if kind.list:
        return isinstance(value, list | tuple) and all(isinstance(v, expected) for v in value)
    return isinstance(value, expected)


def _wrong_result(operator, results) -> str:
    kinds = [type(r).__name__ for r in results] if isinstance(results, tuple | list) else None
    got = f"({', '.join(kinds)})" if kinds is not None else type(results).__name__
    return f"{operator.name()}: its kernel returned {got}; its schema is {operator._schema}"


def _setup(operator, ctx, inputs, output):
    call = ctx.library_call = inputs[-1]
    bound = call.nested(inputs[:-1])
    written = call.written(bound)
    count = len(output) - len(written)
    if written:
        ctx.mark_non_differentiable(*output[count:])
    if operator._setup_context is None:
        return
    result = _returned(operator, bound, _nested(call.results, output[:count]))
    positional, keywords = call.split(bound)
    arguments = {"keyword_only_inputs": keywords} if keywords else {}
    arguments |= {"inputs": tuple(positional), "output": result}
    with_needs(ctx, operator._setup_context, ctx=ctx, **arguments)


def with_needs(node, rule, *args, **kwargs):
    """Call a rule of the author's; to it, `needs_input_grad` has the structure of the arguments."""
    before, call = node.needs_input_grad, node.library_call
    positional, _ = call.split(call.nested(before[:-1]))
    node.needs_input_grad = tuple(positional)
    try:
        return rule(*args, **kwargs)
    finally:
        node.needs_input_grad = before


def _backward(operator, ctx, grads):
    if operator._backward is None:
        raise RuntimeError(
            f"Trying to backward through {operator} but no autograd formula was registered. Please "
            "use register_autograd to add one."
        )
    call = ctx.library_call
    output_grads = _nested(call.results, grads)
    gradients = with_needs(ctx, operator._backward, ctx, *output_grads)
    gradients = list(gradients) if isinstance(gradients, tuple) else [gradients]
    places = [n for a, n in zip(call.arguments, call.lengths, strict=True) if not a.keyword_only]
    while len(gradients) > len(places) and gradients[-1] is None:
        gradients.pop()
    if len(gradients) != len(places):
        raise RuntimeError(
            f"{operator}: its backward returned an incorrect number of gradients (expected "
            f"{len(places)}, got {len(gradients)})"
        )
    flat = []
    for number, (gradient, length) in enumerate(zip(gradients, places, strict=True)):
        flat.extend(_gradients(operator, number, gradient, length))
    return (*flat, *[None] * (len(ctx.needs_input_grad) - len(flat)))


def _gradients(operator, number, gradient, length) -> list:
    """The gradients of one argument: a list of tensors has one for each."""
    if length is None:
        return [gradient]
    if not isinstance(gradient, list | tuple) or len(gradient) != length:
        raise RuntimeError(
            f"{operator}: Expected the return from backward to be of the same structure as the "
            f"inputs: at index {number} a list of {length} gradients or None"
        )
    return list(gradient)


def _batched(operator, info, in_dims, flat):
    call = flat[-1]
    positional, keywords = call.split(call.nested(flat[:-1]))
    dims, _ = call.split(call.nested(in_dims[:-1]))
    pair = operator._vmap(info, tuple(dims), *positional, **keywords)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise RuntimeError(
            f"{operator}: its vmap rule must return (output, out_dims), not {type(pair).__name__}"
        )
    several = len(operator._schema.returns) > 1
    results = checked(operator, (), pair[0])
    out_dims = list(pair[1]) if several else [pair[1]]
    call.results = [len(r) if isinstance(r, list) else None for r in results]
    outputs, dims = [], []
    for result, dim in zip(results, out_dims, strict=True):
        items = result if isinstance(result, list) else [result]
        outputs.extend(items)
        dims.extend(dim if isinstance(dim, list | tuple) else [dim] * len(items))
    return tuple(outputs), tuple(dims)


# kernels


def run_kernel(operator, call, bound):
    """The results of the kernel, and the new values of the arguments that it writes to."""
    tensors = tensors_in(bound)
    if operator._fake is not None and any(tensor.is_meta for tensor in tensors):
        return _faked(operator, call, bound), call.written(bound)
    kernel = operator.kernel(tensors)
    is_traced = not all(map(is_concrete, tensors)) and not any(tensor.is_meta for tensor in tensors)
    if is_traced and kernel in _opaque:
        return _called_back(operator, kernel, call, bound)
    positional, keywords = call.split(bound)
    # a callback reads the numbers of each call; a trace would read those of this one alone
    withheld = mode.withholds_numbers.set(is_traced and operator._fake is not None)
    try:
        return kernel.function(*positional, **keywords), call.written(bound)
    except RuntimeError as error:
        if not is_traced or not reads_traced_value(error):
            raise
        _opaque.add(kernel)
        return _called_back(operator, kernel, call, bound, error)
    finally:
        mode.withholds_numbers.reset(withheld)


def _faked(operator, call, bound):
    """The results of the fake for tensors on the device meta."""
    positional, keywords = call.split(bound)
    before = fake_runs.set(True)
    try:
        return operator._fake(*positional, **keywords)
    finally:
        fake_runs.reset(before)


def _called_back(operator, kernel, call, bound, cause=None):
    """Run a kernel whenever the program runs."""
    if operator._fake is None:
        raise ReadsNumbers(
            f"There was no fake impl registered for {operator.name()}. Its kernel reads numbers, "
            "so a compiled or mapped call needs the shapes of its results beforehand. Please use "
            f"register_fake to add an fake impl for {operator.name()}"
        ) from cause
    tensors = tensors_in(bound)
    faked, written = run_fake(operator, call, bound), call.written(bound)
    numbers = [r for r in _flat(faked) if not isinstance(r, Tensor)]
    if numbers:
        raise RuntimeError(
            f"{operator.name()}: its kernel reads numbers, so under a trace it can return tensors "
            f"alone, not {type(numbers[0]).__name__}"
        )
    lengths = [len(r) if isinstance(r, list) else None for r in faked]
    structs = [abstract_value(tensor).struct for tensor in (*_flat(faked), *written)]
    host = _Host(operator, kernel, call, bound, structs)
    with jax.enable_x64(mode_of_trace() == INLINE):
        # JAX differentiates the Function around the kernel, never the callback
        operands = [jax.lax.stop_gradient(t._array) for t in tensors]
        arrays = jax.pure_callback(host, structs, *operands, vmap_method="sequential")
    results = list(map(wrap, arrays))
    count = len(results) - len(written)
    supply = iter(_nested(lengths, results[:count]))
    values = [None if spec.type.written else next(supply) for spec in operator._schema.returns]
    value = tuple(values) if len(values) > 1 else values[0] if values else None
    return value, results[count:]


class _Host:
    """The kernel as a function of arrays, for one structure of arguments."""

    def __init__(self, operator, kernel, call, bound, structs):
        self.operator, self.kernel, self.call, self.structs = operator, kernel, call, structs
        # no tensors of the trace in what outlives it
        self.template = [_emptied(value) for value in bound]

    def __call__(self, *arrays):
        supply = iter([from_numpy(np.asarray(array)) for array in arrays])
        bound = [_filled(value, supply) for value in self.template]
        positional, keywords = self.call.split(bound)
        # the thread at the program may wait for this one, and hold the lock of handles
        with handle_lock.helping(), no_grad():
            results = self.kernel.function(*positional, **keywords)
            results = checked(self.operator, bound, results)
        outputs = [np.asarray(t._array) for t in (*_flat(results), *self.call.written(bound))]
        got = [(output.shape, output.dtype) for output in outputs]
        declared = [(struct.shape, struct.dtype) for struct in self.structs]
        if got != declared:
            raise RuntimeError(
                f"{self.operator.name()}: its kernel returned {_shown(got)}, but its fake said "
                f"{_shown(declared)}: correct the function given to register_fake"
            )
        return outputs


def _shown(pairs) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in pairs)


_TENSOR = object()


def _emptied(value):
    if isinstance(value, list):
        return [_emptied(item) for item in value]
    return _TENSOR if isinstance(value, Tensor) else value


def _filled(value, supply):
    if isinstance(value, list):
        return [_filled(item, supply) for item in value]
    return next(supply) if value is _TENSOR else value


def run_fake(operator, call, bound):
    """The results of an operator's fake, as `checked` returns them, without computing them."""
    tensors, results = tensors_in(bound), []

    def shapes(*arrays):
        supply = iter(map(wrap, arrays))
        positional, keywords = call.split([_filled(_emptied(v), supply) for v in bound])
        results.extend(checked(operator, (), operator._fake(*positional, **keywords)))
        return [tensor._array for tensor in tensors_in(results)]

    before = fake_runs.set(True)
    try:
        # with 64-bit types, as uncompiled code has them
        with no_grad(), tracing(True), jax.enable_x64(True):
            jax.eval_shape(shapes, *[t._array for t in tensors])
    finally:
        fake_runs.reset(before)
    return results
