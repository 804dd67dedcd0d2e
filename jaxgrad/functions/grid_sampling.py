"""Operators on sampling grids under the names of cuDNN, and the name that chooses by dimensions."""

from __future__ import annotations

from .. import ops
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary


@api_boundary
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return `grid_sampler_2d` or, for 5-D inputs, `grid_sampler_3d` of the arguments.

    >>> image, grid = jaxgrad.tensor([[[[1.0, 3.0]]]]), jaxgrad.zeros(1, 1, 1, 2)
    >>> jaxgrad.grid_sampler(image, grid, 0, 0, True)
    tensor([[[[2.]]]])
    """
    sampler = ops.grid_sampler_3d if input.ndim == 5 else ops.grid_sampler_2d
    return sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@api_boundary
def _grid_sampler_2d_cpu_fallback(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return `grid_sampler_2d` of the arguments, by PyTorch's name for its slow kernel.

    >>> image, grid = jaxgrad.tensor([[[[1.0, 3.0]]]]), jaxgrad.zeros(1, 1, 1, 2)
    >>> jaxgrad._grid_sampler_2d_cpu_fallback(image, grid, 0, 0, True)
    tensor([[[[2.]]]])
    """
    return ops.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)


@api_boundary
def cudnn_grid_sampler(self: Tensor, grid: Tensor) -> Tensor:
    """Return `grid_sampler_2d(self, grid, 0, 0, True)`: bilinear, zeros outside, corners aligned.

    >>> image, grid = jaxgrad.tensor([[[[1.0, 3.0]]]]), jaxgrad.zeros(1, 1, 1, 2)
    >>> jaxgrad.cudnn_grid_sampler(image, grid)
    tensor([[[[2.]]]])
    """
    return ops.grid_sampler_2d(self, grid, 0, 0, True)


@api_boundary
def cudnn_affine_grid_generator(theta: Tensor, N: int, C: int, H: int, W: int) -> Tensor:
    """Return `affine_grid_generator(theta, (N, C, H, W), True)`.

    >>> jaxgrad.cudnn_affine_grid_generator(jaxgrad.eye(2, 3)[None], 1, 1, 1, 2)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    return ops.affine_grid_generator(theta, (N, C, H, W), True)
