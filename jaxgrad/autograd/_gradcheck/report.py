"""Tolerances, and the messages for two Jacobians that differ."""

from __future__ import annotations

import dataclasses

import numpy

from .problem import nodes


class GradcheckError(RuntimeError):
    """The error that `gradcheck` and `gradgradcheck` raise for a wrong derivative.

    >>> from jaxgrad.autograd.gradcheck import GradcheckError, gradcheck
    >>> x = jaxgrad.ones(2, dtype=jaxgrad.float64, requires_grad=True)
    >>> try:
    ...     gradcheck(lambda x: x * x.detach(), x)
    ... except GradcheckError as error:
    ...     print(str(error).splitlines()[0])
    Jacobian mismatch for output 0 with respect to input 0,
    """


@dataclasses.dataclass
class Tolerance:
    """How far an analytical derivative may be from the numerical one, for inputs of any size."""

    atol: float
    rtol: float

    def __post_init__(self):
        for name, value in vars(self).items():
            if not value >= 0:
                raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")

    def excess(self, analytical, numerical) -> numpy.ndarray:
        """How far each number is beyond the tolerance: at most 0 within it, inf for nan."""
        with numpy.errstate(all="ignore"):
            excess = abs(analytical - numerical) - self.allowed(numerical)
        same = analytical == numerical
        return numpy.where(same, 0.0, numpy.where(numpy.isnan(excess), numpy.inf, excess))

    def allowed(self, numerical):
        """The largest difference that is allowed for each number."""
        return self.atol + self.rtol * abs(numerical)


@dataclasses.dataclass
class CheckSettings:
    """The options of a check.

    inner: "reverse" or "forward" if the function under test is itself a gradient or a tangent, else
        "".
    """

    eps: float
    tolerance: Tolerance
    nondet_tol: float
    undefined: bool
    dtypes: bool
    batched: bool
    batched_forward: bool
    forward: bool
    backward: bool
    fast: bool
    inner: str = ""

    def error(self, outer: str, text: str) -> GradcheckError:
        """A GradcheckError whose message begins with the nesting of modes."""
        return GradcheckError(f"{self.label(outer)}{text}")

    def label(self, outer: str) -> str:
        """The nesting of modes, such as "forward over reverse: "; empty for first derivatives."""
        return f"{outer} over {self.inner}: " if self.inner else ""


@dataclasses.dataclass
class JacobianMismatch:
    """The column in which two Jacobians differ most.

    numerical, analytical: the derivatives of all elements of the output with respect to one element
        of the input, whose flat index is `column`.
    count: how many elements of the Jacobian differ.
    """

    excess: float
    column: int
    numerical: numpy.ndarray
    analytical: numpy.ndarray
    count: int = 1

    @property
    def row(self) -> int:
        return int(numpy.argmax(abs(self.analytical - self.numerical)))


class Comparison:
    """The largest mismatch of each Jacobian, from comparisons of columns."""

    def __init__(self, tolerance: Tolerance):
        self.tolerance = tolerance
        self.mismatches: dict[tuple, JacobianMismatch] = {}

    def column(self, place, index, numerical, analytical):
        """Compare a column.

        place: the Jacobian, as (mode, part, output, input).
        """
        excess = self.tolerance.excess(analytical, numerical)
        worst = excess.max(initial=0)
        if worst <= 0:
            return
        before, count = self.mismatches.get(place), int((excess > 0).sum())
        if before is None or worst > before.excess:
            self.mismatches[place] = JacobianMismatch(worst, index, numerical, analytical)
        self.mismatches[place].count = count + (before.count if before else 0)

    def first(self):
        """The Jacobian to report, and its largest mismatch: reverse mode comes first."""
        place = min(self.mismatches, key=lambda place: (place[0] == FORWARD, *place[1:]))
        return place, self.mismatches[place]


REVERSE, FORWARD = "reverse", "forward"
IMAGINARY, REAL_PART, WHOLE = 0, 1, 2

