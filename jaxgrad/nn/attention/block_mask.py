"""Block masks: the blocks of scores that a mask keeps, and its function of single scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import ops
from ...core import dtypes
from ...core.device import DeviceLike
from ...frontend import factories
from ...tape.tensor import Tensor

_DEFAULT_SPARSE_BLOCK_SIZE = 128

TENSORS = (
    *("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"),
    *("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"),
)
ORDERS = ("dq_write_order", "dq_write_order_full", "dq_kv_order")

CELLS = {False: "  ", True: "██", None: "░░"}

SLICED = (
    "Cannot use mask_mod from a sliced BlockMask. A slice does not know which batches, heads and "
    "queries it holds: set sliced.mask_mod to a function of the mask_mod of the BlockMask that it "
    "was cut from"
)


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return True, as the mask that every query and key pass.

    >>> jaxgrad.nn.attention.flex_attention.noop_mask(*jaxgrad.zeros(4))
    tensor(True)
    """
    return batch.new_ones((), dtype=dtypes.bool)


def _sliced_mask_mod(batch, head, token_q, token_kv):
    raise RuntimeError(SLICED)


class BlockMask:
    """The blocks of scores that a mask keeps; `create_block_mask` makes it for `flex_attention`.

    seq_lengths: the numbers of queries and keys. kv_num_blocks: (..., rows), how
    many blocks of keys a block of queries attends to in part; kv_indices: (..., rows, columns),
    the numbers of these blocks of keys, and then those of the other blocks. full_kv_num_blocks,
    full_kv_indices: the same for the blocks to which it attends in full, or None where the first
    two list them too. q_num_blocks and so on: the same for each block of keys. BLOCK_SIZE: the
    queries and keys of a block. mask_mod: `mask_mod(batch, head, query, key)` tells which scores
    count; it alone decides, and the blocks are for those who read them. dq_write_order and so on:
    in which order a kernel would add the gradients of blocks, if they were asked for.

    Raises RuntimeError for indices with less than two dimensions, and AssertionError for one tensor
    of a pair without the other.

    >>> from jaxgrad.nn.attention.flex_attention import create_block_mask
    >>> causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 512, 512)
    >>> print(causal.to_dense()[0, 0])
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    >>> causal.shape, causal.numel(), causal.sparsity()
    ((1, 1, 512, 512), 262144, 37.5)
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: int | tuple[int, int] = (
            _DEFAULT_SPARSE_BLOCK_SIZE,
            _DEFAULT_SPARSE_BLOCK_SIZE,
        ),
        mask_mod: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ):
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        _check_pair("kv", full_kv_num_blocks, full_kv_indices)
        _check_pair("q", full_q_num_blocks, full_q_indices)
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """Make a `BlockMask` of the blocks of keys that are listed for each block of queries.

        The arguments are those of `BlockMask`; mask_mod: every score counts by default.
        seq_lengths: whole blocks by default. compute_q_blocks: whether to list the blocks of
        queries for each block of keys too. dq_kv_order: a tensor, or the bool `dq_kv_order_spt`.

        Raises what `BlockMask` does.

        >>> from jaxgrad.nn.attention.flex_attention import BlockMask
        >>> rows = jaxgrad.tensor([[[1, 2]]]), jaxgrad.tensor([[[[0, 1], [0, 1]]]])
        >>> BlockMask.from_kv_blocks(*rows, BLOCK_SIZE=4).shape
        (1, 1, 8, 8)
        """
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        _check_pair("kv", full_kv_num_blocks, full_kv_indices)
        size = block_size(BLOCK_SIZE)
        blocks = kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices
        columns = (None, None, None, None)
        if compute_q_blocks:
            columns = *_transposed(*blocks[:2]), *_transposed(*blocks[2:])
        if seq_lengths is None:
            rows, keys = kv_indices.shape[-2:]
            seq_lengths = (rows * size[0], keys * size[1])
        is_order = isinstance(dq_kv_order, bool)
        return cls(
            seq_lengths,
            *blocks,
            *columns,
            BLOCK_SIZE=size,
            mask_mod=mask_mod or noop_mask,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=None if is_order else dq_kv_order,
            dq_kv_order_spt=dq_kv_order if is_order else None,
        )

    @property
    def shape(self) -> tuple:
        """The sizes of the mask: those of batch and heads, of queries and of keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of scores, the product of `shape`."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return which percentage of the scores is in blocks that the mask drops whole; less than
        0 where the last blocks reach far beyond the scores.
        """
        blocks = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            blocks = blocks + self.full_kv_num_blocks.sum()
        return 100 * (1 - blocks.item() * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """Return 1 for each block some of whose scores count and 0 for the others, int32, of shape
        (..., rows, columns).
        """
        some = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            some = some | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return some.to(dtypes.int32)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Return a picture of the blocks: full where all of a cell's blocks are left, light where
        some are.

        grid_size: at most so many rows and columns of cells, an int for both, -1 for a cell for
        each block. limit: how many batches and heads are shown.

        >>> from jaxgrad.nn.attention.flex_attention import create_block_mask
        >>> causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 512, 512)
        >>> print(causal.to_string(grid_size=2).rstrip())
        (0, 0)
        ░░
        ██░░
        """
        dense = self.to_dense()
        grid = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        rows, columns = grid
        shape = dense.shape[:-2]
        pictures = []
        for number in range(math.prod(shape)):
            if number == limit:
                pictures.append(
                    "...\nTo print out more, set BlockMask.to_string(limit=N)\n"
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
                )
                break
            place = _place(number, shape)
            lines = _picture(dense[place].tolist(), rows, columns)
            pictures.append("\n".join([str(place), *lines, ""]))
        return "\n".join(pictures)

    def __str__(self) -> str:
        name = type(self).__name__
        about = f"shape={self.shape}, sparsity={self.sparsity():.2f}%"
        return f"{name}({about}, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        mask_mod = getattr(self.mask_mod, "__name__", self.mask_mod)
        tensors = {name: getattr(self, name) for name in TENSORS}
        about = {name: None if t is None else t.shape for name, t in tensors.items()}
        about |= {"BLOCK_SIZE": self.BLOCK_SIZE, "shape": self.shape}
        about |= {"sparsity": f"{self.sparsity():.2f}%", "mask_mod": mask_mod}
        lines = ",\n".join(f"    {name}={value}" for name, value in about.items())
        return f"{type(self).__name__}(\n{lines}\n)"

    def __getitem__(self, index: Any) -> BlockMask:
        """Return the block mask of some batches, heads and blocks of queries, whose `mask_mod` is
        to be set: until then it raises RuntimeError. A number keeps its dimension, with size 1.
        """
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(
            slice(i + n if i < 0 else i, (i + n if i < 0 else i) + 1) if type(i) is int else i
            for i, n in zip(index[:3], self.kv_num_blocks.shape, strict=False)
        )
        kept = [getattr(self, name) for name in TENSORS[:4]]
        kept = [None if tensor is None else tensor[index] for tensor in kept]
        return self.from_kv_blocks(
            *kept,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int):
        """Return the block mask for other numbers of queries and keys, with its first blocks."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])
        kept = []
        for count, indices in (
            (self.kv_num_blocks, self.kv_indices),
            (self.full_kv_num_blocks, self.full_kv_indices),
        ):
            is_there = count is not None
            kept += (
                ordered(_dense(count, indices)[..., :rows, :columns]) if is_there else (None, None)
            )
        return self.from_kv_blocks(
            *kept,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
        )

    def as_tuple(self, flatten: bool = True) -> tuple:
        """Return all parts in the order of the constructor; flatten: the two pairs of numbers as
        numbers.
        """
        lengths, size = self.seq_lengths, self.BLOCK_SIZE
        if not flatten:
            lengths, size = (lengths,), (size,)
        tensors = [getattr(self, name) for name in (*TENSORS, *ORDERS, "dq_kv_order_spt")]
        return (*lengths, *tensors, *size, self.mask_mod)

    def to(self, device: DeviceLike) -> BlockMask:
        """Return the block mask with its tensors on a device. What `mask_mod` reads stays."""
        names = (*TENSORS, *ORDERS)
        moved = [None if (t := getattr(self, name)) is None else t.to(device) for name in names]
        return type(self)(
            self.seq_lengths,
            *moved[:8],
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            **dict(zip(ORDERS, moved[8:], strict=True)),
            dq_kv_order_spt=self.dq_kv_order_spt,
        )

    def _dq_kv_order(self):
        return self.dq_kv_order_spt if self.dq_kv_order is None else self.dq_kv_order


def _check_pair(which, count, indices):
    if (count is None) != (indices is None):
        raise AssertionError(
            f"full_{which}_num_blocks and full_{which}_indices must be both provided or omitted"
        )


def block_size(size: int | tuple[int, int]) -> tuple[int, int]:
    """The queries and keys of a block, of one number for both or of two."""
    rows, columns = (size, size) if isinstance(size, int) else size
    return rows, columns


# ---- lists of blocks


def ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """For each row of blocks, (..., rows, columns), the number of those that are left, and the
    numbers of all blocks, those first; int32.
    """
    indices = ops.argsort(dense.to(dtypes.int32), dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(dtypes.int32), indices.to(dtypes.int32)


def _dense(count, indices):
    """The kept blocks as a dense mask, the inverse of `ordered`. The entries after them in a row
    are arbitrary, so they are written to a column of their own.
    """
    extent = indices.shape[-1]
    is_left = factories.arange(extent, device=indices.device) < count.unsqueeze(-1)
    places = ops.where(is_left, indices.to(dtypes.int64), extent)
    dense = is_left.new_zeros((*is_left.shape[:-1], extent + 1))
    return dense.scatter(-1, places, True)[..., :extent]


def _transposed(count, indices):
    """For each column of blocks what the arguments are for each row."""
    if count is None:
        return None, None
    return ordered(_dense(count, indices).transpose(-2, -1))


def of_dense(
    some: Tensor,
    full: Tensor | None,
    size: tuple[int, int],
    mask_mod: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
    lengths: tuple[int, int],
    asks_order: bool = False,
    is_descending: bool = True,
) -> BlockMask:
    """The block mask of two dense masks of blocks: `some` marks the blocks with a score that
    counts, `full`, which may be None, those in which every score counts.
    """
    blocks = *ordered(some), *((None, None) if full is None else ordered(full))
    block_mask = BlockMask.from_kv_blocks(
        *blocks, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=lengths
    )
    if asks_order:
        order = _order(some if full is None else some | full, is_descending)
        block_mask.dq_kv_order_spt = is_descending
        block_mask.dq_write_order = order.gather(-1, block_mask.q_indices.to(dtypes.int64))
        if full is not None:
            block_mask.dq_write_order_full = order.gather(
                -1, block_mask.full_q_indices.to(dtypes.int64)
            )
    return block_mask


def _order(left, is_descending):
    """For each block of keys and queries, how many blocks of keys come before it in the row of that
    block of queries, from the last to the first or from the first to the last.
    """
    columns = left.transpose(-2, -1).to(dtypes.int32)
    before = columns.cumsum(-2) - columns
    order = columns.sum(-2, keepdim=True) - 1 - before if is_descending else before
    return order.to(dtypes.int32)


# ---- pictures


def _place(number, shape) -> tuple[int, ...]:
    """The indices of an element by its number in row-major order."""
    place = []
    for extent in reversed(shape):
        number, index = divmod(number, extent)
        place.append(index)
    return tuple(reversed(place))


def _picture(blocks: list[list[int]], rows: int, columns: int) -> list[str]:
    """The lines of a picture with so many rows and columns of cells at most."""
    height = 1 if rows == -1 else -(-len(blocks) // rows)
    width = 1 if columns == -1 else -(-len(blocks[0]) // columns) if blocks else 1
    lines = []
    for top in range(0, len(blocks), max(height, 1)):
        cells = []
        for left in range(0, len(blocks[0]), max(width, 1)):
            inside = [row[left : left + width] for row in blocks[top : top + height]]
            kinds = {bool(block) for row in inside for block in row}
            cells.append(CELLS[kinds.pop() if len(kinds) == 1 else None])
        lines.append("".join(cells))
    return lines
