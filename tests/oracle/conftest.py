"""The option `--seed N` of the comparisons with PyTorch."""

import os
import tempfile


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, metavar="N", help="the seed of the random inputs")


def pytest_configure(config):
    if config.getoption("--seed"):
        os.environ["SEED"] = str(config.getoption("--seed"))
    from oracle.seed import SEED

    os.environ["SEED"] = str(SEED)  # for the processes of pytest-xdist
    # PyTorch would set it in the first test that traces, and that test fails if a variable changes
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())


def pytest_report_header():
    return f"random inputs: --seed {os.environ['SEED']}"
