"""What a backward pass writes to the logger torch.autograd.graph."""

import logging
import re

import pytest
from helpers.as_torch import as_torch, leaf

LOGGER = logging.getLogger("torch.autograd.graph")


class Kept(logging.Handler):
    """The logged messages without addresses."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(re.sub(r"0x[0-9a-f]+", "...", record.getMessage()))


def logged(function, level=logging.DEBUG):
    handler, before = Kept(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(level)
    try:
        function()
    finally:
        LOGGER.setLevel(before)
        LOGGER.removeHandler(handler)
    return handler.messages


@pytest.mark.row("H11")
@as_torch("""
    'Executing: <SumBackward0 object at ...> with grad_outputs: [f32[]]'
    'Executing: <AddBackward0 object at ...> with grad_outputs: [f32[3]]'
    'Executing: <MulBackward0 object at ...> with grad_outputs: [f32[3]]'
    'Executing: <AccumulateGrad object at ...> with grad_outputs: [f32[3]]'
""")
def test_nodes_are_logged_as_they_run(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    return logged((x * 2 + 1).sum().backward)


@pytest.mark.row("H11")
@pytest.mark.slow
@as_torch
def test_dtypes_and_shapes_that_are_logged(torch):
    messages = []
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.complex128):
        x = torch.ones(2, 3, dtype=dtype, requires_grad=True)
        messages += logged(lambda x=x: x.sum().abs().backward())
    return messages


@pytest.mark.row("H11")
@as_torch("""
    'Executing: <SumBackward0 object at ...> with grad_outputs: [f32[]]'
    'Executing: <SplitBackward0 object at ...> with grad_outputs: [f32[2, 2],None]'
    'Executing: <AccumulateGrad object at ...> with grad_outputs: [f32[4, 2]]'
""")
def test_an_unused_output_is_logged(torch):
    x = torch.ones(4, 2, requires_grad=True)
    first, _ = x.split(2)
    return logged(lambda: first.sum().backward())


@pytest.mark.row("H11")
@as_torch("""
    'Executing: <SumBackward0 object at ...> with grad_outputs: [f32[]]'
    'Executing: <MulBackward0 object at ...> with grad_outputs: [f32[2]]'
    'Executing: <ExpBackward0 object at ...> with grad_outputs: [f32[2]]'
""")
def test_grad_logs_what_runs(torch):
    x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    y = (x.exp() * w.sin()).sum()
    return logged(lambda: torch.autograd.grad(y, x))


@pytest.mark.row("H11")
@as_torch("""
    'Executing: <SumBackward0 object at ...> with grad_outputs: [f32[]]'
    'Executing: <ExpBackward0 object at ...> with grad_outputs: [None]'
    'Executing: <AccumulateGrad object at ...> with grad_outputs: [None]'
""")
def test_what_hooks_changed_is_logged(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x.exp()
    y.grad_fn.register_prehook(lambda grads: (None,))
    return logged(y.sum().backward)


@pytest.mark.row("H11")
@as_torch("[]")
def test_nothing_is_logged_at_another_level(torch):
    x = leaf(torch, 1.0, 2.0)
    return logged(x.sum().backward, logging.INFO)
