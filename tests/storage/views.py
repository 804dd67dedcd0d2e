"""The kinds of view of the matrix: as PyTorch calls them, and as an indexing of places."""

import dataclasses
from collections.abc import Callable

import numpy
from storage import functional

MATRIX = (4, 6)  # of the base; views share few shapes, and so the kernels that compile for them


@dataclasses.dataclass(frozen=True)
class View:
    """A kind of view.

    stand_in: for a view that is one of several, the call that gives the same one alone; PyTorch
    refuses to read the former when its memory was written through another handle.
    """

    name: str
    call: Callable  # of the module and a tensor
    handle: Callable  # of a functional.Handle
    shape: tuple = MATRIX
    is_complex: bool = False
    stand_in: Callable | None = None

    @property
    def pair(self):
        return self.stand_in or self.call

    def __str__(self):
        return self.name


def simple(name, call, index, **options):
    return View(
        name, lambda torch, x: call(x), lambda handle: functional.viewed(handle, index), **options
    )


def of_complex(name, call, handle):
    return View(name, lambda torch, x: call(x), handle, is_complex=True)


def piece(name, call, index):
    """One of several views that are made at once: rows 2 and 3, or row 2."""
    return View(
        name,
        lambda torch, x: call(x),
        lambda handle: functional.viewed(handle, index),
        stand_in=lambda torch, x: index(x),
    )


def strided(shape, strides, offset):
    """as_strided, whose strides count elements."""

    def index(places):
        memory = numpy.arange(1) if places.base is None else places.base
        return numpy.ndarray(
            shape, int, memory, offset * memory.itemsize, [s * memory.itemsize for s in strides]
        )

    return index


def unfolded(places):
    return numpy.lib.stride_tricks.sliding_window_view(places, 3, axis=1)[:, ::3]


VIEWS = (
    simple("select", lambda x: x.select(0, 2), lambda p: p[2]),
    simple("slice", lambda x: x[1:4], lambda p: p[1:4]),
    simple("slice_with_step", lambda x: x[:, 1::2], lambda p: p[:, 1::2]),
    simple("narrow", lambda x: x.narrow(1, 2, 3), lambda p: p[:, 2:5]),
    simple("transpose", lambda x: x.transpose(0, 1), lambda p: p.T),
    simple(
        "permute",
        lambda x: x.unflatten(1, (3, 2)).permute(0, 2, 1),
        lambda p: p.reshape(4, 3, 2).transpose(0, 2, 1),
    ),
    simple("squeeze", lambda x: x.squeeze(1), lambda p: p[:, 0], shape=(4, 1, 6)),
    simple("unsqueeze", lambda x: x.unsqueeze(1), lambda p: p[:, None]),
    simple("expand", lambda x: x.expand(2, 4, 6), lambda p: numpy.broadcast_to(p, (2, 4, 6))),
    simple("view", lambda x: x.view(6, 4), lambda p: p.reshape(6, 4)),
    simple("reshape", lambda x: x.reshape(-1, 2, 3), lambda p: p.reshape(4, 2, 3)),
    simple("reshape_copy", lambda x: x.t().reshape(4, 6), lambda p: p.T.reshape(4, 6)),
    simple("flatten", lambda x: x.flatten(), lambda p: p.reshape(24)),
    simple("unflatten", lambda x: x.unflatten(1, (2, 3)), lambda p: p.reshape(4, 2, 3)),
    simple("unfold", lambda x: x.unfold(1, 3, 3), unfolded),
    simple("diagonal", lambda x: x.diagonal(1), lambda p: p.diagonal(1)),
    simple("as_strided", lambda x: x.as_strided((3, 6), (8, 1), 1), strided((3, 6), (8, 1), 1)),
    piece("split", lambda x: x.split(2)[1], lambda p: p[2:4]),
    piece("chunk", lambda x: x.chunk(2)[1], lambda p: p[2:4]),
    piece("unbind", lambda x: x.unbind(0)[2], lambda p: p[2]),
    simple("T", lambda x: x.T, lambda p: p.T),
    simple("mT", lambda x: x.mT, lambda p: p.T),
    View("detach", lambda torch, x: x.detach(), functional.detached),
    View("data", lambda torch, x: x.data, functional.detached),
    simple("view_of_view", lambda x: x.t()[::2].t(), lambda p: p.T[::2].T),
    simple("movedim", lambda x: x.movedim(0, 1), lambda p: p.T),
    View(
        "view_as",
        lambda torch, x: x.view_as(torch.zeros(6, 4)),
        lambda handle: functional.viewed(handle, lambda p: p.reshape(6, 4)),
    ),
    of_complex("real", lambda x: x.real, functional.real),
    of_complex("imag", lambda x: x.imag, functional.imag),
    View(
        "view_as_real",
        lambda torch, x: torch.view_as_real(x),
        functional.view_as_real,
        is_complex=True,
    ),
    of_complex("conj", lambda x: x.conj(), functional.conj),
    of_complex(
        "imag_of_conj",
        lambda x: x.conj().imag,
        lambda handle: functional.imag(functional.conj(handle)),
    ),
    of_complex(
        "mH",
        lambda x: x.mH,
        lambda handle: functional.viewed(functional.conj(handle), lambda p: p.T),
    ),
)
