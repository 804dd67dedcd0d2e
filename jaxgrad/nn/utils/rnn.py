"""Packed and padded sequences of different lengths, as torch.nn.utils.rnn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import ops
from ...core import dtypes
from ...core.tracebacks import shows_users_frames
from ...frontend import factories
from ...frontend.array_creation import along
from ...frontend.tensor_data import from_numpy
from ...functions import recurrent
from ...names.missing import missing_in
from ...tape.tensor import Tensor, concrete


class _PackedSequence(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_PackedSequence):
    """Sequences of different lengths in one tensor, for recurrent layers.

    data: (rows, ...), the first steps of all sequences, then the second ones, and so on; longer
    sequences come first. batch_sizes: int64, how many sequences have each step. sorted_indices:
    where the sequences stood before they were sorted by length, None if they are as they were.
    unsorted_indices: the inverse permutation. `pack_padded_sequence` and `pack_sequence` make it.

    >>> rnn = jaxgrad.nn.utils.rnn
    >>> rnn.pack_sequence([jaxgrad.tensor([1, 2]), jaxgrad.tensor([3])]).data
    tensor([1, 3, 2])
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # PackedSequence((data, batch_sizes), sorted_indices=...)
            if not (isinstance(data, list | tuple) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert `data` as `Tensor.to` does, and move the indices to its device.

        Returns the sequence itself where nothing changes.
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (_bound(order, lambda t: t.to(data.device)) for order in self[2:])
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to a GPU, by default the current one."""
        return self.to(self.data.cuda(*args, **kwargs).device)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to the CPU."""
        return self.to(device="cpu")

    def pin_memory(self) -> PackedSequence:
        """Return the sequence with pinned `data` and indices."""
        indices = (_bound(order, lambda t: t.pin_memory()) for order in self[2:])
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def double(self) -> PackedSequence:
        """Convert `data` to float64."""
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        """Convert `data` to float32."""
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        """Convert `data` to float16."""
        return self.to(dtype=dtypes.float16)

    def long(self) -> PackedSequence:
        """Convert `data` to int64."""
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        """Convert `data` to int32."""
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        """Convert `data` to int16."""
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        """Convert `data` to int8."""
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        """Convert `data` to uint8."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether `data` is in pinned memory."""
        return self.data.is_pinned()


def _bound(value, function):
    return None if value is None else function(value)


@shows_users_frames
def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes another one; None for None.

    permutation: the integers from 0 to n - 1 in any order, (n,), int64.

    >>> jaxgrad.nn.utils.rnn.invert_permutation(jaxgrad.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = factories.arange(
        permutation.numel(), dtype=permutation.dtype, device=permutation.device
    )
    return ops.scatter(factories.zeros_like(permutation), 0, permutation, places)


@shows_users_frames
def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Return padded sequences without their padding, which gets no gradient.

    input: (steps, batch, ...), or (batch, steps, ...) with `batch_first`. lengths: of each
    sequence, positive, as a list or a tensor of integers. A compiled function is traced again for
    other lengths, which must be known: they determine the shape of the result. enforce_sorted: the
    lengths decrease; otherwise the sequences are sorted. Raises RuntimeError for lengths that do
    not fit.

    >>> x = jaxgrad.tensor([[1, 2], [3, 0]])
    >>> jaxgrad.nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True).batch_sizes
    tensor([2, 1])
    """
    if isinstance(lengths, Tensor):
        lengths = concrete(lengths, "pack_padded_sequence()")
    lengths = np.array(lengths).astype(np.int64)
    if lengths.ndim != 1:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.ndim}D cpu Long tensor"
        )
    sorted_indices = None
    if not enforce_sorted:
        order = np.argsort(-lengths, kind="stable")
        lengths, sorted_indices = lengths[order], from_numpy(order)
        input = ops.index_select(input, 0 if batch_first else 1, along(sorted_indices, input))
    data, batch_sizes = recurrent.packed(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices)


@shows_users_frames
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return packed sequences in their first order, padded, and their lengths.

    The result is (steps, batch, ...), or (batch, steps, ...) with `batch_first`. padding_value:
    what follows the end of a sequence. total_length: the number of steps, by default that of the
    longest sequence. Raises ValueError if it is less.

    >>> rnn = jaxgrad.nn.utils.rnn
    >>> packed = rnn.pack_sequence([jaxgrad.tensor([1, 2]), jaxgrad.tensor([3])])
    >>> rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2], [3, 0]]), tensor([2, 1]))
    """
    steps = sequence.batch_sizes.shape[0]
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but "
            f"got total_length={total_length} and max sequence length being {steps}"
        )
    padded, lengths = recurrent.padded(
        sequence.data,
        sequence.batch_sizes,
        batch_first,
        padding_value,
        total_length or steps,
        batch_of(sequence),
    )
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return ops.index_select(padded, 0 if batch_first else 1, along(order, padded)), lengths[order]