WHAT = {REVERSE: "Jacobian mismatch", FORWARD: "Jacobian computed with forward mode mismatch"}
PREFIX = {
    (REVERSE, IMAGINARY): "While considering the imaginary part of complex outputs only, ",
    (REVERSE, REAL_PART): "While considering the real part of complex outputs only, ",
    (FORWARD, IMAGINARY): "While considering the imaginary part of complex inputs only, ",
    (FORWARD, REAL_PART): "While considering the real part of complex inputs only, ",
}


def heading(place) -> str:
    """The first line of the message."""
    mode, part, output, position = place
    prefix = PREFIX.get((mode, part), "")
    return f"{prefix}{WHAT[mode]} for output {output} with respect to input {position},"


def message(problem, place, mismatch: JacobianMismatch, tolerance: Tolerance, blamed: str) -> str:
    """The whole message: which derivative is wrong, where, and both columns."""
    _, _, output, position = place
    tensor, result = problem.inputs[position], problem.all_outputs[output]
    row, column = mismatch.row, mismatch.column
    pair = mismatch.numerical[row], mismatch.analytical[row]
    sentences = [
        heading(place),
        f"numerical:{_shown(mismatch.numerical)}",
        f"analytical:{_shown(mismatch.analytical)}",
        f"function: {problem.name}",
        f"recorded as: {recorded_as(result)}",
        f"at element {_index(result, row)} of the output and {_index(tensor, column)} of the "
        f"input: numerical {pair[0]:.10g}, analytical {pair[1]:.10g}, whose difference "
        f"{abs(pair[1] - pair[0]):.3g} is more than {tolerance.allowed(pair[0]):.3g}",
        f"Above are the derivatives of all {result.numel()} elements of the output, of shape "
        f"{list(result.shape)}, with respect to that element of the input, of shape "
        f"{list(tensor.shape)}; of {tensor.numel() * result.numel()} derivatives {mismatch.count} "
        "are wrong.",
        guess(mismatch.numerical, mismatch.analytical),
        blamed,
    ]
    return "\n".join(filter(None, sentences))


def guess(numerical, analytical) -> str:
    """A likely cause, if two columns differ by one factor or by conjugation."""
    if not numpy.isfinite(analytical).all() or not numpy.isfinite(numerical).all():
        return "There is a nan or an inf."
    if not numpy.any(analytical):
        return "The analytical derivative is zero."
    size = abs(numerical) > 1e-3 * abs(numerical).max(initial=0)
    if not size.any():
        return "The numerical derivative is zero."
    conjugates = (numerical.conj(), -numerical.conj())
    if numpy.iscomplexobj(numerical) and any(
        _close(analytical, conjugate) for conjugate in conjugates
    ):
        return "The analytical derivative is conjugated where the numerical one is not."
    ratios = analytical[size] / numerical[size]
    ratio = ratios[0]
    if _close(ratios, ratio) and numpy.allclose(analytical[~size], 0, atol=1e-3):
        shown = f"{ratio.real:.4g}" if abs(ratio.imag) < 1e-3 * abs(ratio) else f"{ratio:.4g}"
        return f"The analytical derivative is the numerical one times {shown}."
    return ""


def _close(actual, expected) -> bool:
    return numpy.allclose(actual, expected, 1e-3, 1e-5)


def recorded_as(tensor, most=6) -> str:
    """The names of the latest nodes of a tensor's graph."""
    names = dict.fromkeys(node.name() for node in nodes([tensor]))
    names.pop("AccumulateGrad", None)
    return ", ".join(list(names)[:most]) or "nothing"


def _index(tensor, position) -> tuple:
    return tuple(int(i) for i in numpy.unravel_index(position, tuple(tensor.shape)))


def _shown(column) -> str:
    return numpy.array2string(column, separator=", ", threshold=20, max_line_width=100)
