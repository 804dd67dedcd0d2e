"""Results that come later, as torch.futures.

>>> futures = [jaxgrad.futures.Future() for _ in range(2)]
>>> both = jaxgrad.futures.collect_all(futures)
>>> for number, future in enumerate(futures):
...     future.set_result(number)
>>> [future.value() for future in both.wait()]
[0, 1]
"""

from __future__ import annotations

from .compiled.script_names import Future as Future
from .names.missing import missing_in

__all__ = ["Future", "collect_all", "wait_all"]


def collect_all(futures: list[Future]) -> Future:
    """Return a future whose result is the list of these futures, there once all have a result.

    >>> jaxgrad.futures.collect_all([]).wait()
    []
    """
    futures, collected = list(futures), Future()
    waiting = [future for future in futures if not future.done()]
    if not waiting:
        collected.set_result(futures)

    def complete(_):
        if not collected.done() and all(future.done() for future in futures):
            collected.set_result(futures)

    for future in waiting:
        future.add_done_callback(complete)
    return collected


def wait_all(futures: list[Future]) -> list:
    """Return the results of futures. Raises the first of their errors.

    >>> future = jaxgrad.futures.Future()
    >>> future.set_result(3)
    >>> jaxgrad.futures.wait_all([future])
    [3]
    """
    return [future.wait() for future in futures]


__getattr__ = missing_in(__name__)
