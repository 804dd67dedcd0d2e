"""Random numbers: the default generator, its seed and its state, as torch.random."""

from .frontend.generator import fork_rng as fork_rng
from .frontend.generator import use as use
from .frontend.random import default_generator as default_generator
from .frontend.random import get_rng_state as get_rng_state
from .frontend.random import initial_seed as initial_seed
from .frontend.random import manual_seed as manual_seed
from .frontend.random import seed as seed
from .frontend.random import set_rng_state as set_rng_state
from .names.missing import missing_in


def thread_safe_generator() -> None:
    """Return None: the workers of a DataLoader are processes, and draw from the default generator.

    >>> generator = jaxgrad.random.thread_safe_generator()
    >>> jaxgrad.rand(2, generator=generator).shape
    torch.Size([2])
    """


__getattr__ = missing_in(__name__)