def batch_of(sequence: PackedSequence) -> int:
    """The number of packed sequences."""
    if sequence.sorted_indices is not None:  # its shape is known where values are not
        return sequence.sorted_indices.shape[0]
    what = "a PackedSequence whose sequences were not sorted"
    return int(recurrent.sizes_of(sequence.batch_sizes, what)[0])


def _check_sizes(sequences):
    first = sequences[0].shape[1:]
    for number, sequence in enumerate(sequences):
        sizes = sequence.shape[1:]
        pairs = enumerate(zip(first, sizes, strict=False), 1)
        wrong = next((axis for axis, (size, other) in pairs if other not in (1, size)), None)
        if wrong is not None and len(sizes) == len(first):
            raise RuntimeError(
                f"The size of tensor a ({first[wrong - 1]}) must match the size of tensor b "
                f"({sizes[wrong - 1]}) at non-singleton dimension {wrong}: pad_sequence pads "
                f"dimension 0 alone, and sequence {number} has shape {list(sequence.shape)} where "
                f"the first has {list(sequences[0].shape)}"
            )


@shows_users_frames
def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Return sequences of different lengths as one tensor, with padding after each.

    sequences: tensors (length, ...) that differ in their lengths only. The result is (steps, batch,
    ...), or (batch, steps, ...) with `batch_first`, in the dtype of the first. padding_side: "left"
    puts the padding before each. Raises RuntimeError for other arguments.

    >>> x = [jaxgrad.tensor([1, 2]), jaxgrad.tensor([3])]
    >>> jaxgrad.nn.utils.rnn.pad_sequence(x, batch_first=True, padding_value=-1)
    tensor([[ 1,  2],
            [ 3, -1]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    if not all(sequence.ndim for sequence in sequences):
        raise RuntimeError("pad_sequence: sequences have a first dimension, but one is 0-D")
    _check_sizes(sequences)
    steps, first = max(sequence.shape[0] for sequence in sequences), sequences[0]
    parts = []
    for sequence in sequences:
        missing = steps - sequence.shape[0]
        edges = [0, 0] * (sequence.ndim - 1) + (
            [missing, 0] if padding_side == "left" else [0, missing]
        )
        if sequence.shape[1:] != first.shape[1:]:
            sequence = sequence.expand(sequence.shape[0], *first.shape[1:])
        sequence = sequence.to(first.dtype)
        parts.append(ops.constant_pad_nd(sequence, edges, padding_value) if missing else sequence)
    return ops.stack(parts, 0 if batch_first else 1)


@shows_users_frames
def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """Return each padded sequence without its padding.

    padded_sequences: (steps, batch, ...), or (batch, steps, ...) with `batch_first`. lengths: a
    tensor of integers, (batch,), which are known. Raises ValueError if they are not as many as
    the sequences.

    >>> x = jaxgrad.tensor([[1, 2], [3, 0]])
    >>> jaxgrad.nn.utils.rnn.unpad_sequence(x, jaxgrad.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    if isinstance(lengths, Tensor):
        lengths = concrete(lengths, "unpad_sequence()")
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: max(int(n), 0)] for row, n in zip(rows, np.asarray(lengths), strict=True)]


@shows_users_frames
def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Return a list of sequences of different lengths packed.

    sequences: tensors (length, ...) that differ in their lengths only, the longest first.
    enforce_sorted: False allows any order. Raises RuntimeError for sequences that do not fit.

    >>> jaxgrad.nn.utils.rnn.pack_sequence([jaxgrad.ones(2), jaxgrad.zeros(1)]).data
    tensor([1., 0., 1.])
    """
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


@shows_users_frames
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a `PackedSequence`, the inverse of `pack_sequence`.

    >>> rnn = jaxgrad.nn.utils.rnn
    >>> rnn.unpack_sequence(rnn.pack_sequence([jaxgrad.ones(2), jaxgrad.zeros(1)]))
    [tensor([1., 1.]), tensor([0.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__getattr__ = missing_in(__name__)
