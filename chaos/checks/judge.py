"""From a run's directory to a verdict. Only the files in it are read, so the verdict can be repeated anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path

from chaos.base.plain_files import Share, TooMuch, read_plain, reading_at_most
from chaos.checks.loss.blind_limits import limits_left_out
from chaos.checks.mechanism.protected import protection_left_out
from chaos.checks.own.statements import own_statements
from chaos.checks.recovery.left_out import phases_left_out
from chaos.checks.recovery.measured import Recovery
from chaos.checks.recovery.pace import pace_left_out
from chaos.checks.recovery.phases import measure
from chaos.checks.registry import PRECONDITIONS, Check, all_checks
from chaos.checks.scope import NotChecked, not_checked
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.elements import with_elements
from chaos.evidence.checkpoints.stored import leaves_out_updates
from chaos.evidence.finding import Finding, Verdict, worst
from chaos.evidence.text import readable
from chaos.history.reader import History, read_history
from chaos.plan.io import PlanFormatError, loads
from chaos.plan.model import Plan
from chaos.plan.parts.training import MOST_STEPS_PER_UPDATE

_TEXT_LIMIT = 500
_LONGEST_TEXT = 4000

MAX_RANKS = 16_384
"""Most ranks of a run that can be judged. More can be planned, but no record exists of such a run."""


class RunUnreadable(Exception):
    """The directory holds no run that can be judged. The text names the missing part and the remedy."""


@dataclass(frozen=True)
class Judgement:
    """All statements of the checks about a run, with the plan, history and files behind them."""

    findings: tuple[Finding, ...]
    recovery: Recovery
    verdict: Verdict
    not_checked: tuple[NotChecked, ...]
    plan: Plan
    history: History
    artifacts: Artifacts


def judge(run_dir: Path, checks: dict[str, Check | EntryPoint] | None = None, *, bounded: bool = True) -> Judgement:
    """Run every check over the run in ``run_dir``; the worst verdict wins.

    ``checks`` replaces the registered ones. A check that raises is unknown, and so is one that would read more of the
    run than :class:`chaos.base.plain_files.Share` allows in all, unless that is not to be ``bounded``. Raises
    RunUnreadable when there is no plan to judge by.
    """
    with reading_at_most(Share() if bounded else None):
        return _judge(run_dir, checks)


def _judge(run_dir: Path, checks: dict[str, Check | EntryPoint] | None) -> Judgement:
    _refuse_links(run_dir)
    plan = _read_plan(run_dir)
    history = read_history(run_dir / "history")
    directory = run_dir / "baseline" / "history"
    baseline = read_history(directory) if directory.is_dir() else None
    artifacts = Artifacts(
        run_dir,
        baseline,
        steps_per_update=plan.training.steps_per_update or 1,
        updates_left_out=any(leaves_out_updates(recorded) for recorded in (history, baseline) if recorded is not None),
    )
    left_out = not_checked(plan)
    findings: list[Finding] = []
    for name, check in (all_checks() if checks is None else checks).items():
        check_findings = _run(name, check, plan, history, artifacts)
        if not check_findings and all(exclusion.check != name for exclusion in left_out):
            check_findings = [Finding(name, "unknown", "the check makes a statement about the run", "it made none")]
        findings.extend(_presentable(finding, run_dir) for finding in check_findings)
    findings.extend(_presentable(finding, run_dir) for finding in own_statements(history))
    findings = with_elements(_without_blame(findings), artifacts)
    verdict = worst([finding.verdict for finding in findings])
    left_out += _unjudged(plan, history, artifacts)
    return Judgement(
        tuple(findings), _measured(plan, history, artifacts), verdict, tuple(left_out), plan, history, artifacts
    )


def _read_plan(run_dir: Path) -> Plan:
    path = run_dir / "plan.json"
    try:
        plan = loads(read_plain(path))
    except OSError as error:
        raise RunUnreadable(f"{path}: {error.strerror}: give the directory of a run, reports/<run>") from error
    except PlanFormatError as error:
        raise RunUnreadable(f"{path}: {error}") from error
    if plan.layout.ranks > MAX_RANKS:
        raise RunUnreadable(f"{path}: a run of {plan.layout.ranks} ranks cannot be judged; {MAX_RANKS} is the limit")
    if (plan.training.steps_per_update or 1) not in range(1, MOST_STEPS_PER_UPDATE + 1):
        raise RunUnreadable(
            f"{path}: {plan.training.steps_per_update} steps for one update of the optimizer cannot be judged"
        )
    return plan


def _refuse_links(run_dir: Path) -> None:
    """Refuse links: a run's directory holds its own files.

    The target of a link could be anybody's, and could change meanwhile.
    """
    names = (
        "plan.json",
        "run.json",
        "history",
        "baseline",
        "baseline/history",
        "baseline/run.json",
        "baseline/logs",
        "job",
        "logs",
    )
    for path in (
        *(run_dir / name for name in names),
        *run_dir.glob("logs/*"),
        *run_dir.glob("logs/*/ttp*"),
        *run_dir.glob("baseline/logs/*"),
    ):
        if path.is_symlink():
            raise RunUnreadable(f"{path}: is a link; a run's directory must hold its files itself")


def _run(name: str, check: Check | EntryPoint, plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    # Whatever a check or its evidence does, the other checks still run and the verdict is not a pass.
    try:
        function: Check = check.load() if isinstance(check, EntryPoint) else check
        findings = list(function(plan, history, artifacts))
    except TooMuch as error:
        reason = f"{error}: the rest was not read; chaos analyze --unbounded reads all of it"
        findings = [Finding(name, "unknown", "all that the check needs can be read", reason)]
    except Exception as error:
        text = f"the check crashed: {type(error).__name__}: {error}"[:_TEXT_LIMIT]
        findings = [Finding(name, "unknown", "the check comes to an end", text)]
    for text in artifacts.take_unseen():
        findings.append(Finding(name, "unknown", "all that the job has left can be searched", f"not searched: {text}"))
    return findings


def _presentable(finding: Finding, run_dir: Path) -> Finding:
    """Return the finding without the run's place on this machine, and without unprintable characters."""
    place = f"{run_dir}/"

    def shown(text: str) -> str:
        text = readable(text if place == "./" else text.replace(place, ""))
        return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"

    where = tuple(map(shown, finding.where))
    return replace(finding, expected=shown(finding.expected), seen=shown(finding.seen), where=where)


