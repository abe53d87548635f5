"""How often the gate of a night raises a false alarm, and how soon it finds a slowdown, in generated histories.

Run: ``nice python benchmarks/gate_alarms.py [--seeds 300] [--noise 0.05] [--tails 3] [--busy 0.1] [--by 0.15]``. The
histories are those of ``tests/kit/runs/many_runs.py``: three cells with eight phases each, one phase of one cell
slower from night 350 on, by 15 % or ``--by``. ``--newest`` and ``--against`` are those of the gate, ``--within`` is in
how many nights the slowdown must be found, and ``--good`` how many nights before it are judged. ``--tails`` draws the
noise from Student's distribution with so many degrees of freedom in place of the normal one, ``--busy`` makes a share
of all nights busy ones, in which all phases take up to a fifth longer.

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

from chaos.trends.compared import Rules
from chaos.trends.gate import GateResult, gate
from chaos.trends.row import RunRow
from tests.kit.runs.many_runs import SCENARIOS, nights

SLOW_FROM = 350


def alarms(rows: Sequence[RunRow], rules: Rules, good: int) -> int:
    """Return on how many of the good nights the gate ends with 1."""
    return sum(_of_night(rows, night, rules).verdict == "fail" for night in range(SLOW_FROM - good, SLOW_FROM))


def delay(rows: Sequence[RunRow], rules: Rules, within: int) -> int | None:
    """Return after how many nights the gate names the slower phase; None where it takes longer than ``within``."""
    for night in range(SLOW_FROM, SLOW_FROM + within):
        slower = _of_night(rows, night, rules).slower
        if any((entry.name, entry.phase) == ("kill-rank", "load") for entry in slower):
            return night - SLOW_FROM + 1
    return None


def _of_night(rows: Sequence[RunRow], night: int, rules: Rules) -> GateResult:
    end = len(SCENARIOS) * (night + 1)
    return gate(rows[max(0, end - len(SCENARIOS) * (rules.newest + rules.against)) : end], rules)


def delays_or_never(delays: Sequence[int | None]) -> list[float]:
    """Return the delays with infinity where nothing was found, so that their median counts all."""
    return [float("inf") if nights_taken is None else nights_taken for nights_taken in delays]


def main() -> int:
    """Generate, count, print; end with 1 where a seed in a hundred has more than one alarm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1000, help="the first seed (default 1000: the tests use others)")
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--tails", type=int, default=None)
    parser.add_argument("--busy", type=float, default=0.0)
    parser.add_argument("--by", type=float, default=0.15)
    parser.add_argument("--within", type=int, default=10)
    parser.add_argument("--good", type=int, default=300)
    parser.add_argument("--newest", type=int, default=Rules().newest)
    parser.add_argument("--against", type=int, default=Rules().against)
    options = parser.parse_args()
    rules = Rules(options.against, options.newest)
    counts: list[int] = []
    delays: list[int | None] = []
    for seed in range(options.first, options.first + options.seeds):
        rows = nights(
            seed,
            SLOW_FROM + options.within,
            slow_from=SLOW_FROM,
            by=options.by,
            noise=options.noise,
            tails=options.tails,
            busy_nights=options.busy,
        )
        counts.append(alarms(rows, rules, options.good))
        delays.append(delay(rows, rules, options.within))
    found = [nights_taken for nights_taken in delays if nights_taken is not None]
    several = sum(count > 1 for count in counts) / len(counts)
    print(f"{options.seeds} seeds, noise {options.noise:g}, tails {options.tails}, busy nights {options.busy:g}")
    any_alarm = sum(map(bool, counts)) / len(counts)
    print(f"alarms in {options.good} good nights: any in {any_alarm:.2%}, several in {several:.2%}")
    spread = dict(sorted(Counter(found).items()))
    middle = median(delays_or_never(delays))
    print(
        f"{options.by:.0%} slower, the newest {rules.newest} against {rules.against}: found within {options.within} "
        f"nights: {len(found) / len(delays):.2%}, median {middle:g} nights, {spread}"
    )
    return int(several > 0.01)


if __name__ == "__main__":
    sys.exit(main())
