"""Records the strides that PyTorch gives new tensors, views and pointwise results.

make record PARTS=layouts

A layout is [shape, strides]; cases refer to it by its position in the list of layouts. A view is
[layout, arguments, [strides, offset]], with null for the last if the operator copies or raises. A
tensor among the arguments is recorded as its shape.
"""

import itertools

import torch
from helpers.answers import beside, save

STRIDES = {
    (): [()],
    (1,): [(1,), (7,)],
    (0,): [(1,)],
    (2,): [(1,)],
    (6,): [(1,), (2,), (0,)],
    (2, 3): [(3, 1), (1, 2), (6, 2), (0, 1)],
    (1, 3): [(9, 1)],
    (3, 1): [(1, 1), (2, 7)],
    (1, 1): [(5, 7)],
    (3, 2): [(2, 1)],
    (4, 3): [(1, 1)],
    (4, 4): [(1, 1)],
    (0, 2): [(2, 1)],
    (0, 3): [(3, 1)],
    (2, 3, 4): [(12, 4, 1), (1, 2, 6), (4, 8, 1), (24, 8, 2), (0, 4, 1), (4, 0, 1)],
    (2, 1, 4): [(4, 4, 1), (1, 9, 2), (4, 1, 1)],
    (2, 0, 4): [(4, 4, 1), (1, 2, 2)],
    (2, 4, 4): [(16, 5, 1)],
    (1, 3, 1): [(0, 1, 0)],
    (3, 1, 2): [(4, 8, 1)],
    (3, 2, 2): [(0, 2, 1)],
    (2, 3, 4, 5): [(60, 20, 5, 1), (60, 1, 15, 3), (1, 2, 6, 24), (1, 40, 10, 2)],
    (2, 1, 4, 5): [(20, 1, 5, 1)],
    (2, 3, 1, 1): [(3, 1, 3, 3)],
    (1, 3, 4, 5): [(60, 20, 5, 1), (7, 1, 15, 3)],
    (1, 3, 1, 5): [(15, 1, 15, 3)],
    (2, 0, 4, 5): [(0, 1, 0, 0)],
    (2, 3, 2, 2, 2): [(24, 8, 4, 2, 1), (24, 1, 12, 6, 3)],
    (1, 3, 2, 2, 2): [(7, 1, 12, 6, 3)],
}
LAYOUTS = [(shape, strides) for shape, several in STRIDES.items() for strides in several]
SIZES = [
    *((), (1,), (-1,), (6,), (3, 2), (2, 3), (1, 6), (2, 1, 3), (2, -1), (-1, 3), (6, 4), (2, 12)),
    *((2, 3, 2, 2), (3, 0), (0, 5), (-1, 5), (1, 1, 1), (2, 3, 20), (6, 4, 5), (2, 1, 3, 4, 5)),
    *((2, 15, 4), (40, 3), (120,), (2, 3, 4), (0, 3)),
]
EXPANDED = [
    *((), (1,), (6,), (1, 6), (3, 6), (2, 3), (1, 2, 3), (4, -1, -1), (1, 1, 2, 3), (2, 4, 1, 3)),
    *((1, 1, 1), (0, 1), (3, 3), (2, 3, 4), (2, 1, 2, 3, 4), (1, -1, -1, -1), (1, 4, 3, 2), (0, 3)),
]
PAIRS = [(0, 0), (0, 1), (1, 0), (-1, 0), (1, -1), (0, -2), (-3, 2), (1, 3)]
PLACES = [(None, None, 1), (1, None, 1), (None, -1, 2), (-2, None, 1), (5, 9, 1), (2, 1, 3)]
ARGUMENTS = {
    "alias": [()],
    "detach": [()],
    "positive": [()],
    "conj": [()],
    "t": [()],
    "ravel": [()],
    "view": [(size,) for size in SIZES],
    "reshape": [(size,) for size in SIZES],
    "view_as": [((3, 2),), ((6,),)],
    "reshape_as": [((3, 2),), ((6,),)],
    "flatten": [(), (1,), (0, 1), (-2, -1), (1, 2), (1, 1)],
    "unflatten": [
        (0, (1, -1)),
        (-1, (2, -1)),
        (1, (3, 1)),
        (2, (2, 2)),
        (0, (-1, 1, 2)),
        (0, (0,)),
    ],
    "squeeze": [(), *((dim,) for dim in (0, 1, -1)), ((),), ((0, 2),), ((-1, 0),)],
    "unsqueeze": [(dim,) for dim in range(-4, 5)],
    "expand": [(size,) for size in EXPANDED],
    "expand_as": [((4, 2, 3),), ((1, 6),)],
    "broadcast_to": [((4, 2, 3),), ((1, 6),)],
    "permute": [((),), ((1, 0),), ((2, 0, 1),), ((-1, 0, -2),), ((0, 2, 3, 1),), ((3, 2, 1, 0),)],
    "transpose": PAIRS,
    "swapaxes": PAIRS[:3],
    "swapdims": PAIRS[:3],
    "movedim": [*PAIRS, ((0, 1), (1, 2)), ((2, -3), (0, 1)), ((), ()), ((3, 1), (0, -2))],
    "moveaxis": PAIRS[:3],
    "diagonal": [(), (1,), (-1,), (9,), (0, 0, 2), (1, -1, 0), (-2, 1, -1), (2, -2, -1)],
    "select": [(0, 0), (0, -1), (1, 2), (-1, 3), (-2, -2)],
    "_select": [(0, 1), (1, 2), (2, 3)],
    "slice": [(), *((dim, *place) for dim in (0, -1) for place in PLACES)],
    "_slice": [(0, 1, 1, 1), (1, 1, 2, 1), (0, 0, 1, 3), (2, 1, 2, 2), (1, 3, 0, 2)],
    "narrow": [(0, 0, 1), (0, -1, 1), (1, 1, 2), (1, 3, 0), (-1, 1, 0)],
    "unfold": [(0, 1, 1), (0, 2, 3), (-1, 3, 1), (1, 2, 1), (1, 0, 2)],
    "as_strided": [((2, 2), (1, 1)), ((3,), (2,), None), ((), (), 2)],
    "real": [()],
    "imag": [()],
    "view_as_real": [()],
    "view_as_complex": [()],
    "_neg_view": [()],
}
FUNCTIONS = {
    "alias": torch.ops.aten.alias,
    "view_as": lambda x, shape: x.view_as(torch.empty(shape)),
    "reshape_as": lambda x, shape: x.reshape_as(torch.empty(shape)),
    "expand_as": lambda x, shape: x.expand_as(torch.empty(shape)),
    "slice": torch.ops.aten.slice.Tensor,
    "_select": torch.select,
    "_slice": lambda x, dim, start, length, step: torch.ops.aten.slice.Tensor(
        x.narrow(dim, start, max((length - 1) * step + 1, 0)), dim, step=step
    ),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "view_as_real": torch.view_as_real,
    "view_as_complex": torch.view_as_complex,
    "_neg_view": torch._neg_view,
}
COMPLEX = ("real", "imag", "view_as_real")


