"""torch.utils.weak: mappings by the identity of tensors."""

import gc

import jaxgrad as torch
from jaxgrad.utils import weak


def test_an_entry_goes_with_its_tensor():
    counts = weak.WeakTensorKeyDictionary()
    x, y = torch.ones(2), torch.ones(2)
    counts[x], counts[y] = 1, 2
    assert [counts[x], counts[y], len(counts), torch.ones(2) in counts] == [1, 2, 2, False]
    assert {id(key) for key in counts} == {id(x), id(y)} and len(counts.keyrefs()) == 2
    del x
    gc.collect()
    assert list(counts.values()) == [2]
    del counts[y]
    assert y not in counts and 3 not in counts


def test_references():
    x = torch.ones(2)
    reference, tensor_reference = weak.WeakIdRef(x), weak.TensorWeakRef(x)
    assert reference() is x and tensor_reference() is x and reference == weak.WeakIdRef(x)
    del x
    gc.collect()
    assert reference() is None and tensor_reference() is None
