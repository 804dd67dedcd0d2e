"""Operators of torchvision for PyTorch's build without CUDA.

PyPI has torchvision's compiled operators for CUDA builds of PyTorch alone, and `import torchvision`
needs `nms` to be an operator. It is defined here in Python where the library cannot be loaded.
"""

import importlib
import importlib.util

import torch

libraries = []


def non_maximum_suppression(boxes, scores, threshold):
    """The indices of boxes that overlap no better one by more than the threshold, best first."""
    order, kept = scores.argsort(descending=True, stable=True), []
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while order.numel():
        best, order = order[0], order[1:]
        kept.append(best)
        corners = torch.maximum(boxes[best, :2], boxes[order, :2])
        opposite = torch.minimum(boxes[best, 2:], boxes[order, 2:])
        shared = (opposite - corners).clamp(min=0).prod(dim=1)
        order = order[~(shared / (areas[best] + areas[order] - shared) > threshold)]
    return torch.stack(kept) if kept else order


def define():
    """Define what `import torchvision` and its detection models need, where it is installed."""
    specification = importlib.util.find_spec("torchvision")
    if specification is None:
        return
    try:
        torch.ops.load_library(f"{specification.submodule_search_locations[0]}/_C.so")
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("nms", non_maximum_suppression, "CPU")
        libraries.append(library)  # the operators are there as long as it is
        extension = importlib.import_module("torchvision.extension")
        extension._has_ops = lambda: True  # its functions ask for it before each call
