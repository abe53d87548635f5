"""A soak: the same cells again and again, recorded run by run, so that it can be interrupted, resumed and added up."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chaos.run.json_lines import JsonLines

VERDICTS = ("pass", "fail", "unknown")

Cell = tuple[str, str]
"""Names of a scenario and of its matrix cell."""


@dataclass(frozen=True)
class SoakRun:
    """One run of a soak. ``verdict`` is None where the harness failed; ``code`` is the key of what was run.

    ``started`` is in seconds of the epoch, ``load`` the machine's load average over the last minute at the end.
    """

    scenario: str
    cell: str
    code: str
    verdict: str | None
    run: str | None
    started: float
    seconds: float
    load: float

    @property
    def of(self) -> Cell:
        """The cell that was run."""
        return self.scenario, self.cell


class SoakRecord:
    """The file of a soak: one line a run. Lines that say something else do not count."""

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path)

    def append(self, run: SoakRun) -> None:
        """Add a run: a kill loses at most the line that is being written."""
        self._lines.append(asdict(run))

    def runs(self) -> list[SoakRun]:
        """Every run that the file tells of, in order."""
        return [run for record in self._lines.read() if (run := _parsed(record)) is not None]


def _parsed(record: dict[str, Any]) -> SoakRun | None:
    try:
        run = SoakRun(**record)
    except TypeError:
        return None
    texts, numbers = (run.scenario, run.cell, run.code), (run.started, run.seconds, run.load)
    sound = all(isinstance(one, str) for one in texts) and isinstance(run.run, str | None)
    sound = sound and all(isinstance(one, (int, float)) for one in numbers)
    return run if sound and (run.verdict is None or run.verdict in VERDICTS) else None


def code_key(scenario_text: str, package: Path, *, without: Collection[str] = ()) -> str:
    """What makes two runs comparable: the text of the scenario and the harness's own code.

    ``without`` names rooms of the package that have no part in what is compared.
    """
    digest = hashlib.blake2b(scenario_text.encode(), digest_size=8)
    for file in sorted(package.rglob("*.py")):
        if file.relative_to(package).parts[0] in without:
            continue
        digest.update(str(file.relative_to(package)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def key_of_runs(scenario: Path, settings: Mapping[str, str], package: Path, made_with: Mapping[str, str]) -> str:
    """The key of what is run now: the file of the scenario with its settings, the harness's code, and the versions.

    Take it again after each run: an edited file or new code makes a run one of another key. Raises OSError when the
    scenario cannot be read.
    """
    given = json.dumps([dict(settings), dict(made_with)], sort_keys=True)
    return code_key(scenario.read_text("utf-8") + given, package)


def still_to_run(cells: Sequence[Cell], runs: Iterable[SoakRun], times: int) -> Iterator[Cell]:
    """Cells in the order in which they must run so that each has run ``times`` times: those with the fewest first."""
    done = Counter(run.of for run in runs)
    for round_number in range(times):
        for cell in cells:
            if done[cell] <= round_number:
                yield cell


@dataclass(frozen=True)
class Tally:
    """What the runs of one cell came to."""

    scenario: str
    cell: str
    verdicts: dict[str, int]
    harness_failed: int
    wanted: str

    @property
    def runs(self) -> int:
        """How many there are."""
        return sum(self.verdicts.values()) + self.harness_failed

    @property
    def good(self) -> bool:
        """Whether every run has the verdict that is wanted."""
        return self.verdicts[self.wanted] == self.runs

    @property
    def flaky(self) -> bool:
        """Whether the runs do not agree."""
        return sum(count > 0 for count in (*self.verdicts.values(), self.harness_failed)) > 1

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "runs": self.runs, "flaky": self.flaky}


def tally(cell: Cell, runs: Iterable[SoakRun], wanted: str) -> Tally:
    """Add up the runs of a cell. ``wanted`` is pass, or fail for a scenario of a known finding."""
    own = [run.verdict for run in runs if run.of == cell]
    return Tally(*cell, {name: own.count(name) for name in VERDICTS}, own.count(None), wanted)
