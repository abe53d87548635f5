"""No check passes when its evidence is missing: the evidence in a good run is taken away, bit by bit.

Events are left out one group at a time, a kind of one rank in one launch, as if they had never been recorded: then the
run must not be green. Files are removed from a copy: then no check that rests on them may say pass.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from chaos.checks.judge import judge
from chaos.checks.registry import BUILT_IN
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import REMEMBERED
from chaos.evidence.finding import Finding, Verdict, worst
from chaos.history.event import Event
from chaos.history.host_clock import EVENT as CLOCK
from chaos.history.reader import History, read_history
from chaos.plan.io import loads
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import IN_STEP, REJOINING
from chaos.plan.recovery.registry import Names
from chaos.selftest.allowed_gaps import ALLOWED_GAPS, AllowedGaps, gap_reason, kind_of, stale_gaps
from chaos.selftest.defect import Mutate
from chaos.selftest.files import buried
from chaos.selftest.records import Records, recorded

_IN_RANK_LOGS = Names(lambda mechanism: mechanism.signs is not None and bool(mechanism.signs.ranks))
"""Mechanisms with lines of their own in the ranks' logs."""

Group = tuple[str, str | None, int | None]
"""Events of one kind: their name, their launch and their rank."""


@dataclass(frozen=True)
class Removal:
    """Evidence that was taken away from a good run.

    ``green`` names the checks that passed all the same, ``excuse`` the reason why they may: other evidence shows
    the same.
    ``kind`` is the evidence as an allowed gap names it, for any rank; empty for files, which no allowed gap covers.
    """

    base: str
    evidence: str
    green: tuple[str, ...]
    excuse: str = ""
    kind: str = ""

    @property
    def held(self) -> bool:
        """Whether no check passed that should not."""
        return not self.green or bool(self.excuse)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"base": self.base, "evidence": self.evidence, "green": list(self.green), "excuse": self.excuse}


@dataclass(frozen=True)
class _Watched(History):
    """A history that records which kinds of events the checks ask for by name."""

    asked: set[str] = field(default_factory=set)

    def select(self, event: str | None = None, /, **match: Any) -> list[Event]:
        if event is not None:
            self.asked.add(event)
        return super().select(event, **match)


def sweep(base: str, run_dir: Path, place: Path, allowed: AllowedGaps = ALLOWED_GAPS) -> Iterator[Removal]:
    """Take away everything that the checks look at in the good run ``run_dir``. Copies are made in ``place``.

    ``base`` is the kind of the run: only its own ``allowed`` gaps count.
    """
    yield from _without_events(base, run_dir, allowed)
    yield from _without_files(base, run_dir, place)


def stale(removals: Collection[Removal], allowed: AllowedGaps = ALLOWED_GAPS) -> tuple[str, ...]:
    """Return the allowed gaps of the swept bases, in words, that none of these removals has needed."""
    taken = {(removal.base, name) for removal in removals for name in (removal.kind, removal.evidence)}
    needed = {
        (removal.base, name) for removal in removals if removal.green for name in (removal.kind, removal.evidence)
    }
    return stale_gaps(taken, needed, allowed)


def _without_events(base: str, run_dir: Path, allowed: AllowedGaps) -> Iterator[Removal]:
    plan = loads((run_dir / "plan.json").read_bytes())
    run_history, baseline = read_history(run_dir / "history"), read_history(run_dir / "baseline" / "history")
    watched, watched_baseline = (
        _Watched(history.events, history.problems, history.clocks) for history in (run_history, baseline)
    )
    artifacts = Artifacts(run_dir, watched_baseline)
    _verdict(plan, watched, artifacts)
    artifacts.baseline = baseline
    for group, left in _groups(run_history, watched.asked):
        yield _removal(base, group, _verdict(plan, left, artifacts), allowed)
    for group, left in _groups(baseline, watched_baseline.asked):
        artifacts.baseline = left
        yield _removal(base, group, _verdict(plan, run_history, artifacts), allowed, baseline=True)


def _removal(base: str, group: Group, verdict: Verdict, allowed: AllowedGaps, *, baseline: bool = False) -> Removal:
    event, attempt, rank = group
    kind, named = (kind_of(event, attempt, who, baseline=baseline) for who in (None, rank))
    green = ("the run",) if verdict == "pass" else ()
    return Removal(base, named, green, gap_reason(base, (kind, named), allowed), kind)


def _goes_on(plan: Plan) -> bool:
    """Return whether any rank trains on, or tries to, after the faults."""
    return plan.response.mechanism != "none" or plan.resume.restore is not None


def _goes_on_alike(plan: Plan) -> bool:
    """Return whether the ranks train on as in the fault-free run, batch by batch."""
    return _goes_on(plan) and plan.response.mechanism not in REJOINING


def _groups(history: History, asked: set[str]) -> Iterator[tuple[Group, History]]:
    """Yield every requested kind of event of a rank and launch, and the history without it.

    All times have been placed by the measurements of clocks already; these are taken from the files.
    """
    groups = {(event.event, event.attempt, event.rank) for event in history.events if event.event in asked - {CLOCK}}
    for group in sorted(groups, key=str):
        left = tuple(event for event in history.events if (event.event, event.attempt, event.rank) != group)
        yield group, replace(history, events=left)


def _verdict(plan: Plan, history: History, artifacts: Artifacts) -> Verdict:
    """Return the verdict of all checks; ``unknown`` as soon as one is not green, since the caller needs no more."""
    artifacts.logged = None  # which ranks are judged by their logs depends on the history
    for check in BUILT_IN.values():
        try:
            findings = check(plan, history, artifacts)
        except Exception:  # as chaos.checks.judge has it: a check that crashes is unknown
            return "unknown"
        if findings and worst([finding.verdict for finding in findings]) != "pass":
            return "unknown"
    return "pass"


