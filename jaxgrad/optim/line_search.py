"""A search along a direction for a step that satisfies the strong Wolfe conditions.

It goes as PyTorch's does, number by number: out until a minimum is enclosed, then in, with the
minimum of a cubic through two points as the next guess.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# how much of the promised descent is enough, and how much of the slope may be left
DESCENT, CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """How far along the direction, and there the loss, the gradient and the slope."""

    t: float
    loss: float
    gradient: Any
    slope: float


class Search:
    """evaluate: gives the point at a distance; start: the point at 0; limit: on evaluations after
    the first; reach: the largest entry of the direction; tolerance: the width of what is not worth
    dividing further.
    """

    def __init__(self, evaluate, start: Point, limit: int, reach: float, tolerance: float):
        self.evaluate, self.start, self.limit = evaluate, start, limit
        self.reach, self.tolerance = reach, tolerance
        self.tries = 0

    @property
    def evaluations(self) -> int:
        return self.tries + 1

    def run(self, t: float) -> Point:
        """The point to go to, with `t` as the first guess."""
        points, done = self.enclose(t)
        return points[0] if done else self.narrow(points)

    def falls_short(self, point) -> bool:
        return point.loss > self.start.loss + DESCENT * point.t * self.start.slope

    def is_flat(self, point) -> bool:
        return abs(point.slope) <= -CURVATURE * self.start.slope

    def enclose(self, t):
        before, point = self.start, self.evaluate(t)
        while self.tries < self.limit:
            rises = self.tries > 1 and point.loss >= before.loss
            if self.falls_short(point) or rises:
                return [before, point], False
            if self.is_flat(point):
                return [point], True
            if point.slope >= 0:
                return [before, point], False
            bounds = point.t + 0.01 * (point.t - before.t), point.t * 10
            t = cubic_minimum(before, point, bounds)
            before, point = point, self.evaluate(t)
            self.tries += 1
        return [self.start, point], False

    def narrow(self, points) -> Point:
        low, high = lower_first(points)
        is_stuck, done = False, False
        while not done and self.tries < self.limit:
            first, second = points
            if abs(second.t - first.t) * self.reach < self.tolerance:
                break
            bounds = min(first.t, second.t), max(first.t, second.t)
            t, is_stuck = apart(cubic_minimum(first, second, bounds), bounds, is_stuck)
            point = self.evaluate(t)
            self.tries += 1
            if self.falls_short(point) or point.loss >= points[low].loss:
                points[high] = point
                low, high = lower_first(points)
                continue
            done = self.is_flat(point)
            if not done and point.slope * (points[high].t - points[low].t) >= 0:
                points[high] = points[low]
            points[low] = point
        return points[low]


def lower_first(points) -> tuple[int, int]:
    return (0, 1) if points[0].loss <= points[-1].loss else (1, 0)


def apart(t, bounds, is_stuck):
    """A guess kept away from the bounds where the last one was near them too, or is on one; and
    whether this one is near.
    """
    low, high = bounds
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if not (is_stuck or t >= high or t <= low):
        return t, True
    return (high - margin if abs(t - high) < abs(t - low) else low + margin), False


def cubic_minimum(first: Point, second: Point, bounds) -> float:
    """Where the cubic with the losses and slopes of two points is least, within bounds; the middle
    of these where it is least nowhere.
    """
    low, high = bounds
    near, far = (first, second) if first.t <= second.t else (second, first)
    with np.errstate(all="ignore"):  # a division by zero ends at a bound
        width = np.float64(near.t) - far.t
        d1 = near.slope + far.slope - 3 * (near.loss - far.loss) / width
        square = d1**2 - near.slope * far.slope
        if not square >= 0:
            return (low + high) / 2.0
        d2 = np.sqrt(square)
        part = (far.slope + d2 - d1) / (far.slope - near.slope + 2 * d2)
        return float(min(max(far.t - (far.t - near.t) * part, low), high))
