"""The gate of a night: did a phase get slower than noise explains, did a verdict get worse, is a scenario flaky?

Rows come in, a judgement goes out. The newest runs of each cell are compared with the runs before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from statistics import median
from typing import Any

from chaos.evidence.finding import Verdict
from chaos.trends.compared import LEAST_SECONDS, ComparedPhase, Rules, phases_of, windows
from chaos.trends.rank_test import lowest_p
from chaos.trends.row import RunRow, changes_between
from chaos.trends.series import Series, is_of
from chaos.trends.slowdown import confirmed, holm

FINDING = "finding"
"""The word for a run that failed as its known finding says."""


@dataclass(frozen=True)
class Slower:
    """A phase of a cell that got slower than noise explains.

    ``p`` is the probability of such times without a slowdown beyond ``max_slower``, ``limit`` what it was compared
    with. ``share`` and ``seconds`` say by how much it is slower, and ``bound`` by how much at least, with a confidence
    of 98 %. ``medians`` are those before and now, and ``samples`` how many runs each rests on. ``changes`` has what
    else changed between the runs.
    """

    name: str
    phase: str
    p: float
    limit: float
    tests: int
    share: float
    seconds: float
    bound: float
    medians: tuple[float, float]
    samples: tuple[int, int]
    max_slower: float
    changes: dict[str, tuple[str, str]]


@dataclass(frozen=True)
class Worse:
    """The newest verdict of a cell is worse than its usual one, which may be :data:`FINDING`."""

    name: str
    run: str
    verdict: Verdict
    usual: str
    runs: int
    headline: str
    changes: dict[str, tuple[str, str]]


@dataclass(frozen=True)
class OnlyRun:
    """The only run of a cell did not pass: there is no verdict to compare with."""

    name: str
    run: str
    verdict: Verdict
    headline: str


@dataclass(frozen=True)
class Flaky:
    """A cell passed and failed on one version. ``passed`` and ``failed`` count the newest runs on that version."""

    name: str
    passed: int
    failed: int
    last_failed: str
    headline: str


@dataclass(frozen=True)
class TooFew:
    """A phase of a cell with too few samples for the test. ``needed`` is how many passing runs it takes in all.

    ``newest`` and ``before`` count the runs that have the phase, ``comparable`` those of them that have a counterpart:
    a run of the other side on the same host, where it is known, and with a like load.
    """

    name: str
    phase: str
    newest: int
    before: int
    comparable: int
    needed: int


@dataclass(frozen=True)
class GateResult:
    """The judgement. ``tests`` counts the phases compared, ``stale`` names cells that have not run for a week.

    ``interrupted`` counts runs that Ctrl-C has ended among the newest; they are neither good nor bad. ``only_runs``
    has the only run of a cell where it did not pass.
    """

    rules: Rules
    slower: tuple[Slower, ...]
    worse: tuple[Worse, ...]
    flaky: tuple[Flaky, ...]
    too_few: tuple[TooFew, ...]
    tests: int
    cells: int
    stale: tuple[str, ...]
    interrupted: int = 0
    only_runs: tuple[OnlyRun, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Fail where anything got worse, unknown where something could not be compared, else pass."""
        if self.slower or self.worse or self.flaky:
            return "fail"
        return "unknown" if self.too_few or self.only_runs or not self.cells else "pass"

    def to_json(self) -> dict[str, Any]:
        """Return plain data (docs/guides/trends.md)."""
        return {"schema_version": 1, "verdict": self.verdict, **asdict(self)}


