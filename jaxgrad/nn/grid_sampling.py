"""Images read at the places of a grid, and grids of affine maps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .. import ops
from ..core.tracebacks import users_stacklevel
from ..functions.grid_sampling import grid_sampler
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults

# the numbers that `torch.grid_sampler` takes
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


@names_defaults
@api_boundary
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return images read at the places of a grid: (n, c, h, w) and (n, y, x, 2) give (n, c, y, x).

    input: (n, c, h, w) or (n, c, d, h, w), floating point. grid: (n, y, x, 2) or (n, z, y, x, 3),
    of the dtype of `input`: the places (x, y) or (x, y, z), from -1 to 1 over the image. mode:
    "bilinear", "nearest", or for images "bicubic". padding_mode: what is read outside: "zeros", the
    "border", or a "reflection" at the border. align_corners: whether -1 and 1 are the centers of
    the corner pixels, and not their outer corners; False, with a warning, if it is not given. The
    gradient of a place that was moved to the border is 0, and so are all gradients of places in the
    mode "nearest".
    Raises ValueError for another mode, RuntimeError for shapes and dtypes that do not fit.
    Source: Jaderberg et al., "Spatial Transformer Networks", 2015.

    >>> image, grid = jaxgrad.tensor([[[[1.0, 3.0]]]]), jaxgrad.zeros(1, 1, 1, 2)
    >>> F.grid_sample(image, grid, align_corners=False)
    tensor([[[[2.]]]])
    """
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    align_corners = _align_corners_or_default(align_corners)
    numbers = GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode]
    return grid_sampler(input, grid, *numbers, align_corners)


def _align_corners_or_default(align_corners):
    if align_corners is not None:
        return bool(align_corners)
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
        "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
        "documentation of grid_sample for details.",
        stacklevel=users_stacklevel(),
    )
    return False


@names_defaults
@api_boundary
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the places of all pixels under affine maps, a grid for `grid_sample`.

    theta: (n, 2, 3) or (n, 3, 4), floating point. size: (n, c, h, w) or (n, c, d, h, w), of the
    images to make; the result is (n, h, w, 2) or (n, d, h, w, 3). align_corners: as in
    `grid_sample`.
    Raises ValueError for shapes and dtypes that do not fit, NotImplementedError for a `size` of
    another length.

    >>> F.affine_grid(jaxgrad.eye(2, 3)[None], (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    align_corners = _align_corners_or_default(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    count = len(size) - 2
    if count not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (count, count + 1):
        raise ValueError(
            f"Expected a batch of {count}D affine matrices of shape Nx{count}x{count + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if align_corners and any(extent == 1 for extent in size[2:]):
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.",
            stacklevel=users_stacklevel(),
        )
    elif any(extent <= 0 for extent in size):
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return ops.affine_grid_generator(theta, size, align_corners)
