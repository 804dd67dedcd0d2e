"""Weak references by identity, as torch.utils.weak: tensors compare elementwise."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping

from ..names.not_provided import names_of
from ..tape.tensor import Tensor


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another if both are to one object.

    >>> x = jaxgrad.ones(2)
    >>> WeakIdRef = jaxgrad.utils.weak.WeakIdRef
    >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(jaxgrad.ones(2))
    (True, False)
    """

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        one, two = self(), other()
        return self is other if one is None or two is None else one is two


class TensorWeakRef:
    """A weak reference to a tensor: a call returns the tensor, or None once it is gone.

    >>> x = jaxgrad.ones(2)
    >>> reference = jaxgrad.utils.weak.TensorWeakRef(x)
    >>> reference() is x
    True
    """

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping):
    """A mapping whose keys are weak references by identity; an entry goes with its key.

    >>> counts = jaxgrad.utils.weak.WeakIdKeyDictionary()
    >>> x = jaxgrad.ones(2)
    >>> counts[x] = 3
    >>> counts[x], jaxgrad.ones(2) in counts
    (3, False)
    """

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data, self.ref_type = {}, ref_type
        self.update(dict or {})

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._removal())] = value

    def _removal(self):
        mapping = weakref.ref(self)

        def remove(reference):
            if mapping() is not None:
                mapping().data.pop(reference, None)

        return remove

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __contains__(self, key) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # it has no weak references
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator:
        keys = (reference() for reference in list(self.data))
        return (key for key in keys if key is not None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list:
        """Return the weak references to the keys."""
        return list(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary
__getattr__, __dir__ = names_of(__name__)