def tensor(layout, dtype=torch.float32):
    shape, strides = layout
    return torch.empty(2000, dtype=dtype).as_strided(shape, strides)


def answer(name, x, arguments):
    """Strides and offset of the view; None for no view; LookupError where the call is a mistake."""
    function = FUNCTIONS.get(name) or getattr(torch.Tensor, name)
    try:
        result = function(x, *arguments)
    except (IndexError, RuntimeError) as error:
        if "view size is not compatible" in str(error):
            return None
        raise LookupError(name) from error
    same = result.untyped_storage()._cdata == x.untyped_storage()._cdata
    return [list(result.stride()), result.storage_offset()] if same else None


def views():
    for name, calls in ARGUMENTS.items():
        dtype = torch.complex64 if name in COMPLEX else torch.float32
        for (place, layout), arguments in itertools.product(enumerate(LAYOUTS), calls):
            try:
                yield name, (place, arguments, answer(name, tensor(layout, dtype), arguments))
            except LookupError:
                continue


def new_tensors():
    """[shape, strides of a new one, strides of a new one with channels last or null]."""
    words = {4: torch.channels_last, 5: torch.channels_last_3d}
    for shape in STRIDES:
        word = words.get(len(shape))
        last = word and list(torch.empty(shape, memory_format=word).stride())
        yield shape, list(torch.empty(shape).stride()), last


def facts():
    """[contiguous, channels last, dense, strides of a copy], for each layout."""
    words = {4: torch.channels_last, 5: torch.channels_last_3d}
    for layout in LAYOUTS:
        x = tensor(layout)
        last = x.ndim in words and x.is_contiguous(memory_format=words[x.ndim])
        dense = torch.ops.aten.is_non_overlapping_and_dense(x)
        assert torch.empty_like(x).stride() == x.clone().stride()
        yield x.is_contiguous(), last, dense, list(x.clone().stride())


def pointwise():
    """[layouts of the operands, shape, strides]."""
    places = range(len(LAYOUTS))
    pairs = itertools.combinations_with_replacement(places, 2)
    turned = ((right, left) for left, right in itertools.pairwise(places))
    triples = ((place, place + 2, place + 1) for place in places[:-2])
    functions = {1: torch.sin, 2: torch.add, 3: torch.addcmul}
    for operands in (*((place,) for place in places), *pairs, *turned, *triples):
        try:
            result = functions[len(operands)](*(tensor(LAYOUTS[place]) for place in operands))
        except RuntimeError:
            continue  # shapes that do not fit
        yield operands, list(result.shape), list(result.stride())


def main():
    recorded = {"layouts": LAYOUTS, "new": list(new_tensors()), "facts": list(facts())}
    recorded |= {"pointwise": list(pointwise()), "views": {}}
    for name, case in views():
        recorded["views"].setdefault(name, []).append(case)
    save(beside("core/test_strides.py"), recorded)


if __name__ == "__main__":
    main()
