"""Weights of the network, which jaxgrad does not download, as torch.utils.model_zoo."""

from __future__ import annotations

from ..core.missing_names import missing_in
from ..hub import load_state_dict_from_url

load_url = load_state_dict_from_url

__getattr__ = missing_in(__name__)
