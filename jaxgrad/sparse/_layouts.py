"""The compressed layouts by what they compress."""

from __future__ import annotations

from ..core.device import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr

LAYOUTS = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
ROWS, BLOCKS = (sparse_csr, sparse_bsr), (sparse_bsr, sparse_bsc)
NAMES = {sparse_csr: "SparseCsr", sparse_csc: "SparseCsc", sparse_bsr: "SparseBsr"}
NAMES |= {sparse_bsc: "SparseBsc"}
TURNED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr}
COLUMNS = (sparse_csc, sparse_bsc)
TURNED |= {sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}
BLOCKLESS = {sparse_bsr: sparse_csr, sparse_bsc: sparse_csc}
