"""Memory that tensors share: views, and writes in place."""

import io

from ..late import LateModule
from ..names.missing import missing_in

serialization = LateModule("jaxgrad.serialization")


def _load_from_bytes(b: bytes):
    """The storage in a pickle of PyTorch. A pickle runs code, as this one may."""
    return serialization.load(io.BytesIO(b), weights_only=False)


__getattr__ = missing_in(__name__)
