"""The seed of the random inputs: the option `--seed`, which conftest.py reads, else a new one."""

import os
import secrets

SEED = int(os.environ.get("SEED") or 1 + secrets.randbelow(2**30))
