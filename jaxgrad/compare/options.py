"""The options of `jaxgrad compare`."""

from __future__ import annotations

import argparse


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command to its parser."""
    add = parser.add_argument
    add("--torch-python", metavar="PATH", help="a Python that has PyTorch: .venv-torch/bin/python")
    add("--seed", type=int, default=0, help="the seed of both runs: 0")
    add("--double", action="store_true", help="run both in double precision too")
    add("--modules", action="store_true", help="compare the results of modules only")
    add("--every", type=positive, default=1, metavar="N", help="record one of N training steps")
    add("--tolerance", type=float, help="the relative difference that is rounding: 1e-4")
    add("--checkpoint", metavar="FILE", help="load this state into both models")
    add("--no-times", action="store_true", help="leave out the runs that measure time and memory")
    add("--output", action="store_true", help="show what the script prints")
    add("--html", metavar="FILE", help="write the report with the curves of the losses as a page")
    add("script", metavar="SCRIPT", help="a Python file")
    add("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of steps, at least 1")
    return int(text)
