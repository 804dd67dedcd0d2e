"""Datasets, samplers and the DataLoader, as torch.utils.data."""

from __future__ import annotations

from ...names.missing import missing_in
from . import datapipes as datapipes
from . import graph as graph
from . import graph_settings as graph_settings
from ._utils.collate import default_collate as default_collate
from ._utils.collate import default_convert as default_convert
from ._utils.worker import get_worker_info as get_worker_info
from .dataloader import DataLoader as DataLoader
from .datapipes.datapipe import DataChunk as DataChunk
from .datapipes.datapipe import IterDataPipe as IterDataPipe
from .datapipes.datapipe import MapDataPipe as MapDataPipe
from .datapipes.datapipe import functional_datapipe as functional_datapipe
from .dataset import ChainDataset as ChainDataset
from .dataset import ConcatDataset as ConcatDataset
from .dataset import Dataset as Dataset
from .dataset import IterableDataset as IterableDataset
from .dataset import StackDataset as StackDataset
from .dataset import Subset as Subset
from .dataset import TensorDataset as TensorDataset
from .dataset import random_split as random_split
from .distributed import DistributedSampler as DistributedSampler
from .sampler import BatchSampler as BatchSampler
from .sampler import RandomSampler as RandomSampler
from .sampler import Sampler as Sampler
from .sampler import SequentialSampler as SequentialSampler
from .sampler import SubsetRandomSampler as SubsetRandomSampler
from .sampler import WeightedRandomSampler as WeightedRandomSampler

__getattr__ = missing_in(__name__)
