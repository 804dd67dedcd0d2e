"""The seed of the random inputs, and the part of what is the same in every run that it draws.

The options `--seed N` and `--all` of `make oracle` set them; else the seed is a new one.
"""

import os
import random
import secrets

SEED = int(os.environ.get("SEED") or 1 + secrets.randbelow(2**30))
TAKES_ALL = os.environ.get("ALL") == "1"


def drawn(cases, one_of):
    """One of so many of some cases, by the seed; all with `--all`."""
    cases = list(cases)
    if TAKES_ALL:
        return cases
    places = random.Random(SEED).sample(range(len(cases)), -(-len(cases) // one_of))
    return [cases[place] for place in sorted(places)]
