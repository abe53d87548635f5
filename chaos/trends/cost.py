"""The cost of failures: the expected share of effective training time (ETTR) with each mechanism.

The recoveries are measured, in the runs of the store. The rate of failures is the user's, or a published one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from chaos.trends.row import RunRow, times_of
from chaos.trends.series import TOTAL

HOUR = 3600.0
MONTH_HOURS = 730.0


@dataclass(frozen=True)
class Rate:
    """How often a card fails: hours between two failures of one card, and where the figure is from."""

    card_hours: float
    source: str


PUBLISHED = {
    "llama3": Rate(
        16_384 * 54 * 24 / 419,
        "Llama 3 405B, The Llama 3 Herd of Models, 2024, arXiv 2407.21783: 419 unexpected interruptions in 54 days on "
        "16,384 H100 (GPUs, no Ascend cards)",
    ),
}
"""Published rates by name. None of them is of Ascend cards."""


@dataclass(frozen=True)
class Cluster:
    """The user's cluster and job. ``interval`` and ``save`` are those of periodic checkpoints, in seconds, or None.

    ``step`` is the length of a training step in seconds, or None where it is not known.
    """

    ranks: int
    rate: Rate
    interval: float | None = None
    save: float = 0.0
    step: float | None = None

    @property
    def between(self) -> float:
        """Seconds between two failures of the whole cluster: any card stops the job."""
        return self.rate.card_hours * HOUR / self.ranks


@dataclass(frozen=True)
class PhaseWorth:
    """One phase: its median in seconds, and what it costs and what a minute less of it is worth.

    ``cost`` and ``minute`` are shares of the training time, ``card_hours`` is the cost of the phase in a month of the
    whole cluster.
    """

    phase: str
    seconds: float
    cost: float
    minute: float
    card_hours: float


@dataclass(frozen=True)
class MechanismCost:
    """One mechanism. ``runs`` are the passing runs in which it acted, ``recovery`` the median of their recoveries.

    ``lost`` is the training in seconds that is done again after a failure.
    """

    mechanism: str
    runs: int
    recovery: float
    lost: float
    ettr: float
    phases: tuple[PhaseWorth, ...]


@dataclass(frozen=True)
class Cost:
    """The costs of all mechanisms in the store, the best first. ``measured`` and ``assumed`` say so in sentences."""

    cluster: Cluster
    mechanisms: tuple[MechanismCost, ...]
    measured: tuple[str, ...]
    assumed: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data (docs/guides/trends.md)."""
        return {"schema_version": 1, "between_failures": self.cluster.between, **asdict(self)}


def ettr(cluster: Cluster, recovery: float, lost: float) -> float:
    """Return the expected share of effective training time.

    Between two failures the cluster trains for ``between`` seconds, in which it also saves checkpoints. A failure adds
    the recovery and the training that is done again.
    """
    saving = 0.0 if cluster.interval is None else cluster.save / cluster.interval
    return 1 / (1 + saving + (recovery + lost) / cluster.between)


def cost_of(rows: Iterable[RunRow], cluster: Cluster) -> Cost:
    """Return the cost of failures with each mechanism that acted in passing runs. Runs of soaks do not count."""
    acted: dict[str, list[RunRow]] = {}
    for row in rows:
        if row.verdict == "pass" and row.mechanism and row.total is not None and not row.soak:
            acted.setdefault(row.mechanism, []).append(row)
    costs = [_mechanism(name, mechanism_rows, cluster) for name, mechanism_rows in acted.items()]
    return Cost(
        cluster,
        tuple(sorted(costs, key=lambda cost: -cost.ettr)),
        _measured(acted),
        (*_assumed(cluster), *_unmeasured(acted, cluster), *_rehearsed(acted)),
    )


def _mechanism(name: str, rows: list[RunRow], cluster: Cluster) -> MechanismCost:
    times = [times_of(row) for row in rows]
    recovery = median(row_times[TOTAL] for row_times in times)
    lost = _lost(rows, cluster)
    whole = ettr(cluster, recovery, lost)
    phases = []
    for phase in dict.fromkeys(phase for row_times in times for phase in row_times if phase != TOTAL):
        seconds = median(row_times[phase] for row_times in times if phase in row_times)
        saved = ettr(cluster, max(0.0, recovery - seconds), lost) - whole
        minute = ettr(cluster, max(0.0, recovery - min(60.0, seconds)), lost) - whole
        phases.append(PhaseWorth(phase, seconds, saved, minute, saved * cluster.ranks * MONTH_HOURS))
    return MechanismCost(name, len(rows), recovery, lost, whole, tuple(phases))


def _lost(rows: list[RunRow], cluster: Cluster) -> float:
    """Return the seconds of training that are done again after a failure.

    A mechanism that trained no step again in its runs loses none. Another one goes back to a periodic checkpoint: half
    an interval on average, or the measured steps where there is no interval. So does one whose steps are not known.
    """
    known = [row.rollback for row in rows if row.rollback is not None]
    steps = median(known) if known else None
    if steps == 0:
        return 0.0
    return (steps or 0.0) * (cluster.step or 0.0) if cluster.interval is None else cluster.interval / 2


def _measured(acted: dict[str, list[RunRow]]) -> tuple[str, ...]:
    rows = [row for mechanism_rows in acted.values() for row in mechanism_rows]
    if not rows:
        return ()
    ranks = sorted({row.ranks for row in rows if row.ranks is not None})
    settings = sorted({" ".join(filter(None, (row.platform, row.sdk))) for row in rows})
    return (
        f"recoveries and their phases: medians of {len(rows)} passing runs with {', '.join(map(str, ranks))} ranks "
        f"({', '.join(settings)})",
        "whether a mechanism trains steps again, and how many",
    )


def _unmeasured(acted: dict[str, list[RunRow]], cluster: Cluster) -> Iterable[str]:
    """Say which mechanisms may train steps again without a figure of it."""
    for name, rows in acted.items():
        if all(row.rollback is None for row in rows):
            lost = "none are counted" if cluster.interval is None else "half an interval is counted"
            yield f"no run recorded how many steps {name} trains again: {lost}"


def _rehearsed(acted: dict[str, list[RunRow]]) -> Iterable[str]:
    """Say that times of a stand-in are not the vendor's: a cost that rests on them is a rehearsal of the sum."""
    rows = [row for mechanism_rows in acted.values() for row in mechanism_rows]
    if number := sum(row.sdk.startswith("standin") for row in rows):
        yield f"{number} of {len(rows)} runs had a stand-in for the SDK: the times of the vendor's SDK are others"


def _assumed(cluster: Cluster) -> Iterable[str]:
    yield f"a card fails once in {cluster.rate.card_hours:,.0f} hours: {cluster.rate.source}"
    yield f"any of {cluster.ranks:,} cards stops the job: a failure every {cluster.between / HOUR:,.2f} hours"
    yield "a recovery takes as long on this cluster as in the runs of the store"
    yield "every failure is one that the mechanism recovers from, and none comes during a recovery"
    if cluster.interval is not None:
        yield f"a checkpoint every {cluster.interval:,.0f} s holds training up for {cluster.save:,.1f} s"
        yield "a mechanism that trains steps again loses half an interval"
    else:
        length = "no time (--step)" if cluster.step is None else f"{cluster.step:,.2f} s each"
        yield f"no periodic checkpoints are saved (--checkpoint-interval); steps that are trained again take {length}"
