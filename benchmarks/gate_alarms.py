"""How often the gate of a night raises a false alarm, and how soon it finds a slowdown, in generated histories.

Run: ``nice python benchmarks/gate_alarms.py [--seeds 300] [--noise 0.05] [--tails 3] [--busy 0.1]``. The histories are
those of the tests (``tests/kit/many_runs.py``): three cells with eight phases each, one phase of one cell 15 % slower
from night 350 on. ``--tails`` draws the noise from Student's distribution with so many degrees of freedom in place of
the normal one, ``--busy`` makes a share of all nights busy ones, in which all phases take up to a fifth longer.

Prints in which share of the seeds the gate ends with 1 on any, and on more than one, of the 300 nights before, and
after how many nights it names the slower phase. A night counts as an alarm whenever the gate ends with 1, also where
it is the same alarm as the night before.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.trends.gate import GateResult, gate
from chaos.trends.row import RunRow
from tests.kit.many_runs import SCENARIOS, nights

SLOW_FROM, GOOD, WITHIN = 350, 300, 10
WINDOW = 40
"""Nights that the gate is given: more than it looks at."""


def alarms(rows: Sequence[RunRow]) -> int:
    """Return on how many of the good nights the gate ends with 1."""
    return sum(_of_night(rows, night).verdict == "fail" for night in range(SLOW_FROM - GOOD, SLOW_FROM))


def delay(rows: Sequence[RunRow]) -> int | None:
    """Return after how many nights the gate names the slower phase; None where it takes more than ten."""
    for night in range(SLOW_FROM, SLOW_FROM + WITHIN):
        if any((slower.name, slower.phase) == ("kill-rank", "load") for slower in _of_night(rows, night).slower):
            return night - SLOW_FROM + 1
    return None


def _of_night(rows: Sequence[RunRow], night: int) -> GateResult:
    end = len(SCENARIOS) * (night + 1)
    return gate(rows[max(0, end - len(SCENARIOS) * WINDOW) : end])


def main() -> int:
    """Generate, count, print; end with 1 where a seed in a hundred has more than one alarm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1000, help="the first seed (default 1000: the tests use others)")
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--tails", type=int, default=None)
    parser.add_argument("--busy", type=float, default=0.0)
    options = parser.parse_args()
    counts: list[int] = []
    delays: list[int | None] = []
    for seed in range(options.first, options.first + options.seeds):
        rows = nights(
            seed,
            SLOW_FROM + WITHIN,
            slow_from=SLOW_FROM,
            noise=options.noise,
            tails=options.tails,
            busy_nights=options.busy,
        )
        counts.append(alarms(rows))
        delays.append(delay(rows))
    found = [nights_taken for nights_taken in delays if nights_taken is not None]
    several = sum(count > 1 for count in counts) / len(counts)
    print(f"{options.seeds} seeds, noise {options.noise:g}, tails {options.tails}, busy nights {options.busy:g}")
    print(f"alarms in {GOOD} good nights: any in {sum(map(bool, counts)) / len(counts):.2%}, several in {several:.2%}")
    spread = dict(sorted(Counter(found).items()))
    middle = median(found) if found else None
    print(f"found within {WITHIN} nights: {len(found) / len(delays):.2%}, median {middle} nights, {spread}")
    return int(several > 0.01)


if __name__ == "__main__":
    sys.exit(main())
