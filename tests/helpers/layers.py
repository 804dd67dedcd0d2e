"""Values and derivatives of layers and functions, with weights that are always the same."""

import functools
import math

from helpers.as_torch import as_torch


def in_float64(body):
    """`as_torch` with the precision of float64 sums added up in another order."""

    @functools.wraps(body)
    def wide(torch):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return body(torch)
        finally:
            torch.set_default_dtype(before)

    return as_torch(wide, precision=1e-8)


def nested(values, shape):
    """A row of values as nested lists of a shape."""
    for extent in reversed(shape[1:]):
        values = [values[i : i + extent] for i in range(0, len(values), extent)]
    return values if shape else values[0]


def irregular(torch, *shape, scale=1.0, first=0):
    """Numbers without a pattern that a mistake could reproduce."""
    count = math.prod(shape)
    values = [scale * math.sin(1.3 * (i + first) ** 2 + 0.7) for i in range(count)]
    return torch.tensor(nested(values, shape))


def ties(torch, *shape):
    values = [round(2 * math.sin(1.3 * i**2 + 0.7)) for i in range(math.prod(shape))]
    return torch.tensor(nested([float(value) for value in values], shape))


def without_rounding(tensor):
    """The numbers with rounding errors of zero removed."""

    def rounded(value):
        return [rounded(entry) for entry in value] if isinstance(value, list) else round(value, 12)

    return None if tensor is None else [str(tensor.dtype), rounded(tensor.detach().tolist())]


def fix_weights(torch, module):
    """The module with fixed weights."""
    for position, parameter in enumerate(module.parameters()):
        parameter.data = irregular(torch, *parameter.shape, scale=0.5, first=position)
    return module


def derivatives(torch, function, *inputs, second=False):
    """Values of a function, its gradients, and their gradients."""
    output = function(*inputs)
    outputs = output if isinstance(output, tuple) else (output,)
    weights = irregular(torch, *outputs[0].shape, first=5)
    first = torch.autograd.grad(outputs[0], inputs, weights, create_graph=second)
    results = [list(map(without_rounding, outputs)), list(map(without_rounding, first))]
    if second:
        first = [gradient for gradient in first if gradient.requires_grad]
        weights = [irregular(torch, *gradient.shape, first=8) for gradient in first]
        twice = torch.autograd.grad(first, inputs, weights, allow_unused=True)
        # zeros and None are the same
        results.append([None if g is None or not g.any() else without_rounding(g) for g in twice])
    return results


def of_layer(torch, module, *inputs, second=False):
    """`derivatives` of a module with respect to its inputs and parameters."""
    module = fix_weights(torch, module)
    leaves = [
        tensor.requires_grad_() if tensor.is_floating_point() else tensor for tensor in inputs
    ]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    return derivatives(
        torch, lambda *_: module(*leaves), *wanted, *module.parameters(), second=second
    )


def of_function(torch, function, *inputs, second=False):
    inputs = [tensor.requires_grad_() for tensor in inputs]
    return derivatives(torch, function, *inputs, second=second)
