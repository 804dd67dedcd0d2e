"""What the functions of `quantize_fx` leave as it is."""

from __future__ import annotations

from ....names.not_provided import names_of


class PrepareCustomConfig:
    """The modules that `prepare_fx` does not trace, and the attributes that it keeps.

    >>> from jaxgrad.ao.quantization.fx.custom_config import PrepareCustomConfig
    >>> PrepareCustomConfig().set_non_traceable_module_names(["head"]).non_traceable_module_names
    ['head']
    """

    def __init__(self):
        self.non_traceable_module_names, self.non_traceable_module_classes = [], []
        self.preserved_attributes = []

    def set_non_traceable_module_names(self, module_names) -> PrepareCustomConfig:
        self.non_traceable_module_names = list(module_names)
        return self

    def set_non_traceable_module_classes(self, module_classes) -> PrepareCustomConfig:
        self.non_traceable_module_classes = list(module_classes)
        return self

    def set_preserved_attributes(self, attributes) -> PrepareCustomConfig:
        self.preserved_attributes = list(attributes)
        return self


class ConvertCustomConfig:
    """The attributes that `convert_fx` keeps."""

    def __init__(self):
        self.preserved_attributes = []

    def set_preserved_attributes(self, attributes) -> ConvertCustomConfig:
        self.preserved_attributes = list(attributes)
        return self


class FuseCustomConfig(ConvertCustomConfig):
    """The attributes that `fuse_fx` keeps."""


__getattr__, __dir__ = names_of(__name__)
