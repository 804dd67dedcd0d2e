"""Models from the network, which jaxgrad does not provide, as torch.hub."""

from __future__ import annotations

from .core.not_provided import names_of

__getattr__ = names_of(__name__, "download the code and the weights, and read these by torch.load")
