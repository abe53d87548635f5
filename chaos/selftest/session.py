"""One call of the selftest: its directories, its processes, and its result."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.run.prepare.versions import versions
from chaos.selftest.base import BaseRuns, cache_directory
from chaos.selftest.defect import Defect, Row
from chaos.selftest.engine import Engine, Watcher
from chaos.selftest.evidence import Removal, stale, sweep
from chaos.selftest.launcher import Launcher
from chaos.selftest.live_run import LiveRuns
from chaos.selftest.workdirs import place_to_make


@dataclass(frozen=True)
class Result:
    """The result of a selftest. ``seconds`` is the time that it took in all."""

    rows: tuple[Row, ...]
    removals: tuple[Removal, ...]
    seconds: float

    @property
    def caught(self) -> int:
        """Defects that were caught for the right reason."""
        return sum(row.caught for row in self.rows)

    @property
    def passed(self) -> tuple[Removal, ...]:
        """Evidence without which a check passed all the same."""
        return tuple(removal for removal in self.removals if not removal.held)

    @property
    def stale(self) -> tuple[str, ...]:
        """The allowed gaps that no good run needs any more, in words."""
        return stale(self.removals)

    @property
    def not_run(self) -> bool:
        """Whether a defect could not be put into a run."""
        return any(row.outcome == "not run" for row in self.rows)

    @property
    def good(self) -> bool:
        """Whether every defect was caught, nothing passed without its evidence, and every allowed gap was needed."""
        return self.caught == len(self.rows) and not self.passed and not self.stale

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "total": len(self.rows),
            "caught": self.caught,
            "seconds": round(self.seconds, 3),
            "evidence": {
                "total": len(self.removals),
                "held": len(self.removals) - len(self.passed),
                "excused": sum(bool(removal.green) and removal.held for removal in self.removals),
            },
            "rows": [row.to_json() for row in self.rows],
            "passed_without": [removal.to_json() for removal in self.passed],
            "stale_excuses": list(self.stale),
        }


def run_selftest(
    defects: Sequence[Defect],
    *,
    jobs: int,
    keep: Path | None,
    evidence: bool,
    watcher: Watcher,
    environment: Mapping[str, str] = os.environ,
) -> Result:
    """Put each defect into a run and judge it; with ``evidence`` also remove evidence from every good run in use.

    ``jobs`` runs go on at the same time. Spoilt runs are left in ``keep``. Raises BaseUnusable if there is no directory
    for good runs; KeyboardInterrupt passes through once every process is gone.
    """
    began = time.monotonic()
    removals: list[Removal] = []
    cores = max(1, len(os.sched_getaffinity(0)) // jobs)
    cache = cache_directory(environment)
    launcher = Launcher()
    with place_to_make(cache, watcher.note) as making:
        place = making if keep is None else keep
        place.mkdir(parents=True, exist_ok=True)
        bases = BaseRuns(cache, making, launcher, versions())

        def on_base(name: str, run: Path) -> None:
            if evidence:
                base_removals = list(sweep(name, run, place / "evidence"))
                removals.extend(base_removals)
                watcher.note(f"base {name}: {len(base_removals)} pieces of evidence taken away, one at a time")

        def take_base(name: str, target: Path) -> Path:
            return bases.take(name, target, cores=cores, note=watcher.note)

        live = LiveRuns(take_base, launcher, cores=cores, clock=time.monotonic, keep=keep is not None)
        engine = Engine(
            take_base=take_base,
            run_live=live.run,
            stop=launcher.stop,
            place=place,
            jobs=jobs,
            clock=time.monotonic,
            watcher=watcher,
            on_base=on_base,
            keep=keep is not None,
        )
        rows = engine.run(defects)
    return Result(tuple(rows), tuple(removals), time.monotonic() - began)
