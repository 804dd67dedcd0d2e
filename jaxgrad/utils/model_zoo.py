"""Weights of the internet, which jaxgrad does not download, as torch.utils.model_zoo."""

from __future__ import annotations

from .. import hub
from ..names.missing import MissingName

load_url = hub.load_state_dict_from_url
_download_url_to_file = hub.download_url_to_file


__path__ = []  # as of a package: names that are absent can be imported


def __getattr__(name):
    if name != "tqdm":
        raise MissingName(__name__, name)
    return hub.tqdm
