"""PyTorch's private module of the derivatives of functions."""

from __future__ import annotations

from ..func import functionalize as functionalize
from ..func import hessian as hessian
from ..func import jacfwd as jacfwd
from ..func import jacrev as jacrev
from ..func import jvp as jvp
from ..func import linearize as linearize
from ..func import vjp as vjp
from ..func.arguments import positions_of
from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)


def _slice_argnums(args, argnums, as_tuple: bool = True):
    """The arguments at the positions `argnums`: a tuple, or the one at an int without `as_tuple`.

    >>> from jaxgrad._functorch.eager_transforms import _slice_argnums
    >>> _slice_argnums(("a", "b", "c"), (2, 0))
    ('c', 'a')
    """
    chosen = tuple([args[position] for position in positions_of(argnums, len(args))])
    return chosen[0] if isinstance(argnums, int) and not as_tuple else chosen
