"""A soak: the same cells again and again, recorded run by run, so that it can be interrupted, resumed and added up."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from chaos.jobs.inputs import BY_SIZE_AND_TIME
from chaos.jobs.kind import JobError
from chaos.own.allowed import own_sources
from chaos.run.made_with import code_key
from chaos.run.prepare.inputs import inputs_of
from chaos.run.prepare.known_failure import failing_by, holding, unexpected
from chaos.run.prepare.needs import chosen_sdk
from chaos.run.prepare.registered import look_up_names
from chaos.run.prepare.versions import versions
from chaos.scenario.load import Cell as LoadedCell
from chaos.scenario.load import LoadedScenario
from chaos.scenario.models.scenario import Scenario
from chaos.store.json_lines import JsonLines

VERDICTS = ("pass", "fail", "unknown")

_FINDING = re.compile(r"F-[0-9]{2,}")

Cell = tuple[str, str]
"""Names of a scenario and of its matrix cell."""


@dataclass(frozen=True)
class SoakRun:
    """One run of a soak. ``verdict`` is None where the harness failed; ``code`` is the key of the run's inputs.

    ``started`` is in seconds of the epoch, ``load`` the machine's load average over the last minute at the end.
    ``failing`` names the checks that failed, with spaces between them, or the findings whose signatures explain the
    fail; ``sdk`` is the SDK of the run.
    """

    scenario: str
    cell: str
    code: str
    verdict: str | None
    run: str | None
    started: float
    seconds: float
    load: float
    failing: str = ""
    sdk: str = ""

    @property
    def of(self) -> Cell:
        """The cell that was run."""
        return self.scenario, self.cell


class SoakRecord:
    """The file of a soak: one line a run. Lines of another form do not count."""

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path)

    def append(self, run: SoakRun) -> None:
        """Add a run: a kill loses at most the line that is being written."""
        self._lines.append(asdict(run))

    def runs(self) -> list[SoakRun]:
        """Return every run in the file, in order."""
        return [run for record in self._lines.read() if (run := _parsed(record)) is not None]


def _parsed(record: dict[str, Any]) -> SoakRun | None:
    try:
        run = SoakRun(**record)
    except TypeError:
        return None
    texts, numbers = (run.scenario, run.cell, run.code, run.failing, run.sdk), (run.started, run.seconds, run.load)
    sound = all(isinstance(text, str) for text in texts) and isinstance(run.run, str | None)
    sound = sound and all(isinstance(number, (int, float)) for number in numbers)
    return run if sound and (run.verdict is None or run.verdict in VERDICTS) else None


def key_of_runs(
    scenario: Path,
    settings: Mapping[str, str],
    package: Path,
    made_with: Mapping[str, str],
    inputs: Mapping[str, str] | None = None,
) -> str:
    """Return the key of a run made now: scenario file and settings, the harness's files, versions, the job's inputs.

    Take it again after each run: an edited file or new code gives a run another key. Raises OSError when the scenario
    cannot be read.
    """
    inputs_text = json.dumps([dict(settings), dict(made_with), dict(inputs or {})], sort_keys=True)
    return code_key(scenario.read_text("utf-8") + inputs_text, package)


@dataclass(frozen=True)
class Keys:
    """Keys of a run made now. ``of`` includes the outside view of the job's data.

    A job may write to its data itself. So ``sources``, without the data, decides whether a run still has that key.
    """

    of: str
    sources: str


def keys_of_cells(
    loaded: LoadedScenario, cells: Iterable[LoadedCell], settings: Mapping[str, str], package: Path, sdk: str = "auto"
) -> Keys:
    """Return the keys of a run of these cells with the requested SDK.

    Inputs of a job that cannot be read are reported by the run itself. Raises OSError when the scenario cannot be read.
    """
    inputs_by_name: dict[str, str] = {}
    for cell in cells:
        scenario, names = cell.scenario, look_up_names(cell.scenario)
        inputs_by_name[f"SDK of cell {cell.name}"] = chosen_sdk(sdk, scenario, names)
        try:
            inputs = inputs_of(names.job, names.named, scenario, loaded.path.parent, os.environ)
        except (JobError, OSError) as error:
            inputs = {"not readable": str(error)}
        inputs_by_name.update({f"{name} of cell {cell.name}": value for name, value in inputs.items()})
        inputs_by_name.update(own_sources(scenario, loaded.path.parent))
    solid = {name: value for name, value in inputs_by_name.items() if not name.startswith(BY_SIZE_AND_TIME)}
    sources = key_of_runs(loaded.path, settings, package, versions(), solid)
    of = hashlib.blake2b((sources + json.dumps(inputs_by_name, sort_keys=True)).encode(), digest_size=8).hexdigest()
    return Keys(of, sources)


def still_to_run(cells: Sequence[Cell], runs: Iterable[SoakRun], times: int) -> Iterator[Cell]:
    """Yield cells in the order in which they must run so that each has run ``times`` times.

    The cells with the fewest runs come first.
    """
    done = Counter(run.of for run in runs)
    for round_number in range(times):
        for cell in cells:
            if done[cell] <= round_number:
                yield cell


@dataclass(frozen=True)
class Tally:
    """The results of the runs of one cell.

    ``failing`` has the checks that failed, one text for each combination: where a failure is expected, another failure
    than in the other runs is another defect. ``unexpected`` are those of them that the finding does not name.
    ``now_and_then``: not every run shows the finding, so a run that passes is as good as one that fails by it.
    ``by_signature`` counts the runs, by finding, that the signature of a finding explains: they are neither good nor
    bad, and in no other number but ``runs``.
    """

    scenario: str
    cell: str
    verdicts: dict[str, int]
    harness_failed: int
    expected_verdict: str
    failing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    now_and_then: bool = False
    by_signature: dict[str, int] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(self.verdicts.values()) + self.harness_failed + sum(self.by_signature.values())

    @property
    def good(self) -> bool:
        """Whether there are runs, and every run has the expected verdict, and fails in the same checks.

        An expected failure must be the finding's own: in the checks that it names.
        """
        expected = self.verdicts[self.expected_verdict] + (self.verdicts["pass"] if self.now_and_then else 0)
        others = self.runs - sum(self.by_signature.values())
        return 0 < others == expected and not self.flaky and not self.unexpected

    @property
    def flaky(self) -> bool:
        """Whether the runs disagree."""
        passed, failed, unknown = (self.verdicts[name] for name in VERDICTS)
        counts = (passed + failed, unknown) if self.now_and_then else (passed, failed, unknown)
        differ = sum(count > 0 for count in (*counts, self.harness_failed)) > 1
        return differ or (self.expected_verdict == "fail" and len(self.failing) > 1)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "runs": self.runs, "flaky": self.flaky}


def tally(cell: Cell, runs: Iterable[SoakRun], expected: Collection[str] = (), *, now_and_then: bool = False) -> Tally:
    """Add up the runs of a cell.

    ``expected`` are the checks in which a known finding fails; without a finding, none. ``now_and_then``: not every run
    shows the finding.
    """
    cell_runs = [run for run in runs if run.of == cell]
    explained = Counter(run.failing for run in cell_runs if _is_by_signature(run))
    cell_runs = [run for run in cell_runs if not _is_by_signature(run)]
    verdicts = Counter(run.verdict for run in cell_runs)
    failing = sorted({run.failing for run in cell_runs if run.verdict == "fail"})
    others = [name for line in failing for name in unexpected(line.split(), expected)] if expected else []
    counts = {name: verdicts[name] for name in VERDICTS}
    verdict = "fail" if expected else "pass"
    checks = tuple(failing), tuple(dict.fromkeys(others))
    return Tally(*cell, counts, verdicts[None], verdict, *checks, now_and_then and bool(expected), dict(explained))


def _is_by_signature(run: SoakRun) -> bool:
    return run.verdict == "fail" and bool(run.failing) and all(map(_FINDING.fullmatch, run.failing.split()))


def tally_with_finding(scenario: Scenario, cell: Cell, runs: Sequence[SoakRun]) -> Tally:
    """Add up the runs of a scenario's cell, by its finding where that holds with the SDK of the runs."""
    sdks = {run.sdk for run in runs if run.of == cell and run.sdk}
    known = holding(scenario, sdks)
    if known is None:
        return tally(cell, runs)
    return tally(cell, runs, failing_by(scenario, sdks), now_and_then=not known.always)
