"""How tensors print inside of transforms of `jaxgrad.func`: as PyTorch's wrapped tensors.

jaxgrad wraps no tensors. What PyTorch prints of the wrappers tells which transforms a tensor takes
part in, so each transform that a tensor belongs to adds its line.
"""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from ...storage.alias import snapshot
from ...tape.mode import transform_levels


class Wrapper(NamedTuple):
    """The wrapper that a transform puts around a tensor in PyTorch.

    kind: PyTorch's name of the wrapper, None for none; value: the tensor inside, a `Batch` if it
    has no values; dim: the batch dimension of a vmap.
    """

    kind: str | None
    value: object
    dim: int | None = None


class Batch(NamedTuple):
    """The tensor of all examples to which a tensor of one example belongs, if it has no values.

    example: the tensor of one example.
    """

    shape: tuple
    example: object


def wrapped_text(tensor, text_of) -> str:
    """The text of a tensor inside of the transforms around the current call.

    text_of: a function of a tensor or a `Batch`, and of whether its history belongs to a transform.
    """
    value, headings, is_own = tensor, [], False
    # the innermost transform wraps what the others have wrapped
    for number, level in reversed(list(enumerate(transform_levels.get(), 1))):
        wrapper = level.wrapper(value)
        if wrapper is None:
            continue
        value = wrapper.value
        if wrapper.kind is None:
            continue
        is_own |= wrapper.dim is None
        dim = "" if wrapper.dim is None else f", bdim={wrapper.dim}"
        headings.append(f"{wrapper.kind}(lvl={number}{dim}, value=")
    if value is not tensor and not isinstance(value, Batch):
        value = snapshot(value)  # to read it would make it an input of the trace
    text = text_of(value, is_own)
    for heading in reversed(headings):
        text = f"{heading}\n{textwrap.indent(text, '    ')}\n)"
    return text
