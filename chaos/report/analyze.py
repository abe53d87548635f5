"""From a run's directory to its reports. The same directory gives the same bytes, anywhere and at any time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.checks.judge import Judgement, judge
from chaos.checks.recovery.measures import Measure, rollback, stalled
from chaos.evidence.first_errors import first_errors
from chaos.evidence.pods import pod_fates
from chaos.evidence.text import readable
from chaos.history.jsonl import decode
from chaos.history.reader import History
from chaos.plan.io import as_data
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.report.headline import headline_of
from chaos.report.junit import write_junit
from chaos.report.making import read_making
from chaos.report.reason import broken_in_order, reason_of
from chaos.report.result import CheckResult, FaultResult, PodResult, RecoveryResult, Result
from chaos.report.result_file import write_result


def analyze(
    run_dir: Path, *, write: bool = True, bounded: bool = True, page: Callable[[str], None] | None = None
) -> Result:
    """Judge the run in ``run_dir`` and, with ``write``, put result.json and junit.xml there.

    With ``page`` report.html is made as well; ``page`` is called with the reason if that fails,
    since the verdict is sound without the page.

    Needs neither the job nor the machine that ran it. ``bounded``: no more of the directory is read than a user can
    wait for. Raises chaos.checks.judge.RunUnreadable when there is no plan, and OSError when the reports cannot be
    written.
    """
    judgement = judge(run_dir, bounded=bounded)
    result = result_of(run_dir, judgement)
    if write:
        write_result(result, run_dir)
        write_junit(result, run_dir)
    if page is not None:
        _make_page(run_dir, judgement, result, page)
    return result


def _make_page(run_dir: Path, judgement: Judgement, result: Result, failed: Callable[[str], None]) -> None:
    from chaos.report.page.write import write_page  # the templates are imported where a page is made

    try:
        write_page(run_dir, judgement, result)
    except Exception as error:  # a run's files may hold anything, and the verdict stands without the page
        failed(f"report.html could not be made: {type(error).__name__}: {error}")


def result_of(run_dir: Path, judgement: Judgement) -> Result:
    """Return the result of a run that was judged: all that result.json holds."""
    plan, facts = judgement.plan, _read_facts(run_dir / "run.json")
    broken = broken_in_order(judgement.verdict, judgement.findings, judgement.history)
    order = {id(finding): number for number, finding in enumerate(broken)}
    result = Result(
        scenario=plan.identity.scenario,
        cell=plan.identity.cell,
        seed=plan.training.seed,
        verdict=judgement.verdict,
        reason=readable(reason_of(judgement.verdict, broken, judgement.history)),
        plan=_plan(plan),
        faults=tuple(_fault(judgement.history, fault) for fault in plan.faults),
        checks=tuple(
            CheckResult(
                finding.check,
                finding.verdict,
                finding.expected,
                finding.seen,
                finding.where,
                finding.by_log,
                order.get(id(finding)),
                finding.data,
            )
            for finding in judgement.findings
        ),
        recovery=_recovery(judgement),
        baseline=_baseline(plan, run_dir),
        versions=_versions(facts),
        simulated=_simulated(facts),
        agent=_agent_cost(judgement.history),
        clocks=_clocks(judgement.history),
        pods=_pods(judgement),
        first_errors=() if judgement.verdict == "pass" else first_errors(run_dir),
        made=read_making(judgement.history, facts),
        not_checked=tuple(
            {"name": exclusion.check, "what": exclusion.what, "reason": exclusion.reason}
            for exclusion in judgement.not_checked
        ),
    )
    return replace(result, headline=headline_of(result))


def _agent_cost(history: History) -> dict[str, float | None]:
    """Return the agent's cost of a step in microseconds: the worst rank's median, None where no rank recorded it."""
    costs = history.select("agent.cost")

    def worst(key: str) -> float | None:
        return max(
            (float(event.data[key]) for event in costs if isinstance(event.data.get(key), (int, float))), default=None
        )

    return {"hooks_us": worst("hooks_us_median"), "digests_us": worst("digest_us_median")}


def _clocks(history: History) -> tuple[dict[str, Any], ...]:
    """Return the measurements of other hosts' clocks, in seconds."""
    return tuple(
        {
            "host": host,
            "boot": boot,
            "same": clock.same,
            "offset": clock.measured[0].offset / 1e9,
            "error": clock.error / 1e9,
            "drift": (clock.measured[-1].offset - clock.measured[0].offset) / 1e9,
            "measurements": len(clock.measured),
        }
        for (host, boot), clock in sorted(history.clocks.items())
    )


def _pods(judgement: Judgement) -> tuple[PodResult, ...]:
    """Return the fate of the job's pods in each recovery; empty where it did not run in pods."""
    return tuple(
        PodResult(
            fate.recovery,
            fate.mechanisms,
            fate.node,
            fate.what,
            readable(fate.why),
            None if fate.before is None else asdict(fate.before),
            None if fate.after is None else asdict(fate.after),
        )
        for fate in pod_fates(judgement.plan, judgement.history)
    )


def _read_facts(path: Path) -> dict[str, Any]:
    """Read run.json; empty if unreadable: versions and stand-ins inform a reader, no verdict rests on them."""
    try:
        return decode(read_plain(path))
    except (OSError, ValueError):
        return {}


def _versions(facts: dict[str, Any]) -> dict[str, Any]:
    versions = facts.get("versions")
    return versions if isinstance(versions, dict) else {}


def _simulated(facts: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    parts = facts.get("simulated")
    named = (part for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return tuple(part for part in named if isinstance(part.get("part"), str) and isinstance(part.get("layer"), str))


def _plan(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON would give it back; of paths on the run's machine only the last part."""
    data = json.loads(json.dumps(as_data(plan), allow_nan=False))
    assert isinstance(data, dict)
    for key in ("source", "baseline"):
        if PurePath(data[key]).is_absolute():
            data[key] = PurePath(data[key]).name
    return data


def _fault(history: History, fault: PlannedFault) -> FaultResult:
    landing = history.first("fault.landed", fault=fault.id)
    evidence = landing.data.get("evidence") if landing else None
    return FaultResult(
        id=fault.id,
        kind=fault.kind,
        ranks=fault.ranks,
        evidence=tuple(entry for entry in evidence if isinstance(entry, dict)) if isinstance(evidence, list) else (),
        healed=history.first("fault.healed", fault=fault.id) is not None,
    )


def _recovery(judgement: Judgement) -> RecoveryResult:
    recovery, history = judgement.recovery, judgement.history
    total = None if recovery.total is None else recovery.total / 1e9
    phases = {phase.name: phase.seconds for phase in recovery.phases}
    cost = (_figure(lambda: rollback(judgement.plan, history)), _figure(lambda: stalled(history)))
    errors = {**{phase.name: phase.error for phase in recovery.phases}, "total": recovery.error}
    wrong = {name: error / 1e9 for name, error in errors.items() if error}
    return RecoveryResult(recovery.mechanism, phases, total, recovery.reason, *cost, wrong)


def _figure(measured: Callable[[], Measure]) -> float | None:
    try:
        return measured().value
    except Exception:  # events whose data is missing; the checks report them
        return None


def _baseline(plan: Plan, run_dir: Path) -> dict[str, Any]:
    """Return the requested baseline (``auto``, ``none``, or a run's name), and the run that was compared with."""
    baseline = plan.equivalence.baseline
    requested = baseline if baseline in ("auto", "none") else PurePath(baseline).name
    run = _read_facts(run_dir / "baseline" / "run.json").get("run")
    return {"wanted": requested, "run": run if isinstance(run, str) else None}
