"""Losses as modules: each calls the function of `functional` with what it was made with."""

from __future__ import annotations

import inspect
from typing import ClassVar

from . import functional, losses
from .module import Module


class Loss(Module):
    """A function of input and targets, and the options that it is called with.

    `options`: their names and defaults, in the order in which the class takes them.
    """

    function = None
    options: ClassVar[dict] = {}

    def __init__(self, *args, **kwargs):
        super().__init__()
        names = list(self.options)
        if len(args) > len(names):
            raise TypeError(
                f"{type(self).__name__}() takes {names}, but {len(args)} arguments were given"
            )
        given = dict(zip(names, args, strict=False))
        for name in kwargs:
            if name not in names or name in given:
                raise TypeError(f"{type(self).__name__}() got an unexpected argument {name!r}")
        given = self.options | given | kwargs
        old = given.pop("size_average", None), given.pop("reduce", None)
        if old != (None, None):
            number = functional._reduction(given["reduction"], *old)
            given["reduction"] = list(functional._REDUCTIONS)[number]
        self._used = tuple(given)
        for name, value in given.items():
            if name.endswith("weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, input, *targets):
        return type(self).function(
            input, *targets, **{name: getattr(self, name) for name in self._used}
        )


def _made(name, function, *names):
    """The class of a loss, with some arguments of its function as options."""
    known = inspect.signature(function).parameters
    options = {each: known[each].default for each in names}
    listed = ", ".join(f"{each}={value!r}" for each, value in options.items())
    members = {
        "__doc__": f"`functional.{function.__name__}` as a module: {name}({listed}).",
        "__module__": __name__,
        "function": staticmethod(function),
        "options": options,
    }
    return type(name, (Loss,), members)


# how each loss can be reduced, PyTorch's old words first
USUAL = "size_average", "reduce", "reduction"

MSELoss = _made("MSELoss", functional.mse_loss, *USUAL)
L1Loss = _made("L1Loss", functional.l1_loss, *USUAL)
SmoothL1Loss = _made("SmoothL1Loss", functional.smooth_l1_loss, *USUAL, "beta")
HuberLoss = _made("HuberLoss", losses.huber_loss, "reduction", "delta")
KLDivLoss = _made("KLDivLoss", functional.kl_div, *USUAL, "log_target")
NLLLoss = _made(
    "NLLLoss",
    functional.nll_loss,
    *("weight", "size_average", "ignore_index", "reduce", "reduction"),
)
CrossEntropyLoss = _made(
    "CrossEntropyLoss",
    functional.cross_entropy,
    *("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"),
)
BCELoss = _made("BCELoss", losses.binary_cross_entropy, "weight", *USUAL)
BCEWithLogitsLoss = _made(
    "BCEWithLogitsLoss",
    functional.binary_cross_entropy_with_logits,
    *("weight", *USUAL, "pos_weight"),
)
MarginRankingLoss = _made("MarginRankingLoss", losses.margin_ranking_loss, "margin", *USUAL)
CosineEmbeddingLoss = _made("CosineEmbeddingLoss", losses.cosine_embedding_loss, "margin", *USUAL)
TripletMarginLoss = _made(
    "TripletMarginLoss", losses.triplet_margin_loss, "margin", "p", "eps", "swap", *USUAL
)
PoissonNLLLoss = _made(
    "PoissonNLLLoss",
    losses.poisson_nll_loss,
    *("log_input", "full", "size_average", "eps", "reduce", "reduction"),
)
GaussianNLLLoss = _made("GaussianNLLLoss", losses.gaussian_nll_loss, "full", "eps", "reduction")
SoftMarginLoss = _made("SoftMarginLoss", losses.soft_margin_loss, *USUAL)
HingeEmbeddingLoss = _made("HingeEmbeddingLoss", losses.hinge_embedding_loss, "margin", *USUAL)


class CosineSimilarity(Module):
    """`functional.cosine_similarity` as a module."""

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1, x2):
        return losses.cosine_similarity(x1, x2, self.dim, self.eps)
