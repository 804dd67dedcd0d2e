"""What scripts for `torchrun` import, as torch.distributed.elastic."""

from ...names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
