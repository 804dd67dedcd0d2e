"""A line search for the strong Wolfe conditions, as PyTorch's computes it.

It first brackets a minimum, then zooms in; each trial is the minimum of the cubic through two
points. Source: Nocedal and Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# c1 and c2 of the strong Wolfe conditions.
DESCENT, CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """A step size `t` with the loss, the gradient and the slope along the direction."""

    t: float
    loss: float
    gradient: Any
    slope: float


class LineSearch:
    """A search from `start` (step size 0) along a direction.

    evaluate: returns the point at a step size. limit: of evaluations after the first. reach: the
    largest entry of the direction. tolerance: the width below which a bracket is not divided.
    """

    def __init__(self, evaluate, start: Point, limit: int, reach: float, tolerance: float):
        self.evaluate, self.start, self.limit = evaluate, start, limit
        self.reach, self.tolerance = reach, tolerance
        self.tries = 0

    @property
    def evaluations(self) -> int:
        return self.tries + 1

    def run(self, t: float) -> Point:
        """Return the point to step to; `t` is the first trial."""
        points, done = self.bracket(t)
        return points[0] if done else self.zoom(points)

    def violates_descent(self, point) -> bool:
        """Return whether the loss exceeds the sufficient decrease (Armijo) bound."""
        return point.loss > self.start.loss + DESCENT * point.t * self.start.slope

    def meets_curvature(self, point) -> bool:
        """Return whether the slope meets the strong curvature condition."""
        return abs(point.slope) <= -CURVATURE * self.start.slope

    def bracket(self, t):
        """Return a bracket of a minimum, or a point that meets both conditions, and whether it is
        one.
        """
        before, point = self.start, self.evaluate(t)
        while self.tries < self.limit:
            rises = self.tries > 1 and point.loss >= before.loss
            if self.violates_descent(point) or rises:
                return [before, point], False
            if self.meets_curvature(point):
                return [point], True
            if point.slope >= 0:
                return [before, point], False
            bounds = point.t + 0.01 * (point.t - before.t), point.t * 10
            t = cubic_minimum(before, point, bounds)
            before, point = point, self.evaluate(t)
            self.tries += 1
        return [self.start, point], False

    def zoom(self, points) -> Point:
        """Shrink a bracket until its lower point meets both conditions, and return that point."""
        low, high = lower_first(points)
        is_stuck, done = False, False
        while not done and self.tries < self.limit:
            first, second = points
            if abs(second.t - first.t) * self.reach < self.tolerance:
                break
            bounds = min(first.t, second.t), max(first.t, second.t)
            t, is_stuck = keep_inside(cubic_minimum(first, second, bounds), bounds, is_stuck)
            point = self.evaluate(t)
            self.tries += 1
            if self.violates_descent(point) or point.loss >= points[low].loss:
                points[high] = point
                low, high = lower_first(points)
                continue
            done = self.meets_curvature(point)
            if not done and point.slope * (points[high].t - points[low].t) >= 0:
                points[high] = points[low]
            points[low] = point
        return points[low]


def lower_first(points) -> tuple[int, int]:
    """Return the indices of the lower and the higher end of a bracket."""
    return (0, 1) if points[0].loss <= points[-1].loss else (1, 0)


def keep_inside(t, bounds, is_stuck):
    """Return a trial away from the bounds of the bracket, and whether it was close to one.

    A trial close to a bound is moved if the last one was close too, or if it lies on the bound.
    """
    low, high = bounds
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if not (is_stuck or t >= high or t <= low):
        return t, True
    return (high - margin if abs(t - high) < abs(t - low) else low + margin), False


def cubic_minimum(first: Point, second: Point, bounds) -> float:
    """Return the minimum within bounds of the cubic with the losses and slopes of two points.

    Without a minimum it is the middle of the bounds.
    """
    low, high = bounds
    near, far = (first, second) if first.t <= second.t else (second, first)
    with np.errstate(all="ignore"):  # a division by zero is clamped to a bound
        width = np.float64(near.t) - far.t
        d1 = near.slope + far.slope - 3 * (near.loss - far.loss) / width
        square = d1**2 - near.slope * far.slope
        if not square >= 0:
            return (low + high) / 2.0
        d2 = np.sqrt(square)
        part = (far.slope + d2 - d1) / (far.slope - near.slope + 2 * d2)
        return float(min(max(far.t - (far.t - near.t) * part, low), high))
