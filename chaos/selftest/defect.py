"""A seeded defect: the change to a good run, the check that must catch it, and the check's statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from chaos.evidence.finding import Finding, Verdict
from chaos.selftest.acts import Act

Layer = Literal["files", "SDK", "device layer", "job"]
"""Where the defect sits: in the files of a finished run, or in a part of the rehearsal while it runs."""

LAYERS: tuple[Layer, ...] = ("files", "SDK", "device layer", "job")

ExpectedVerdict = Literal["fail", "unknown"]
"""The verdict that the check must give: a promise was broken, or the evidence for it is gone."""

Outcome = Literal["caught", "wrong reason", "missed", "did not act", "not run"]
"""``did not act``: a defect in the processes of a job has changed nothing, so the checks' statements are chance."""

Mutate = Callable[[Path], None]
"""Changes the copy of a good run's directory. It raises NothingToMutate rather than change nothing."""

FILES: Layer = "files"


class NothingToMutate(Exception):
    """The run does not hold the subject of the defect's change. The text names what was looked for."""


@dataclass(frozen=True)
class Defect:
    """One defect.

    ``name`` is in kebab-case and unique; ``what`` is one sentence for the table. ``base`` names the good scenario in
    chaos/selftest/scenarios/ that is spoilt. ``check`` must have a finding with verdict ``verdict``, and its words, or
    places, must contain every text of ``reason``. A defect of the layer files has ``mutate``; any other has ``inside``,
    the function ``package.module:function`` that puts it into the processes of the job.
    """

    name: str
    what: str
    layer: Layer
    base: str
    check: str
    reason: tuple[str, ...]
    verdict: ExpectedVerdict = "fail"
    mutate: Mutate | None = None
    inside: str = ""

    def __post_init__(self) -> None:
        if not self.reason or not all(self.reason):
            raise ValueError(f"defect {self.name}: without a reason any finding would do")
        if (self.layer == FILES) != (self.mutate is not None) or (self.layer == FILES) == bool(self.inside):
            raise ValueError(f"defect {self.name}: layer files has mutate, every other has inside")


def file_defect(
    name: str,
    what: str,
    mutate: Mutate,
    *reason: str,
    base: str,
    check: str,
    verdict: ExpectedVerdict = "fail",
) -> Defect:
    """Return a defect in the files of a finished run."""
    return Defect(name, what, FILES, base, check, reason, verdict, mutate)


@dataclass(frozen=True)
class Row:
    """The outcome of a defect. ``seen`` is the finding that caught it, or the statement in its place.

    ``acts`` are the changes by a defect in the processes of a job, the first of each process.
    """

    defect: Defect
    outcome: Outcome
    seconds: float
    seen: str
    acts: tuple[Act, ...] = ()

    @property
    def caught(self) -> bool:
        """Whether it was caught for the right reason."""
        return self.outcome == "caught"

    def to_json(self) -> dict[str, Any]:
        """Return plain data, for ``chaos selftest --json``."""
        defect = self.defect
        return {
            "name": defect.name,
            "what": defect.what,
            "layer": defect.layer,
            "base": defect.base,
            "check": defect.check,
            "reason": list(defect.reason),
            "wanted": defect.verdict,
            "outcome": self.outcome,
            "seconds": round(self.seconds, 3),
            "seen": self.seen,
            **({} if defect.layer == FILES else {"acts": [act.to_json() for act in self.acts]}),
        }


def outcome_of(defect: Defect, findings: Sequence[Finding], verdict: Verdict) -> tuple[Outcome, str]:
    """Return the outcome of a judgement of the spoilt run, and the expected finding, else the worst one.

    ``verdict`` is that of the whole run. A defect with its finding is caught only if the run is not green.
    """
    if verdict == "pass":
        return "missed", "the run passes"
    for finding in findings:
        text = line_of(finding)
        if (
            finding.check == defect.check
            and finding.verdict == defect.verdict
            and all(part in text for part in defect.reason)
        ):
            return "caught", text
    for expected in (verdict, "fail", "unknown"):
        for finding in findings:
            if finding.verdict == expected:
                return "wrong reason", f"{finding.check} {finding.verdict}: {line_of(finding)}"
    return "wrong reason", f"the verdict is {verdict}, and no finding says why"


def line_of(finding: Finding) -> str:
    """Return a finding in one line: the expectation, the observation, the place."""
    where = f" ({', '.join(finding.where)})" if finding.where else ""
    return f"{finding.expected} | {finding.seen}{where}"
