"""Operators that read and write elements by their place."""

from samples import Int, Mask, S, T, samples_of

ITEM = "Tensor.__getitem__"
ALL = slice(None)

PLACES = [
    S("select", T(2, 3), 1, 2, complex=True),
    S("select", T(2, 3), dim=-2, index=-1),
    S("ops.select_backward", T(3), (2, 3), 0, -1, complex=True),
    S("select_scatter", T(2, 3), T(2), 1, -1),
    S("select_scatter", T(2, 3), T(3), 0, 1),
    S("ops.slice", T(5, 2), 0, 1, 5, 2, complex=True),
    S("ops.slice", T(2, 3), 1, None, None),
    S("ops.slice", T(5), 0, -2, 9),
    S("ops.slice", T(5), 0, 3, 1),
    S("ops.slice_backward", T(2, 2), (5, 2), 0, 1, 5, 2, complex=True),
    S("ops.slice_backward", T(0, 2), (5, 2), 0, 5, 5, 1),
    S("slice_scatter", T(5, 2), T(2, 2), 0, 1, 5, 2),
    S("slice_scatter", T(2, 3), T(2, 2), dim=1, start=-2),
    S("narrow", T(2, 5), 1, 1, 3, complex=True),
    S("narrow", T(5), 0, start=-2, length=1),
    S("narrow", T(5), 0, 5, 0),
]

ITEMS = [
    S(ITEM, T(6, 2), 4, complex=True),
    S(ITEM, T(3), -1),
    S(ITEM, T(7), slice(4, 6), complex=True),
    S(ITEM, T(9, 2), slice(4, None, 2)),
    S(ITEM, T(3, 2), slice(2, 1)),
    S(ITEM, T(2, 3, 2), (0, ..., 1)),
    S(ITEM, T(2, 3), (None, ALL, slice(1, 3))),
    S(ITEM, T(2), ...),
    S(ITEM, T(), None),
    S(ITEM, T(2, 3), True),
    S(ITEM, T(2, 3), (0, False)),
    S(ITEM, T(3, 2), [2, 0, 2]),
    S(ITEM, T(3, 2), []),
    S(ITEM, T(3, 2), Int(values=[[1, -1], [1, 0]]), complex=True),
    S(ITEM, T(3, 2), Int(values=2)),
    S(ITEM, T(3, 4), (Int(values=[0, 2, 2]), Int(values=[[1], [3]]))),
    S(ITEM, T(2, 3, 4), (Int(values=[1, 1]), ALL, Int(values=[3, 0]))),
    S(ITEM, T(2, 3, 4), (ALL, Int(values=[1, 1]), Int(values=[3, 0]))),
    S(ITEM, T(2, 3, 4), (ALL, Int(values=1), Int(values=[3, 0]))),
    S(ITEM, T(2, 3, 4), (Int(values=1), ALL, Int(values=[3, 0]))),
    S(ITEM, T(3, 2), Mask(values=[True, False, True]), dynamic=True, complex=True),
    S(ITEM, T(2, 3), Mask(2, 3), dynamic=True),
    S(ITEM, T(2, 3), (ALL, Mask(values=[True, False, True])), dynamic=True),
    S(ITEM, T(3, 2), (Mask(values=[True, False, True]), Int(values=[1, 0])), dynamic=True),
    S("masked_select", T(2, 3), Mask(3), dynamic=True, complex=True),
    S("masked_select", T(3), Mask(2, 1), dynamic=True),
    S("masked_select", T(), Mask(values=True), dynamic=True),
    S("nonzero", Int(2, 3, high=2), dynamic=True),
    S("nonzero", Mask(3), as_tuple=True, dynamic=True),
]

