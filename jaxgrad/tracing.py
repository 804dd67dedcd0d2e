"""What code calls that runs within functions compiled by `jaxgrad.jit`."""

from .capture.scope import number as number
from .capture.scope import outside as outside
