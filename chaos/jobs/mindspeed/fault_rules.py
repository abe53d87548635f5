"""Faults after which MindIO TFT promises nothing for a job of MindSpeed-LLM, or something not planned yet."""

from __future__ import annotations

from chaos.jobs.mindspeed.case import LIMITS, PAGE, Case
from chaos.jobs.mindspeed.switches import NO_REPLICA
from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import ExpectCheckpoint


def check_faults(case: Case, draft: Draft, problems: Problems) -> None:
    """Note the faults of a protected job whose outcome the vendor excludes, or that this version cannot plan."""
    if case.on is None:
        return
    lethal = [fault for fault in draft.faults if fault.lethal]
    _too_many(lethal, draft, problems)
    _controller(case, lethal, draft, problems)
    _not_planned(case, draft, problems)
    expected = draft.scenario.expect.checkpoint
    if isinstance(expected, ExpectCheckpoint) and expected.ranks is not None:
        problems.add(
            "expect.checkpoint.ranks",
            "which rank of a data-parallel group writes is MindIO TFT's choice: the first of the ranks that together "
            "hold one copy of the optimizer's state",
            hint="leave ranks out",
        )


def _too_many(lethal: list[Scheduled], draft: Draft, problems: Problems) -> None:
    """Note the loss of half of the ranks or more."""
    dead: set[int] = set()
    for fault in lethal:
        dead.update(fault.fault.ranks)
        if 2 * len(dead) >= draft.layout.ranks:
            problems.add(
                f"{fault.path}.target",
                f"{len(dead)} of {draft.layout.ranks} ranks are lost, and more than half have to live, so that another "
                f"controller can take over and save ({LIMITS})",
                text=ranks(fault.fault.ranks),
                hint="let more than half of the ranks live",
            )
            return


def _controller(case: Case, lethal: list[Scheduled], draft: Draft, problems: Problems) -> None:
    """Note the loss of the controller's node, where the cluster's agent moves the nodes of lost ranks."""
    strategies = set(case.scenario.job.strategies) if case.scenario.job.agent else set()
    if "recover" not in strategies or "recover-in-place" in strategies:
        return
    for fault in lethal:
        if hit := [rank for rank in fault.fault.ranks if rank in draft.layout.node_ranks(0)]:
            problems.add(
                f"{fault.path}.target",
                f"{ranks(hit)} is on node 0 with the controller of MindIO TFT, and process-level rescheduling "
                f"(recover) does not survive the loss of the controller's node ({LIMITS})",
                text=ranks(hit),
                hint="hit ranks of another node, or allow recover-in-place",
            )


def _not_planned(case: Case, draft: Draft, problems: Problems) -> None:
    stopping = [fault for fault in draft.faults if fault.lethal or fault.raised]
    if not stopping:
        return
    argument, elastic = case.arguments.get(NO_REPLICA), case.switches.get("elastic-training")
    if argument is not None:
        problems.add(
            argument.path,
            f"{NO_REPLICA}: without replicas a repair takes all ranks back to the periodic checkpoint ({PAGE}: it must "
            "be there when the fault comes), which is not yet planned by this version",
            text=argument.name,
            hint="leave it out, so that replicas repair, or inject no fault",
        )
    if elastic is not None and case.scenario.job.agent:
        problems.add(
            elastic.path,
            f"{elastic.spelled}: where no device is free, the nodes of the lost rank's part of data parallelism leave "
            "and the others train on (MindCluster, elastic training); training on with fewer ranks is not yet planned "
            "by this version",
            text=elastic.spelled,
            hint="leave it out, or inject no fault",
        )