TENSORS = [
    S("ops.index", T(3, 2), [Int(values=[0, 2, 2])], complex=True),
    S("ops.index", T(2, 3, 4), [None, Int(values=[0, 2]), Int(values=[[1], [1]])]),
    S("ops.index", T(2, 3, 2), [Int(values=[1, 1]), None, Int(values=[0, -1])]),
    S("ops.index", T(2), [Int(values=0)]),
    S("ops.index", T(2, 3), [Int(0)]),
    S("ops.index_put", T(3, 2), [Int(values=[0, 2])], T(2, 2), complex=True),
    S("ops.index_put", T(3, 2), [Int(values=[0, 2, 2])], T(3, 2), True, complex=True),
    S("ops.index_put", T(3, 2), [Int(values=[0, 0])], T(2), accumulate=True),
    S("ops.index_put", T(3, 4), [None, Int(values=[1, 3])], T()),
    S("ops.index_put", T(2, 2, 3), [Int(values=[1, 1]), None, Int(values=[0, 2])], T(2, 2)),
    S("ops.index_put", T(3), [Int(0)], T()),
    S("index_select", T(3, 2), 0, Int(values=[2, 0, 2]), complex=True),
    S("index_select", T(2, 3), dim=-1, index=Int(values=1)),
    S("index_select", T(2, 3), 1, Int(0)),
    S("index_select", T(), 0, Int(values=[0])),
    S("index_add", T(3, 2), 0, Int(values=[2, 0, 2]), T(3, 2), complex=True),
    S("index_add", T(2, 3), 1, Int(values=[1, 1]), T(2, 2), alpha=2.5),
    S("index_add", T(2, 3), 1, Int(values=2), T(2, 1)),
    S("index_add", T(), 0, Int(values=0), T()),
    S("gather", T(3, 4), 1, Int(3, 2, high=4), complex=True),
    S("gather", T(3, 4), -2, Int(5, 2, high=3)),
    S("gather", T(), 0, Int(values=[0, 0])),
    S("gather", T(2, 3), 0, Int(0, 3)),
    S("gather", T(4), 0, Int(3, high=4, dtype="int32")),
    S("scatter_add", T(3, 4), 1, Int(3, 5, high=4), T(3, 5), complex=True),
    S("scatter_add", T(3, 4), 0, Int(4, 2, high=3), T(4, 2)),
    S("scatter_add", T(2, 3), 0, Int(0, 3), T(0, 3)),
    S("scatter_add", T(), 0, Int(values=0), T()),
    S("scatter", T(3, 4), 1, Int(values=[[3, 1], [0, 2]]), T(2, 2), complex=True),
    S("scatter", T(4), 0, Int(3, high=4, unique=True), T(3)),
    S("scatter", T(), 0, Int(values=0), T()),
    S("scatter", T(3, 4), 1, Int(3, 2, high=4), 2.5, complex=True),
    S("scatter", T(2, 3), 0, Int(1, 3, high=2), value=0),
    S("scatter", Int(4), 0, Int(values=[1]), 7.5),
    S("take", T(2, 3), Int(values=[[0, 5], [-1, 5]]), complex=True),
    S("take", T(3), index=Int(values=1)),
    S("take", T(0), Int(0)),
    S("take_along_dim", T(3, 4), Int(3, 2, high=4), 1, complex=True),
    S("take_along_dim", T(1, 4), Int(3, 1, high=4), dim=1),
    S("take_along_dim", T(2, 3), Int(1, 3, high=2), 0),
    S("take_along_dim", T(2, 2), Int(3, high=4)),
]

TWICE = Int(values=[[0, 0, 1, 1], [2, 2, 2, 0]])
ZEROS = T(values=[[0.0, 0.0, 1.5, 0.0], [-0.75, 0.0, 2.0, 1.25]])
TIES = T(values=[[1.0, 1.0, -1.5, 2.0], [0.5, -2.0, 2.0, 2.0]])
PAIR, PAIRS = T(values=[[1.0, 2.0]]), T(values=[[1.0, 2.0], [1.0, 0.5]])

