"""What programs choose of how files are written and read."""

from ...names.missing import missing_in
from . import config as config

__getattr__ = missing_in(__name__)
