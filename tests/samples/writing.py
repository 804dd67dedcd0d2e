"""Operators that write to a tensor, as functions that give the tensor that is written to."""

from samples import Int, Mask, S, T

EVERYWHERE = [
    S("ops.copy", T(2, 3), T(2, 3), complex=True),
    S("ops.copy", T(2, 3), T(3), complex=True),
    S("ops.copy", T(2, 3), T(2, 1), non_blocking=True),
    S("ops.copy", T(), T()),
    S("ops.copy", T(0, 3), T(3)),
    S("ops.copy", T(2), T(2, real=True), complex="only"),
    S("ops.copy", T(2), Int(2)),
    S("ops.copy", Int(3), T(3)),
    S("ops.copy", Mask(3), Int(3, low=-1, high=2)),
    S("fill", T(2, 3), T(), complex=True),
    S("fill", T(2, real=True), T(), complex="only"),
    S("fill", T(2), T(real=True, constant=True), complex="only"),
    S("fill", T(0), T()),
    S("fill", T(), value=Int()),
    S("fill", Int(2), T(constant=True)),
    S("fill", T(2, 3), 2.5, complex=True),
    S("fill", T(), 0),
    S("fill", Int(2), 7.5),
    S("fill", Mask(2), 2.5),
    S("ops.zero", T(2, 3)),
    S("ops.zero", Int(2)),
]

DIMENSIONS = [
    S("index_copy", T(3, 2), 0, Int(2, high=3, unique=True), T(2, 2), complex=True),
    S("index_copy", T(2, 3, 2), -2, Int(2, high=3, unique=True), T(2, 2, 2)),
    S("index_copy", T(2, 3), 1, Int(values=2), T(2, 1)),
    S("index_copy", T(3), 0, Int(values=1), source=T()),
    S("index_copy", T(2, 3), 1, Int(0), T(2, 0)),
    S("index_copy", T(), 0, Int(values=[0]), T()),
    S("index_copy", T(), 0, Int(values=0), T(1)),
    S("index_copy", Int(4), 0, Int(values=[3, 1]), Int(2)),
    S("index_fill", T(3, 2), 0, Int(values=[2, 0, 2]), T(), complex=True),
    S("index_fill", T(2, 3), -1, Int(2, high=3), value=T()),
    S("index_fill", T(), 0, Int(values=[0, 0]), T()),
    S("index_fill", T(3, 2), 0, Int(values=[-1, 0]), T(constant=True)),
    S("index_fill", T(2, 3), 1, Int(values=2), Int()),
    S("index_fill", T(2, 3), 1, Int(2, high=3), 2.5, complex=True),
    S("index_fill", T(), 0, Int(values=0), 0),
    S("index_fill", T(3), 0, Int(0), value=-7.25),
    S("index_fill", Int(3), 0, Int(values=[1]), 2.5),
]

PLACES = [
    S("put", T(2, 3), Int(2, high=6, unique=True), T(2), complex=True),
    S("put", T(2, 3), Int(values=[[1], [-1]]), source=T(2)),
    S("put", T(2, 3), Int(values=[4, 0]), T(2, 1)),
    S("put", T(2, 3), Int(values=[1, 1, -2]), T(3), True, complex=True),
    S("put", T(), Int(values=[0, 0]), T(2), accumulate=True),
    S("put", T(), Int(values=0), T()),
    S("put", T(0), Int(0), T(0)),
    S("put", Mask(3), Int(values=[1, 1]), Mask(2), True),
    S("masked_scatter", T(2, 3), Mask(2, 3), T(7), complex=True),
    S("masked_scatter", T(2, 3), Mask(values=[True, False, True]), T(2, 2), complex=True),
    S("masked_scatter", T(3), Mask(2, 1), source=T(2, 3)),
    S("masked_scatter", T(), Mask(values=True), T(2)),
    S("masked_scatter", T(2), Mask(values=[False, False]), T(0)),
    S("masked_scatter", T(0, 3), Mask(3), T(2)),
    S("masked_scatter", Int(3), Mask(3), Int(3)),
]

STRIDES = [
    S("diagonal_scatter", T(2, 3), T(2), complex=True),
    S("diagonal_scatter", T(3, 2, 3), T(2, 2), 1, 2, 0),
    S("diagonal_scatter", T(3, 3), T(2), offset=-1),
    S("diagonal_scatter", T(2, 3), T(0), 5),
    S("diagonal_scatter", T(2, 3), Int(2)),
    S("diagonal_scatter", Int(2, 3), T(2, constant=True)),
    S("as_strided_scatter", T(2, 3), T(2, 2), (2, 2), (1, 2), complex=True),
    S("as_strided_scatter", T(2, 3), T(2, 2), (2, 2), (2, 1), 2),
    S("as_strided_scatter", T(2, 3), T(), size=(), stride=(), storage_offset=4),
    S("as_strided_scatter", T(2, 3), T(0, 2), (0, 2), (1, 1)),
    S("as_strided_scatter", T(4), Int(2), (2,), (3,)),
    S("ops._fill_diagonal", T(3, 3), 2.5, complex=True),
    S("ops._fill_diagonal", T(7, 2), 2, True, complex=True),
    S("ops._fill_diagonal", T(7, 2), fill_value=0),
    S("ops._fill_diagonal", T(3, 2), -1.5, wrap=True),
    S("ops._fill_diagonal", T(2, 4), 1, True),
    S("ops._fill_diagonal", T(3, 3, 3), 7.25, True),
    S("ops._fill_diagonal", T(0, 3), 2),
    S("ops._fill_diagonal", Int(2, 2), 2.5),
]

SAMPLES = [*EVERYWHERE, *DIMENSIONS, *PLACES, *STRIDES]
