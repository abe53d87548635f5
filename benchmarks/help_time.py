"""Compares how long two commands take, in pairs of runs: `chaos --help` against Chaos Toolkit's.

    python benchmarks/help_time.py '.venv/bin/chaos --help' '/path/to/toolkit/bin/chaos --help'

Prints the median of the pairs' ratios (first / second). Ends with 1 when that is above ``--limit``.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import subprocess
import sys
import time


def seconds(command: list[str]) -> float:
    """Wall-clock seconds of one run. Raises CalledProcessError when the command fails."""
    started = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def main() -> int:
    """Measure, print, and compare with the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=shlex.split)
    parser.add_argument("theirs", type=shlex.split)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--limit", type=float, default=0.6)
    options = parser.parse_args()
    seconds(options.ours), seconds(options.theirs)  # The first runs compile and fill the page cache.
    pairs = [(seconds(options.ours), seconds(options.theirs)) for _ in range(options.pairs)]
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"ours {ours * 1000:.0f} ms, theirs {theirs * 1000:.0f} ms, ratio {ratio:.2f} (limit {options.limit})")
    return int(ratio > options.limit)


if __name__ == "__main__":
    sys.exit(main())
