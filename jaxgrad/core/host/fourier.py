"""Rules of Fourier transforms."""

from __future__ import annotations

import numpy

from ...late import LateModule
from .equation import rule

fft = LateModule("scipy.fft")

_NAMES = "fftn", "ifftn", "rfftn", "irfftn"


@rule("fft")
def _fft(equation):
    lengths = tuple(equation.params["fft_lengths"])
    shape, dtype = equation.outputs[0]
    axes = tuple(range(-len(lengths), 0))
    transform = getattr(fft, _NAMES[int(equation.params["fft_type"])])

    def run(operand):
        if 0 in shape or 0 in operand.shape:
            return numpy.zeros(shape, dtype)
        return transform(operand, lengths, axes)

    return run if lengths else lambda operand: operand.astype(dtype)