@dataclass(frozen=True)
class _Source:
    """Files of a run, by their patterns, and the checks that rest on them if the first of the files exist.

    ``records`` are events of the harness that tell as much as the files. They go with them.
    """

    name: str
    patterns: tuple[str, ...]
    checks: tuple[str, ...]
    where: Callable[[Plan], bool] = lambda plan: True
    records: tuple[str, ...] = ()


_OWN = "history/*-rank_*.jsonl"
_HARNESS = "history/harness.jsonl"
_SDK_LOG = "logs/train/ttp*"

_SOURCES: Sequence[_Source] = (
    _Source("the history of the ranks", (_OWN,), ("history", "loss", "consistency")),
    _Source(
        "the history of the ranks", (_OWN,), ("injection",), lambda plan: any(fault.ranks for fault in plan.faults)
    ),
    _Source("the history of the ranks", (_OWN,), ("resume",), _goes_on),
    _Source("the history of the ranks", (_OWN,), ("checkpoint",), lambda plan: bool(plan.checkpoint)),
    # Of an end-of-life save the SDK's log tells as much.
    _Source("the history of the ranks and the SDK's log", (_OWN, _SDK_LOG), ("mechanism",)),
    _Source("the history of the harness", (_HARNESS,), ("history", "run", "injection", "hygiene")),
    _Source(
        "the history of the harness",
        (_HARNESS,),
        ("mechanism", "resume", "recovery"),
        lambda plan: bool(plan.response.recoveries),
    ),
    _Source("the baseline", ("baseline",), ("loss",)),
    _Source("the baseline", ("baseline",), ("resume",), _goes_on_alike),
    _Source("the baseline", ("baseline",), ("checkpoint",), lambda plan: bool(plan.checkpoint)),
    _Source("the end-of-life checkpoints", ("job/checkpoints/ttp_saved*",), ("checkpoint", "resume", "loss")),
    _Source(
        "the periodic checkpoints",
        ("job/checkpoints/rank_*",),
        ("resume",),
        lambda plan: bool(plan.resume.restore),
        records=(REMEMBERED,),
    ),
    _Source(
        "the periodic checkpoints",
        ("job/checkpoints/rank_*",),
        ("loss",),
        lambda plan: bool(plan.resume.restore) and plan.resume.resumes,
        records=(REMEMBERED,),
    ),
    _Source("the SDK's log", (_SDK_LOG,), ("recovery",), lambda plan: plan.response.mechanism in IN_STEP),
    _Source(
        "the ranks' logs",
        ("logs/train/worker_*.log",),
        ("mechanism",),
        lambda plan: plan.response.mechanism in _IN_RANK_LOGS,
    ),
    _Source("the undo ledger", ("undo.jsonl",), ("hygiene",)),
    _Source(
        "group_info.pb", ("job/checkpoints/*/group_info.pb",), ("consistency",), lambda plan: plan.layout.group_info
    ),
    _Source(
        "the record of norms",
        ("job/**/abnormal_global_norm.json",),
        ("mechanism",),
        lambda plan: bool(plan.fault_tolerance.watch),
    ),
)


_SEARCHING = ("checkpoint", "hygiene")
"""Checks that search everything that a job has left, in every run."""


def _without_files(base: str, run_dir: Path, place: Path) -> Iterator[Removal]:
    plan = loads((run_dir / "plan.json").read_bytes())
    for source in _SOURCES:
        if source.where(plan) and any(run_dir.glob(source.patterns[0])):
            findings = _judged(run_dir, place, partial(_remove, source.patterns, records=source.records))
            yield Removal(base, source.name, _passing(findings, source.checks))
    if (run_dir / "job").is_dir():
        findings = _judged(run_dir, place, buried("job"))
        yield Removal(base, "a search of all that the job has left", _passing(findings, _SEARCHING))
    for path in sorted(run_dir.glob("history/*-rank_*.jsonl")):
        name = path.relative_to(run_dir).as_posix()
        yield Removal(base, name, _passing(_judged(run_dir, place, partial(_remove, [name])), ("history",)))
    for (host, boot), clock in sorted(read_history(run_dir / "history").clocks.items()):
        if not clock.same:
            unmeasured = recorded(partial(_forget_clock, host, boot))
            passing = _passing(_judged(run_dir, place, unmeasured), ("history",))
            yield Removal(base, f"the clock of {host} in boot {boot}", passing)


def _judged(run_dir: Path, place: Path, mutate: Mutate) -> Sequence[Finding]:
    copy = shutil.copytree(run_dir, place / run_dir.name, symlinks=True)
    try:
        mutate(copy)
        return judge(copy).findings
    finally:
        shutil.rmtree(copy)


def _remove(patterns: Sequence[str], copy: Path, records: Collection[str] = ()) -> None:
    for path in [path for pattern in patterns for path in sorted(copy.glob(pattern))]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if records:
        recorded(partial(_forget, records))(copy)


def _forget(names: Collection[str], records: Records) -> None:
    records.drop([record for name in names for record in records.all(name)])


def _forget_clock(host: str, boot: str, records: Records) -> None:
    records.drop(records.all(CLOCK, host=host, boot=boot))


def _passing(findings: Sequence[Finding], checks: Sequence[str]) -> tuple[str, ...]:
    """Return the checks that say nothing but pass."""
    return tuple(
        name for name in checks if all(finding.verdict == "pass" for finding in findings if finding.check == name)
    )
