"""The form of passes over graphs, as torch.fx.passes.infra."""

from __future__ import annotations

from ....names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
