"""Compare the programs of a range of seeds, and print those that differ, made small.

python tests/capture/worlds/run.py 0 1000 [--as-written] [--with draws]
"""

import argparse
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]

from helpers import xla_settings  # isort: skip  # noqa: E402, F401  before anything imports JAX

from capture.worlds import switches  # noqa: E402
from capture.worlds.check import Tally  # noqa: E402
from capture.worlds.writer import write  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--as-written", action="store_true", help="do not make programs small")
    parser.add_argument("--show", action="store_true", help="only print the programs")
    parser.add_argument("--with", dest="kinds", nargs="*", default=[], choices=switches.KINDS)
    options = parser.parse_args()
    switches.on.update(options.kinds)
    last = options.first + 1 if options.last is None else options.last
    if options.show:
        for seed in range(options.first, last):
            print(f"# seed {seed}\n{write(seed)}\n")
        return
    tally, begin = Tally(), time.process_time()
    for seed in range(options.first, last):
        known = len(tally.disagreements)
        tally.add(seed, not options.as_written)
        if len(tally.disagreements) > known:
            print(f"{tally.disagreements[seed]}\n{'-' * 80}", flush=True)
    report(tally, time.process_time() - begin)


def report(tally, seconds):
    print(f"{tally.seeds} programs, {len(tally.disagreements)} differ, {seconds:.0f} s")
    for why, count in tally.refusals.most_common():
        print(f"{100 * count / tally.seeds:6.2f} % refused: {why}")


if __name__ == "__main__":
    main()
