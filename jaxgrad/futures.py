"""Results that come later, as torch.futures.

>>> futures = [jaxgrad.futures.Future() for _ in range(2)]
>>> both = jaxgrad.futures.collect_all(futures)
>>> for number, future in enumerate(futures):
...     future.set_result(number)
>>> [future.value() for future in both.wait()]
[0, 1]
"""

from __future__ import annotations

from .compiled.future import Future as Future
from .compiled.future import collect_all as collect_all
from .compiled.future import wait_all as wait_all
from .names.missing import missing_in

__all__ = ["Future", "collect_all", "wait_all"]
__getattr__ = missing_in(__name__)
