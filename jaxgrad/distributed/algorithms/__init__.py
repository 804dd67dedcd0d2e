"""Parts of distributed training, as torch.distributed.algorithms: wrappers that checkpoint."""

from ...names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
