"""`Timer`, which runs a statement many times."""

from __future__ import annotations

import sys
import time
import timeit
from collections.abc import Callable

from ...core.device import default_device, wait_for
from ...names.missing import missing_in
from .measurement import Measurement, TaskSpec

# of runs that are too short, the clock itself takes a part
LEAST = 1e-6


def timer() -> float:
    """Return the time in seconds, once all work that has been begun is done."""
    wait_for(default_device())
    return time.perf_counter()


class Timer:
    """Measures a statement, and waits for its results: JAX computes in the background.

    stmt: Python code; setup: code that runs before it. timer: a function that gives the time in
    seconds. globals: the names that the code sees, besides `torch`. label, sub_label, description,
    env: texts that the measurement shows. num_threads and the others have no effect.

    >>> x = jaxgrad.ones(3)
    >>> measured = jaxgrad.utils.benchmark.Timer("x * x", globals={"x": x}).timeit(10)
    >>> measured.median > 0, measured.number_per_run
    (True, 10)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language="python",
    ):
        if str(getattr(language, "name", language)).lower() not in ("python", "py"):
            raise NotImplementedError("torch.utils.benchmark.Timer measures Python code alone")
        names = {"torch": sys.modules["jaxgrad"], **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, names)
        texts = label, sub_label, description, env, num_threads
        self._task_spec = TaskSpec(stmt, setup, global_setup, *texts)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Run the statement `number` times, after a hundredth as many that are not measured."""
        self._timer.timeit(max(number // 100, 2))
        return Measurement(number, [self._timer.timeit(number)], self._task_spec)

    def autorange(self, callback: Callable | None = None):
        """Raise NotImplementedError, as in PyTorch: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange`.")

    def repeat(self, repeat: int = -1, number: int = -1):
        """Raise NotImplementedError, as in PyTorch: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange`.")

    def blocked_autorange(
        self, callback: Callable | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Run the statement in blocks so long that the clock does not count, until they have taken
        `min_run_time` seconds. callback: called with the number of runs and the time of each block.
        """
        number, times, total = self._block_size(min_run_time), [], 0.0
        while total < min_run_time or not times:
            times.append(self._timer.timeit(number))
            total += times[-1]
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable | None = None,
    ) -> Measurement:
        """Run the statement in blocks until their times differ by less than `threshold`: the range
        of the middle half over the median; `max_run_time` seconds at most.
        """
        number, times = self._block_size(min_run_time), []
        while True:
            block = []
            while sum(block) < min_run_time or not block:
                block.append(self._timer.timeit(number))
            times += block
            measurement = Measurement(number, times, self._task_spec)
            if callback is not None:
                callback(number, sum(block))
            is_stable = len(times) > 3 and measurement.iqr / measurement.median < threshold
            if is_stable or sum(times) >= max_run_time:
                return measurement

    def _block_size(self, min_run_time) -> int:
        """The number of runs that take a thousandth of `min_run_time`, and much longer than reading
        the clock.
        """
        clock = timeit.Timer("pass", timer=self._timer.timer).timeit(0)
        number = 1
        self._timer.timeit(2)  # compiles
        while True:
            taken = self._timer.timeit(number)
            if taken >= max(LEAST, min_run_time / 1000) and clock <= taken * 1e-2:
                return number
            if taken > min_run_time:
                return number
            number *= 10


__getattr__ = missing_in(__name__)
