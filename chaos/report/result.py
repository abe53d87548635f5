"""The result of a run: the public format of a verdict (docs/reference/result-format.md describes every key)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from chaos.evidence.finding import Verdict
from chaos.evidence.first_errors import FirstError
from chaos.evidence.pods import What
from chaos.evidence.statement_data import NO_DATA, StatementData
from chaos.evidence.statement_data import from_json as data_from_json

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class CheckResult:
    """One statement of one check. ``by_log``: it rests on lines of a log alone.

    ``order`` is its place in time among the statements that decide the verdict: 0 is the cause, and later statements
    may follow from it. None for all other statements. ``data`` says as data what the sentences say.
    """

    name: str
    verdict: Verdict
    expected: str
    seen: str
    where: tuple[str, ...]
    by_log: bool = False
    order: int | None = None
    data: StatementData = NO_DATA


@dataclass(frozen=True)
class FaultResult:
    """One planned fault. ``evidence`` is the record of its landing, empty where there was none."""

    id: str
    kind: str
    ranks: tuple[int, ...]
    evidence: tuple[dict[str, Any], ...]
    healed: bool


@dataclass(frozen=True)
class RecoveryResult:
    """Seconds by phase, in order; None where a phase could not be measured. ``reason`` says why the total is None.

    ``rollback`` counts the steps that were trained again, ``stalled`` the seconds that saving periodic checkpoints took
    from training before the fault; None where it is not known. ``errors`` holds by how many seconds a phase, or
    ``total``, may be longer or shorter, where its ends were seen on clocks of several hosts.
    """

    mechanism: str | None
    phases: dict[str, float | None]
    total: float | None
    reason: str = ""
    rollback: float | None = None
    stalled: float | None = None
    errors: dict[str, float] = field(default_factory=dict)

    def measure(self, name: str) -> float | None:
        """Return the figure of a name: a phase, ``total``, ``rollback`` or ``stalled``; None where it is unknown."""
        totals = {"total": self.total, "rollback": self.rollback, "stalled": self.stalled}
        return totals[name] if name in totals else self.phases.get(name)


@dataclass(frozen=True)
class PodResult:
    """The fate of the pod of a node in a recovery, ``recovery`` counted from 1.

    ``what`` is ``replaced``, ``restarted`` (in place), ``ended``, ``untouched`` or ``unknown``, and ``why`` says so in
    words. ``before`` and ``after`` hold ``name``, ``uid`` and ``host``; None where there is no such pod, or none known.
    """

    recovery: int
    mechanisms: tuple[str, ...]
    node: int
    what: What
    why: str
    before: dict[str, str | None] | None
    after: dict[str, str | None] | None


@dataclass(frozen=True)
class Making:
    """How and when a run was made; None where the run did not record it.

    ``started`` is ISO 8601 in UTC, ``seconds`` lasts from there to the end that the harness recorded. ``command`` and
    ``variables`` (every variable and axis with the value that held) have their secrets masked. ``cores`` are the job's
    cores, ``machine`` the machine and its load. ``code`` is a digest of the harness's own files, ``hosts`` the
    inventory's entries for the hosts of the nodes, ``inputs`` a fingerprint of each file and variable that decides
    about the job.
    """

    started: str | None = None
    seconds: float | None = None
    command: tuple[str, ...] | None = None
    variables: dict[str, Any] | None = None
    cores: tuple[int, ...] | None = None
    machine: dict[str, Any] | None = None
    code: str | None = None
    hosts: tuple[dict[str, Any], ...] | None = None
    inputs: dict[str, Any] | None = None


@dataclass(frozen=True)
class Headline:
    """The first failure, in a line. ``check`` is the check that found it.

    ``id`` is the same for the same failure in another night, whatever its ranks, numbers and paths are.
    """

    id: str
    check: str
    text: str


@dataclass(frozen=True)
class Result:
    """A verdict and everything that it rests on, as plain data.

    ``reason`` is one line, empty for a pass. ``headline`` is None for a pass, and in results of earlier versions.
    """

    scenario: str
    cell: str
    seed: int
    verdict: Verdict
    plan: dict[str, Any]
    faults: tuple[FaultResult, ...]
    checks: tuple[CheckResult, ...]
    recovery: RecoveryResult
    baseline: dict[str, Any]
    versions: dict[str, Any]
    simulated: tuple[dict[str, Any], ...]
    not_checked: tuple[dict[str, str], ...]
    agent: dict[str, float | None]
    clocks: tuple[dict[str, Any], ...] = ()
    pods: tuple[PodResult, ...] = ()
    reason: str = ""
    first_errors: tuple[FirstError, ...] = ()
    made: Making = Making()
    headline: Headline | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data in the order of the documented format."""
        return {
            "schema_version": SCHEMA_VERSION,
            "scenario": self.scenario,
            "cell": self.cell,
            "seed": self.seed,
            "verdict": self.verdict,
            "reason": self.reason,
            "headline": None if self.headline is None else asdict(self.headline),
            "plan": self.plan,
            "faults": [
                {
                    "id": fault.id,
                    "kind": fault.kind,
                    "ranks": list(fault.ranks),
                    "evidence": list(fault.evidence),
                    "healed": fault.healed,
                }
                for fault in self.faults
            ],
            "checks": [
                {
                    "name": check.name,
                    "verdict": check.verdict,
                    "expected": check.expected,
                    "seen": check.seen,
                    "data": check.data.to_json(),
                    "where": list(check.where),
                    "by_log": check.by_log,
                    "order": check.order,
                }
                for check in self.checks
            ],
            "recovery": {
                "mechanism": self.recovery.mechanism,
                "phases": dict(self.recovery.phases),
                "total": self.recovery.total,
                "reason": self.recovery.reason,
                "rollback": self.recovery.rollback,
                "stalled": self.recovery.stalled,
                "errors": dict(self.recovery.errors),
            },
            "baseline": self.baseline,
            "versions": self.versions,
            "simulated": list(self.simulated),
            "not_checked": list(self.not_checked),
            "agent": dict(self.agent),
            "clocks": list(self.clocks),
            "pods": [{**asdict(pod), "mechanisms": list(pod.mechanisms)} for pod in self.pods],
            "first_errors": [asdict(error) for error in self.first_errors],
            "made": {
                **asdict(self.made),
                "command": None if self.made.command is None else list(self.made.command),
                "cores": None if self.made.cores is None else list(self.made.cores),
                "hosts": None if self.made.hosts is None else list(self.made.hosts),
            },
        }


