"""Invertible functions with the determinants of their Jacobians: torch.distributions.transforms."""

from __future__ import annotations

from ..names.missing import missing_in
from ._number_transforms import AbsTransform as AbsTransform
from ._number_transforms import AffineTransform as AffineTransform
from ._number_transforms import CumulativeDistributionTransform as CumulativeDistributionTransform
from ._number_transforms import ExpTransform as ExpTransform
from ._number_transforms import PowerTransform as PowerTransform
from ._number_transforms import SigmoidTransform as SigmoidTransform
from ._number_transforms import SoftplusTransform as SoftplusTransform
from ._number_transforms import TanhTransform as TanhTransform
from ._number_transforms import clipped_sigmoid
from ._transform import CatTransform as CatTransform
from ._transform import ComposeTransform as ComposeTransform
from ._transform import IndependentTransform as IndependentTransform
from ._transform import ReshapeTransform as ReshapeTransform
from ._transform import StackTransform as StackTransform
from ._transform import Transform as Transform
from ._transform import _InverseTransform as _InverseTransform
from ._transform import identity_transform as identity_transform
from ._vector_transforms import CorrCholeskyTransform as CorrCholeskyTransform
from ._vector_transforms import LowerCholeskyTransform as LowerCholeskyTransform
from ._vector_transforms import PositiveDefiniteTransform as PositiveDefiniteTransform
from ._vector_transforms import SoftmaxTransform as SoftmaxTransform
from ._vector_transforms import StickBreakingTransform as StickBreakingTransform

__all__ = [
    *("AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform"),
    *("CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform"),
    *("IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform"),
    *("PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftplusTransform"),
    *("TanhTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform"),
    *("Transform", "identity_transform"),
]

_clipped_sigmoid = clipped_sigmoid  # by PyTorch's name: packages call it

__getattr__ = missing_in(__name__)