REDUCED = [
    S("scatter_reduce", T(2, 3), 1, TWICE, T(2, 4), "sum"),
    S("scatter_reduce", T(2, 3), 1, TWICE, ZEROS, "prod", include_self=False),
    S("scatter_reduce", T(2, 3), 1, TWICE, T(2, 4), "amax"),
    S("scatter_reduce", T(2, 3), 1, TWICE, T(2, 4), "prod"),
    S("scatter_reduce", T(2, 3), -1, TWICE, T(2, 4), "mean", include_self=False),
    S("scatter_reduce", T(3, 4), 0, TWICE, T(2, 4), "mean"),
    S("scatter_reduce", T(2, 3), 1, TWICE, T(2, 4), "amin", include_self=False),
    S("scatter_reduce", T(values=[[1.0, 2.0, 2.0]] * 2), 1, TWICE, TIES, "amax", kink=True),
    S("scatter_reduce", T(2, 3), 1, Int(0, 3), T(0, 3), "amin", include_self=False),
    S("scatter_reduce", T(), 0, Int(values=0), T(), "prod"),
    S("scatter_reduce", Int(2, 3), 1, TWICE, Int(2, 4), "mean"),
    S("index_reduce", T(2, 3), 1, Int(values=[2, 0, 2]), T(2, 3), "prod"),
    S("index_reduce", T(3, 2), 0, Int(values=[2, 0, 2]), T(3, 2), "amin", include_self=False),
    S("index_reduce", T(3, 2), -2, Int(values=[1, 1]), T(2, 2), "mean"),
    S("index_reduce", T(4), 0, Int(values=[2, 2, 0]), T(values=[0.0, 0.0, 1.5]), "prod"),
    S("index_reduce", PAIR, 0, Int(values=[0, 0]), PAIRS, "amax", kink=True),
    S("index_reduce", T(), 0, Int(values=0), T(), "amax", include_self=False),
    S("Tensor.scatter_reduce", T(3), 0, Int(values=[0, 0]), T(2), reduce="amin"),
]

COUNTED = [
    S("nonzero_static", T(2, 3), size=7),
    S("nonzero_static", Int(3, high=2), size=1, fill_value=9),
    S("argwhere", Int(2, 3, high=2), dynamic=True),
    S("repeat_interleave", T(2, 3), 2, complex=True),
    S("repeat_interleave", T(2, 3), 2, -1),
    S("repeat_interleave", T(2, 3), Int(values=[1, 0, 2]), 1, dynamic=True, complex=True),
    S("repeat_interleave", T(2, 3), Int(values=[0, 2]), dim=0, output_size=2),
    S("repeat_interleave", T(3), Int(values=[2]), output_size=6),
    S("repeat_interleave", Int(values=[2, 0, 1]), dynamic=True),
    S("unravel_index", Int(2, 2, high=6), (2, 3)),
]

NAN = float("nan")

MASKS = [
    S("masked_fill", T(2, 3), Mask(3), 1.5, complex=True),
    S("masked_fill", T(2, 3), mask=Mask(2, 1), value=0),
    S("masked_fill", T(3), Mask(2, 1), -7.25),
    S("masked_fill", T(values=[NAN, 1.0]), Mask(values=[True, False]), 0),
    S("masked_fill", Int(3), Mask(3), 2.5),
    S("masked_fill", T(2, 3), Mask(3), T(), complex=True),
    S("masked_fill", T(2, constant=True), Mask(values=[True, True]), T()),
    S("masked_fill", T(2), Mask(2), Int()),
    *samples_of("tril triu", T(3, 4), complex=True),
    *samples_of("tril triu", T(2, 3, 2), 1),
    *samples_of("tril triu", T(3, 3), diagonal=-1),
    *samples_of("tril triu", T(0, 2)),
]

SAMPLES = [*PLACES, *ITEMS, *TENSORS, *REDUCED, *COUNTED, *MASKS]