def from_json(data: dict[str, Any]) -> Result:
    """Return the result in ``data``, the opposite of :meth:`Result.to_json`.

    Raises KeyError, TypeError or ValueError on anything else.
    """
    if data["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema_version {data['schema_version']}: this version reads {SCHEMA_VERSION}")
    recovery = data["recovery"]
    return Result(
        scenario=data["scenario"],
        cell=data["cell"],
        seed=data["seed"],
        verdict=data["verdict"],
        reason=data.get("reason", ""),
        plan=data["plan"],
        faults=tuple(
            FaultResult(fault["id"], fault["kind"], tuple(fault["ranks"]), tuple(fault["evidence"]), fault["healed"])
            for fault in data["faults"]
        ),
        checks=tuple(
            CheckResult(
                check["name"],
                check["verdict"],
                check["expected"],
                check["seen"],
                tuple(check["where"]),
                check.get("by_log", False),
                check.get("order"),
                data_from_json(check.get("data", {})),
            )
            for check in data["checks"]
        ),
        recovery=RecoveryResult(
            recovery["mechanism"],
            recovery["phases"],
            recovery["total"],
            recovery["reason"],
            recovery.get("rollback"),
            recovery.get("stalled"),
            recovery.get("errors", {}),
        ),
        baseline=data["baseline"],
        versions=data["versions"],
        simulated=tuple(data["simulated"]),
        not_checked=tuple(data["not_checked"]),
        agent=data["agent"],
        clocks=tuple(data.get("clocks", ())),
        pods=tuple(PodResult(**{**pod, "mechanisms": tuple(pod["mechanisms"])}) for pod in data.get("pods", ())),
        first_errors=tuple(FirstError(**error) for error in data.get("first_errors", ())),
        made=_making(data.get("made", {})),
        headline=None if data.get("headline") is None else Headline(**data["headline"]),
    )


def _making(data: dict[str, Any]) -> Making:
    command, cores, hosts = data.get("command"), data.get("cores"), data.get("hosts")
    return Making(
        data.get("started"),
        data.get("seconds"),
        None if command is None else tuple(command),
        data.get("variables"),
        None if cores is None else tuple(cores),
        data.get("machine"),
        data.get("code"),
        None if hosts is None else tuple(hosts),
        data.get("inputs"),
    )