def gate(
    rows: Iterable[RunRow], rules: Rules | None = None, scenario: str | None = None, *, soak: bool = False
) -> GateResult:
    """Judge the newest runs of each cell against the runs before them. ``rows`` come oldest first.

    ``scenario`` leaves one scenario, or one cell; runs of soaks count only with ``soak``.
    """
    rules = rules or Rules()
    rows = tuple(rows)
    looked_at, gone = windows(rows, rules, scenario, soak=soak)
    compared = phases_of(looked_at, rules)
    significant = holm(compared, lambda entry: entry.p, rules.alpha)
    slower = {entry.key: _slower(entry, limit, rules, len(compared)) for entry, limit in significant}
    return GateResult(
        rules,
        tuple(slowdown for entry in compared if (slowdown := slower.get(entry.key)) is not None),
        tuple(worse for series in looked_at if (worse := _worse(series)) is not None),
        tuple(flaky for series in looked_at if (flaky := _flaky(series, rules)) is not None),
        tuple(_too_few(compared, rules)),
        len(compared),
        len(looked_at),
        tuple(series.name for series in gone),
        _interrupted(rows, looked_at, scenario, soak=soak),
        tuple(run for series in looked_at if (run := _only_run(series)) is not None),
    )


def needed_runs(rules: Rules, tests: int) -> int:
    """Return how many passing runs of a cell the test needs, the newest included, with so many phases compared."""
    limit = rules.alpha / max(1, tests)
    return rules.newest + next(before for before in count(1) if lowest_p([(rules.newest, before)]) <= limit)


def _slower(entry: ComparedPhase, limit: float, rules: Rules, tests: int) -> Slower | None:
    slowdown = confirmed(entry.strata, entry.p, rules.bound, LEAST_SECONDS)
    if slowdown is None:
        return None
    newest, before = entry.newest, entry.before
    passing = [row for row in entry.series.rows if row.verdict == "pass"]
    return Slower(
        entry.series.name,
        entry.phase,
        slowdown.p,
        limit,
        tests,
        slowdown.share,
        slowdown.seconds,
        slowdown.bound,
        (median(before), median(newest)),
        (len(before), len(newest)),
        rules.max_slower,
        changes_between(passing[-rules.newest - 1], passing[-1]),
    )


def _too_few(compared: Sequence[ComparedPhase], rules: Rules) -> Iterator[TooFew]:
    for entry in compared:
        sizes = [(len(newest), len(before)) for newest, before in entry.strata if newest and before]
        if lowest_p(sizes) > rules.alpha / len(compared):
            numbers = len(entry.newest), len(entry.before), sum(map(sum, sizes))
            yield TooFew(*entry.key, *numbers, needed_runs(rules, len(compared)))


def _interrupted(rows: Sequence[RunRow], looked_at: Sequence[Series], scenario: str | None, *, soak: bool) -> int:
    """Return how many runs were interrupted since the oldest run that is looked at."""
    since = min((series.rows[0].started for series in looked_at), default="")
    return sum(
        row.interrupted and row.started >= since and is_of(row, scenario) and (soak or not row.soak) for row in rows
    )


def _worse(series: Series) -> Worse | None:
    """Return the newest verdict where it is worse than the most frequent one of the runs before it."""
    *before, newest = series.rows
    counts = Counter(map(_word, before))
    latest = {_word(row): row for row in before}
    usual = min(latest, key=lambda word: (-counts[word], _badness(latest[word])), default=None)
    if usual is None or _badness(newest) <= _badness(latest[usual]):
        return None
    changes = changes_between(latest[usual], newest)
    return Worse(series.name, newest.run, newest.verdict, usual, counts[usual], newest.headline, changes)


def _word(row: RunRow) -> str:
    return FINDING if row.known else row.verdict


def _badness(row: RunRow) -> int:
    """Return the place of a verdict, the best first. A fail beyond a known finding is worse than the finding."""
    return 0 if row.excused else ("pass", "unknown", FINDING, "fail").index(_word(row))


def _only_run(series: Series) -> OnlyRun | None:
    row = series.newest
    if len(series.rows) > 1 or row.verdict == "pass" or row.known:
        return None
    return OnlyRun(series.name, row.run, row.verdict, row.headline)


def _flaky(series: Series, rules: Rules) -> Flaky | None:
    """Return the flips between pass and fail on the newest version, in the newest runs."""
    newest = series.newest
    same = [row for row in series.rows[-rules.newest :] if row.versions == newest.versions]
    passed = [row for row in same if row.verdict == "pass"]
    failed = [row for row in same if row.verdict == "fail" and not row.excused]
    if not passed or not failed:
        return None
    return Flaky(series.name, len(passed), len(failed), failed[-1].run, failed[-1].headline)