def _measured(plan: Plan, history: History, artifacts: Artifacts) -> Recovery:
    # The recovery check reports the same error as its finding; here only the figures are lost.
    try:
        return measure(plan, history, artifacts)
    except Exception as error:
        return Recovery(None, reason=f"{type(error).__name__}: {error}"[:_TEXT_LIMIT])


def _unjudged(plan: Plan, history: History, artifacts: Artifacts) -> list[NotChecked]:
    """Return the comparisons that the run itself leaves out of its verdict.

    A comparison that cannot be determined carries the reason, and the rest is reported.
    """
    asked: tuple[tuple[str, Callable[[], Iterable[NotChecked]]], ...] = (
        ("recovery", lambda: phases_left_out(plan, history, artifacts)),
        ("recovery", lambda: pace_left_out(plan, history, artifacts)),
        ("mechanism", lambda: protection_left_out(plan, history)),
        ("loss", lambda: limits_left_out(plan, history, artifacts)),
    )
    left: list[NotChecked] = []
    for name, look in asked:
        try:
            left.extend(look())
        except Exception as error:
            reason = readable(f"{type(error).__name__}: {error}")[:_TEXT_LIMIT]
            left.append(NotChecked(name, "what this check leaves out in this run is unknown", reason))
    return left


def _without_blame(findings: list[Finding]) -> list[Finding]:
    """Turn failures into unknown where nobody can be blamed for them.

    With a damaged record a missing event proves nothing; in a run that was broken off the missing event was not
    awaited; without proof of the planned fault nothing is known about the recovery from it. The observation stays in
    the text. Failures of these three checks themselves stay failures.
    """
    doubts = [finding for finding in findings if finding.check in PRECONDITIONS and finding.verdict == "unknown"]
    if not doubts:
        return findings
    names = ", ".join(dict.fromkeys(finding.check for finding in doubts))
    return [
        replace(finding, verdict="unknown", seen=f"{finding.seen} (a failure if not for the doubts of: {names})")
        if finding.verdict == "fail" and finding.check not in PRECONDITIONS
        else finding
        for finding in findings
    ]
