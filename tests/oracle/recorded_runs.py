"""The recorded runs of the oracle: what each has left, and the result that ``chaos analyze`` has to make of it.

``runs/`` holds what runs have left, without the names of the machine that made them. The recorded runs of
``chaos selftest`` are judged where they lie in the package. ``results/`` holds the ``result.json`` of each run, byte
for byte. Nothing in it is made neutral: the time of a run, its code and its machine are read from what it has left, and
a result names paths in the run's directory only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.report.analyze import analyze
from chaos.report.result_file import FILE
from chaos.selftest.recorded import RECORDED
from tests.oracle.archive import SUFFIX, read_archive
from tests.oracle.changed_evidence import CHANGES

RUNS = Path(__file__).parent / "runs"
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class RecordedRun:
    """A recorded run. ``change`` spoils its evidence before it is judged; None where it is judged as it was left."""

    name: str
    archive: Path
    change: Callable[[Path], None] | None = None

    @property
    def result(self) -> Path:
        """The file with the result that the run has to get."""
        return RESULTS / f"{self.name}.json"

    def judge_again(self, place: Path) -> str:
        """Return the text of the result that the run gets today. The run is unpacked in the new directory ``place``."""
        read_archive(self.archive, place)
        if self.change is not None:
            self.change(place)
        analyze(place)
        return (place / FILE).read_text(encoding="utf-8")


def archive_of(name: str) -> Path:
    """Return where the run of that name is recorded."""
    return RUNS / f"{name}{SUFFIX}"


def recorded_runs() -> list[RecordedRun]:
    """Return all runs, in the order of their names: those that were recorded, and those whose evidence was changed."""
    archives = {path.name.removesuffix(SUFFIX): path for path in RUNS.glob(f"*{SUFFIX}")}
    archives |= {path.stem: path for path in RECORDED.glob("*.zip")}
    runs = [RecordedRun(name, archive) for name, archive in archives.items()]
    runs += [RecordedRun(f"{name}.{what}", archives[name], change) for (name, what), change in CHANGES.items()]
    return sorted(runs, key=lambda run: run.name)
