"""Memory that tensors share: views, and writes in place. Like PyTorch's module of this name it has
the classes of storages, which stand in frontend/storages.py.
"""

from ..late import LateModule
from ..names.missing import missing_in

not_provided = LateModule("jaxgrad.names.not_provided")

_CLASSES = frozenset(("TypedStorage", "UntypedStorage"))
_missing = missing_in(__name__)


def __getattr__(name):
    return not_provided.resolve(f"torch.storage.{name}") if name in _CLASSES else _missing(name)
