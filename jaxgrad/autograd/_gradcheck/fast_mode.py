"""Fast mode: the Jacobian along random directions, by a few evaluations whatever its size.

Reverse mode is compared in one number for each output and input, <u, J v>; forward mode in all
elements of J v. The parts of the directions are between 1 and 2, so an error of one element shows
in the sum at its full size, and the tolerance is the same as in slow mode.
"""

from __future__ import annotations

import numpy

from . import slow_mode
from .problem import directions, product
from .report import FORWARD, REVERSE, WHOLE, Comparison, GradcheckError, heading
from .slow_mode import compare_passes

FAST = "The above quantities are projections of the Jacobians on random directions, as computed in "


def check(subject, settings):
    """Raises GradcheckError where projections differ, with what slow mode finds."""
    generator = numpy.random.default_rng(0)
    comparison = Comparison(settings.tolerance)
    along = directions([subject.input(k) for k in range(len(subject.moving))], generator)
    weights = directions(subject.outputs, generator)
    pulled = [subject.pull_one(i, u) for i, u in enumerate(weights)] if settings.backward else []
    for k, direction in enumerate(along):
        place = subject.moving[k]
        everywhere = numpy.s_[:]
        slopes = subject.slopes(k, everywhere, direction.reshape(-1), settings.eps)
        for i, found in enumerate(pulled):
            numerical = product(weights[i], slopes[i])
            analytical = 0.0 if found[k] is None else product(found[k], direction)
            where = REVERSE, WHOLE, subject.chosen[i], place
            comparison.column(where, 0, numpy.array([numerical]), numpy.array([analytical]))
        if settings.forward:
            tangents = subject.push_one(k, direction)
            for i, (tangent, slope) in enumerate(zip(tangents, slopes, strict=True)):
                where = FORWARD, WHOLE, subject.chosen[i], place
                comparison.column(where, 0, slope.reshape(-1), tangent.reshape(-1))
    if comparison.found:
        place, mismatch = comparison.first()
        said = _message(subject, settings, place, mismatch)
        raise settings.error(place[0], said)
    _check_reentrant(subject, settings, weights, pulled)


def _message(subject, settings, place, mismatch) -> str:
    try:
        slow_mode.check(subject, settings)
    except GradcheckError as error:
        slow = f"In slow mode:\n\n{error}"
    else:
        slow = (
            f"In slow mode, one direction at a time, there is no mismatch: {subject.name} has a "
            "derivative that is not linear in the direction."
        )
    return (
        f"{heading(place)}\n"
        f"numerical:{mismatch.numerical}\nanalytical:{mismatch.analytical}\n\n"
        f"{FAST}fast mode.\n{slow}"
    )


def _check_reentrant(subject, settings, weights, pulled):
    for i, found in reversed(list(enumerate(pulled))):
        compare_passes(subject, i, found, subject.pull_one(i, weights[i]), settings)
