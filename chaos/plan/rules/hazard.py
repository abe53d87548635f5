"""The damage that a fault may do beyond its job, and the scenario's permission by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from chaos.plan.platform_traits import PlatformTraits
    from chaos.plan.problems import Problems
    from chaos.plan.schedule import Scheduled
    from chaos.scenario.models.scenario import Scenario


Risk = Literal["high", "severe"]
"""``high``: the state of a card is changed, for everything that uses it, until it is put back. ``severe``: everything
on the machine is lost. A kind without a hazard is of low risk: it touches the run's own processes, files and
connections only, and needs no permission."""

ESCALATION = (
    "the cluster counts the faults that its device plugin reports of a card: by default 41 codes, such as 80E01801, "
    "quarantine it (ManuallySeparateNPU) at the second time within 24 hours, and others at the third or fifth"
)
"""Source: MindCluster, configuring fault detection levels (faultCustomization.json)."""


@dataclass(frozen=True)
class Hazard:
    """A hazard of a fault kind, in words that follow its name.

    ``disturbs`` names everything else that is hit, ``undone`` the way it is put back. ``device``: it hits an Ascend
    device, which the cluster may quarantine. ``whole_host`` takes the machine itself. ``stays`` until the launch has
    ended, so it cannot be made a second time.
    """

    risk: Risk
    disturbs: str
    undone: str
    device: bool = True
    whole_host: bool = False
    stays: bool = False


def check_allowed(
    scenario: Scenario,
    faults: Sequence[Scheduled],
    hazards: Mapping[str, Hazard],
    platform: PlatformTraits,
    problems: Problems,
) -> None:
    """Note faults that the scenario does not allow by name, and faults that can hit nothing here."""
    staying: dict[tuple[str, int], str] = {}
    for fault in faults:
        kind, hazard = fault.fault.kind, hazards.get(fault.fault.kind)
        if hazard is None:
            continue
        if kind not in scenario.allow:
            problems.add(
                f"{fault.path}.kind",
                f"fault {fault.fault.id!r} is of {hazard.risk} risk: {kind} {hazard.disturbs} ({hazard.undone})",
                text=kind,
                hint=f"where that may happen, allow it by name: allow: [{', '.join(sorted({*scenario.allow, kind}))}]",
            )
        for rank in fault.fault.ranks if hazard.stays else ():
            other = staying.setdefault((kind, rank), fault.fault.id)
            if other != fault.fault.id:
                problems.add(
                    f"{fault.path}.target",
                    f"fault {fault.fault.id!r} cannot hit rank {rank}: what fault {other!r} has done to its card stays "
                    "until the launch has ended",
                    text=f"rank {rank}",
                    hint="hit another rank, or remove one of the two faults",
                )
                break
        if hazard.device and scenario.job.device != "Ascend":
            problems.add(
                f"{fault.path}.kind",
                f"{kind} hits an Ascend device, but the job trains on {scenario.job.device} "
                f"({problems.where('job.device')})",
                text=kind,
                hint="set job.device: Ascend, with a job kind that trains there",
            )
        if hazard.whole_host and platform.harness_machine:
            problems.add(
                f"{fault.path}.kind",
                f"{kind} takes the machine, and on the platform {scenario.cluster.platform} the harness runs on the "
                "same one: the harness would end with the machine and could prove nothing",
                text=kind,
                hint=platform.for_machine,
            )


def hazard_reasons(faults: Sequence[Scheduled], hazards: Mapping[str, Hazard]) -> tuple[str, ...]:
    """Return the plan's reasons about hazards: the risk, and how often a card is hit."""
    risky = [fault for fault in faults if fault.fault.kind in hazards]
    if not risky:
        return ()
    reasons = [
        f"Fault {fault.fault.id} is of {hazards[fault.fault.kind].risk} risk and allowed by name: {fault.fault.kind} "
        f"{hazards[fault.fault.kind].disturbs}."
        for fault in risky
    ]
    hits = [rank for fault in risky for rank in fault.fault.ranks]
    twice = sorted({rank for rank in hits if hits.count(rank) > 1})
    if not any(hazards[fault.fault.kind].device for fault in risky):
        return tuple(reasons)
    again = f"; this scenario hits the card of rank {', '.join(map(str, twice))} more than once" if twice else ""
    return (*reasons, f"Repeated runs add up: {ESCALATION}{again}.")
