"""Memory that tensors share: views, and writes in place."""

import io
import sys

from ..names.missing import missing_in


def _load_from_bytes(b: bytes):
    """The storage in a pickle of PyTorch. A pickle runs code, as this one may."""
    serialization = sys.modules["jaxgrad"].serialization
    return serialization.load(io.BytesIO(b), weights_only=False)


__getattr__ = missing_in(__name__)
