"""Losses of logits that are sharded over classes."""

from __future__ import annotations

import contextlib

from ....names.not_provided import names_of


@contextlib.contextmanager
def loss_parallel():
    """A block in which cross entropy takes logits that are sharded over their classes. It changes
    nothing: XLA's partitioner keeps them sharded in any case.

    >>> from jaxgrad.distributed.tensor.parallel import loss_parallel
    >>> with loss_parallel():
    ...     pass
    """
    yield


__getattr__, __dir__ = names_of(__name__)
