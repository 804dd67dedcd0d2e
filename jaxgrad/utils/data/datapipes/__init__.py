"""Pipes of data, as torch.utils.data.datapipes: `iter` has those that are iterated over, `map`
those with samples by index.
"""

from ....names.missing import missing_in
from . import datapipe as datapipe
from . import iter as iter
from . import map as map

__getattr__ = missing_in(__name__)
