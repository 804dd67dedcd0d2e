"""Processes of one training, as torch.distributed.elastic.multiprocessing."""

from ....names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
