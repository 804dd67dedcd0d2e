"""What programs choose of how files are written and read."""

from . import config as config
