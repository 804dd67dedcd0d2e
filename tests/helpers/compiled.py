"""Runs bodies of as_torch tests inside one `jaxgrad.jit`.

Every tensor that such a body makes of numbers is traced there, so that what it computes is computed
by the compiled program; what it returns comes out of it.
"""

import jaxgrad
from helpers import as_torch, checks

MAKERS = frozenset(
    ["tensor", "ones", "zeros", "full", "arange", "eye", "linspace", "rand", "randn"]
)


def under_jit(test):
    """The test of a body, compiled, against the same recording."""
    body = test.body

    def run():
        result = described(body)
        as_torch.differences(test.expected(), result, test.__name__)
        checks.count("autograd")

    return run


def described(body):
    """What a compiled body returns, as the recording has it."""
    shown = []

    def program(zero):
        tensors = []
        shown.append(outline(body(Traced(zero)), tensors))
        return tensors

    compiled = jaxgrad.jit(program)
    results = compiled(jaxgrad.zeros(()))
    assert len(compiled.traces) == 1
    return filled(shown[0], results)


class Traced:
    """The module as test bodies see it: all tensors made of numbers are traced."""

    def __init__(self, zero):
        self.zero = zero

    def __getattr__(self, name):
        attribute = getattr(jaxgrad, name)
        return self.traced(attribute) if name in MAKERS else attribute

    def traced(self, make):
        def maker(*args, requires_grad=False, **kwargs):
            plain = make(*args, **kwargs)
            if requires_grad and not plain.dtype.is_floating_point and not plain.dtype.is_complex:
                return make(*args, requires_grad=True, **kwargs)
            zero = self.zero.detach().to(plain.dtype)
            traced = (plain | zero) if plain.dtype is jaxgrad.bool else (plain + zero)
            return traced.detach().requires_grad_(requires_grad)

        return maker


def outline(value, tensors):
    """A value whose tensors move to the list `tensors`."""
    if isinstance(value, jaxgrad.Tensor):
        tensors.append(value.detach())
        return Place(len(tensors) - 1, value.requires_grad)
    if isinstance(value, dict):
        return {name: outline(item, tensors) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [outline(item, tensors) for item in value]
    return value


class Place:
    """Where a tensor was, and whether it required grad."""

    def __init__(self, position, requires_grad):
        self.position, self.requires_grad = position, requires_grad


def filled(value, results):
    if isinstance(value, Place):
        description = as_torch.described(results[value.position])
        return description | {"requires_grad": value.requires_grad}
    if isinstance(value, dict):
        return {str(name): filled(item, results) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, results) for item in value]
    return as_torch.described(value)
