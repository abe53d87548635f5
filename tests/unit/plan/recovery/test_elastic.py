"""ELASTIC: torchrun starts all ranks again, from the last checkpoint that is surely finished; and its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.faults.rank_acts.plan_own_ends import EXIT
from chaos.plan.job_effect import DEATH, HANG, MEMORY, SUSPENSION, UNKNOWN
from chaos.plan.parts.response import PHASES, Recovery
from chaos.plan.points import PHASE_ORDER
from chaos.plan.traits import JobTraits
from tests.unit.plan.conftest import Planner

JOB: dict[str, Any] = {"steps": 12, "protection": ("ELASTIC",), "checkpoint_interval": 4, "script": "train.py"}
TEN = {"group_timeout": "10s"}
EFFECTS = {
    "kill": DEATH,
    EXIT: DEATH,
    "exception": UNKNOWN,
    "suspend": SUSPENSION,
    "hang": HANG,
    "uce": MEMORY,
}


@pytest.fixture
def plan() -> Planner:
    """A planner of jobs whose launcher can start ranks again."""
    traits = JobTraits(
        frozenset(PHASE_ORDER),
        None,
        resumes_periodic=True,
        devices=frozenset({"CPU", "Ascend", "GPU"}),
        genuine=True,
        own_script=False,
        mindspore=False,
        vendor=None,
        own_launcher=True,
        launcher_restarts=True,
        shards_state=True,
    )
    return Planner(traits=traits, effects=EFFECTS)


def fault(kind: str, step: int, phase: str = "forward", rank: int = 2, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "target": {"rank": rank}, "trigger": {"step": step, "phase": phase}, **more}


def kill(step: int, phase: str = "forward", rank: int = 2, **more: Any) -> dict[str, Any]:
    return fault("kill", step, phase, rank, **more)


@pytest.mark.parametrize(
    ("step", "phase", "goes_on_after", "lost", "one_more"),
    [
        (3, "forward", 0, 2, ()),
        (7, "forward", 4, 2, ()),
        (7, "allreduce.enter", 4, 2, ()),
        (7, "step.end", 4, 3, ()),
        (8, "forward", 4, 3, ()),
        (9, "optimizer.update", 8, 0, (0, 1, 3)),
        (10, "forward", 8, 1, ()),
        (11, "step.end", 8, 3, ()),
    ],
)
def test_training_goes_on_after_the_last_certain_checkpoint(
    plan: Planner, step: int, phase: str, goes_on_after: int, lost: int, one_more: tuple[int, ...]
) -> None:
    found = plan(kill(step, phase, id="death"), job=JOB)
    assert found.response.recoveries == (
        Recovery(
            "ELASTIC",
            ("death",),
            goes_on_after,
            restarted=(0, 1, 2, 3),
            reads_checkpoint=goes_on_after > 0,
            trained_again=lost,
            one_more=one_more,
        ),
    )
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes) == ("ELASTIC", None, False)
    assert tuple(found.response.budget.phases) == PHASES["ELASTIC"]
    assert any(
        "with ELASTIC torchrun stops all ranks and starts them again" in why for why in found.explanation.reasons
    )


FOUR = {"data_parallel": 4}
PAIRS = {"data_parallel": 2, "model_parallel": 2}


@pytest.mark.parametrize(
    ("parallel", "one_more"),
    [
        ({**FOUR, "shard": "full"}, ()),
        ({**FOUR, "shard": "full", "copies": 2}, ()),
        ({**PAIRS, "shard": "full"}, ()),
        ({**FOUR, "shard": "optimizer"}, ()),
        (PAIRS, (1, 3)),
        ({"data_parallel": 2, "pipeline_stage": 2, "shard": "full"}, (0, 1)),
    ],
)
def test_nobody_ends_a_step_without_a_rank_that_keeps_a_part_of_every_gradient(
    plan: Planner, parallel: dict[str, Any], one_more: tuple[int, ...]
) -> None:
    cluster = {"ranks": 4, "parallel": parallel}
    found = plan(kill(7, "allreduce.enter"), job=JOB, cluster=cluster)
    (recovery,) = found.response.recoveries
    assert (recovery.step, recovery.trained_again, recovery.one_more) == (4, 2, one_more)


@pytest.mark.parametrize(
    ("step", "phase"), [(8, "optimizer.update"), (8, "checkpoint.begin"), (9, "forward"), (9, "allreduce.enter")]
)
def test_a_death_while_another_rank_may_save_is_refused(plan: Planner, step: int, phase: str) -> None:
    assert "may still have to save the periodic checkpoint of step 8 when torchrun stops them" in (
        plan.refused(kill(step, phase), job=JOB)
    )


@pytest.mark.parametrize("phase", ["checkpoint.begin", "checkpoint.write"])
def test_the_death_of_the_only_rank_that_saves_leaves_the_checkpoint_before(plan: Planner, phase: str) -> None:
    job = {**JOB, "savers": "replica groups"}
    found = plan(kill(8, phase), job=job)
    assert [(recovery.step, recovery.one_more) for recovery in found.response.recoveries] == [(4, ())]
    assert found.response.recoveries[0].trained_again == 4
    for savers in ("every rank", None):
        assert "may still have to save" in plan.refused(kill(8, phase), job={**JOB, "savers": savers})
    assert "may still have to save" in plan.refused(kill(8, "optimizer.update"), job=job)
    pairs = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
    assert "may still have to save" in plan.refused(kill(8, phase), job=job, cluster=pairs)


def test_a_second_death_is_answered_by_a_second_restart(plan: Planner) -> None:
    found = plan(kill(6), kill(10, rank=0), job=JOB)
    assert [(recovery.step, recovery.trained_again) for recovery in found.response.recoveries] == [(4, 1), (8, 1)]


@pytest.mark.parametrize(("limit", "restarts"), [(0, 0), (1, 1)])
def test_past_the_limit_of_restarts_torchrun_ends_the_job(plan: Planner, limit: int, restarts: int) -> None:
    job = {**JOB, "restart_limit": limit, "resume": False}
    found = plan(*(kill(6), kill(10, rank=0))[: limit + 1], job=job)
    assert (found.response.mechanism, len(found.response.recoveries)) == ("none", restarts)
    assert any(f"torchrun has started all ranks again {limit} time" in why for why in found.explanation.reasons)


def test_past_the_limit_the_job_is_resumed_if_the_scenario_says_so(plan: Planner) -> None:
    found = plan(kill(6), job={**JOB, "restart_limit": 0})
    assert (found.response.mechanism, found.resume.resume_step) == ("none", 5)


@pytest.mark.parametrize("kind", ["suspend", "hang"])
def test_a_silent_rank_is_refused_where_nothing_says_when_the_others_give_up(plan: Planner, kind: str) -> None:
    assert "write it as job.torchrun.group_timeout" in plan.refused(fault(kind, 7), job=JOB)


@pytest.mark.parametrize(
    ("kind", "parameters", "detection", "stop"),
    [
        ("kill", {}, 1.1, 5.0),
        ("exception", {}, 16.1, 5.0),
        ("uce", {}, 16.1, 5.0),
        (EXIT, {"code": 7}, 1.1, 5.0),
        (EXIT, {"code": 0}, 16.1, 5.0),
        ("hang", {}, 26.1, 5.0),
        ("suspend", {}, 26.1, 35.0),
    ],
)
def test_budgets_give_a_fault_the_time_after_which_it_is_noticed(
    plan: Planner, kind: str, parameters: dict[str, Any], detection: float, stop: float
) -> None:
    usual = plan(kill(7), job=JOB).response.budget
    found = plan(fault(kind, 7, parameters=parameters), job={**JOB, "torchrun": TEN}).response.budget
    assert found.phases == pytest.approx({**usual.phases, "detection": detection, "stop": stop})
    assert usual.total is not None
    assert found.total == pytest.approx(usual.total + detection - 1.1 + stop - 5.0)


def test_the_interval_of_looks_counts_for_the_detection_only(plan: Planner) -> None:
    found = plan(kill(7), job={**JOB, "torchrun": {"monitor_interval": "5s"}}).response.budget
    assert (found.phases["detection"], found.phases["relaunch"]) == (6.0, 5.0)


def test_a_written_budget_replaces_the_longer_one(plan: Planner) -> None:
    expect = {"recovery": {"total": "400s", "phases": {"detection": "30s"}}}
    found = plan(fault("hang", 7), job={**JOB, "torchrun": TEN}, expect=expect).response.budget
    assert (found.total, found.phases["detection"]) == (400.0, 30.0)


def test_only_the_faults_of_the_last_restart_make_its_phases_longer(plan: Planner) -> None:
    found = plan(fault("suspend", 6), kill(10, rank=0), job={**JOB, "torchrun": TEN}).response.budget
    assert (found.phases["detection"], found.phases["stop"]) == (1.1, 5.0)


def test_the_plan_says_who_notices_a_silent_rank(plan: Planner) -> None:
    reasons = " ".join(plan(fault("suspend", 7), job={**JOB, "torchrun": TEN}).explanation.reasons)
    assert "until the collectives of the other ranks give up after 10 s (job.torchrun.group_timeout)" in reasons
    assert "a stopped rank ends by SIGKILL only, 30 s after SIGTERM" in reasons
    quiet = " ".join(plan(fault(EXIT, 7, parameters={"code": 0}), job=JOB).explanation.reasons)
    assert "takes exit code 0 of rank 2 for the end of the training" in quiet


@pytest.mark.parametrize("device", ["Ascend", "GPU"])
def test_on_a_device_exit_code_0_needs_the_timeout_of_the_others(plan: Planner, device: str) -> None:
    quiet, job = fault(EXIT, 7, parameters={"code": 0}), {**JOB, "device": device, "timings": "fast"}
    assert "time out, and the scenario does not say when" in plan.refused(quiet, job=job)
    found = plan(quiet, job={**job, "torchrun": TEN})
    assert found.response.mechanism == "ELASTIC"
    assert found.response.budget.phases["detection"] == pytest.approx(26.1), "10 s later than on a CPU"
    reasons = " ".join(found.explanation.reasons)
    assert "until the collectives of the other ranks give up after 10 s (job.torchrun.group_timeout)" in reasons
    assert "lose their connections" not in reasons


@pytest.mark.parametrize("device", ["Ascend", "GPU"])
def test_a_job_on_a_device_has_the_budgets_of_hardware(plan: Planner, device: str) -> None:
    budget = plan(kill(7), job={**JOB, "device": device}).response.budget
    assert budget.total == pytest.approx(600.1)
    assert not budget.phases, "the vendor states no time of a phase"


def test_an_open_trigger_is_refused(plan: Planner) -> None:
    open_fault = {"kind": "kill", "target": {"rank": 1}, "trigger": {"elapsed": 1.0}}
    assert "it is not known which periodic checkpoint is the last one" in plan.refused(open_fault, job=JOB)


def test_two_faults_at_different_points_of_one_stop_are_refused(plan: Planner) -> None:
    assert "torchrun stops all ranks at once" in plan.refused(kill(6), kill(6, "step.begin", rank=1), job=JOB)


def test_a_launcher_that_restarts_nothing_is_refused_whatever_the_kind_is() -> None:
    other = Planner(effects=EFFECTS)
    text = other.refused(kill(7), job={**JOB, "kind": "plain", "script": None})
    assert "the launcher of job kind 'plain' starts no rank again" in text
    knowing = JobTraits(frozenset(PHASE_ORDER), None, mechanisms=frozenset({"TTP"}), launcher_restarts=True)
    text = Planner(traits=knowing, effects=EFFECTS).refused(kill(7), job={**JOB, "script": None})
    assert text.count("ELASTIC") == 1
    assert "does not take part in ELASTIC" in text


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"command": ("accelerate", "launch")}, "the options of this launcher say whether it starts ranks again"),
    ],
)
def test_what_keeps_the_new_ranks_from_meeting_is_refused(plan: Planner, changed: dict[str, Any], words: str) -> None:
    assert words in plan.refused(kill(7), job={**JOB, **changed})
    plan(job={**JOB, **changed, "protection": ()})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"store": "shared"}, "the store is old: the new ranks fail to connect, or hang"),
        ({"rendezvous": "static"}, "with the static rendezvous the store is old: the new ranks hang"),
        ({"store": "own"}, "the store is old"),
    ],
)
def test_a_store_in_which_the_new_ranks_do_not_meet_is_refused_but_for_a_finding(
    plan: Planner, options: dict[str, str], words: str
) -> None:
    assert plan(kill(7), job={**JOB, "torchrun": options}).response.mechanism == "ELASTIC", "they meet"
    plan.traits = replace(plan.traits, lost_starts="the store is old")
    assert words in plan.refused(kill(7), job={**JOB, "torchrun": options})
    found = plan(kill(7), job={**JOB, "torchrun": options}, finding="F-99", failing=("mechanism",))
    assert found.response.mechanism == "ELASTIC"
    assert plan(job={**JOB, "torchrun": options}).response.mechanism is None  # its fault-free run


TWO_NODES = {"ranks": 4, "nodes": 2}
NODE = {"kind": "kill", "target": {"node": 1}, "trigger": {"step": 7, "phase": "forward"}}
NODE_WITH_LAUNCHER = {**NODE, "parameters": {"with": "launcher"}}


def test_on_several_nodes_all_ranks_start_again(plan: Planner) -> None:
    recovery = plan(kill(7), job=JOB, cluster=TWO_NODES).response.recoveries[0]
    assert (recovery.mechanism, recovery.restarted, recovery.step) == ("ELASTIC", (0, 1, 2, 3), 4)
    assert plan(NODE, job=JOB, cluster=TWO_NODES).response.mechanism == "ELASTIC"  # its torchrun lives


def test_a_node_that_is_lost_with_its_torchrun_ends_the_job_by_the_join_timeout(plan: Planner) -> None:
    job = {**JOB, "torchrun": {"join_timeout": "20s"}}
    planned = plan(NODE_WITH_LAUNCHER, job=job, cluster=TWO_NODES, expect={"resume": {"step": 5}})
    assert planned.response.mechanism == "none"
    assert planned.resume.resume_step == 5
    assert any("wait 20 s for the node (job.torchrun.join_timeout)" in why for why in planned.explanation.reasons)


def test_a_join_timeout_beyond_the_end_of_the_run_is_refused(plan: Planner) -> None:
    text = plan.refused(NODE_WITH_LAUNCHER, job=JOB, cluster=TWO_NODES)
    assert "wait 600 s for the node that has gone" in text
    assert "write a shorter job.torchrun.join_timeout" in text


def test_the_limit_of_restarts_on_several_nodes_is_refused(plan: Planner) -> None:
    text = plan.refused(kill(7), job={**JOB, "restart_limit": 0}, cluster=TWO_NODES)
    assert "each torchrun counts the restarts that its own ranks have caused" in text


@pytest.mark.parametrize(
    ("target", "cluster", "words"),
    [
        ({"node": 0}, {"ranks": 4}, "one launcher starts all ranks"),
        ({"rank": 3}, TWO_NODES, "other ranks of the node would train on without a launcher"),
        ({"ranks": [0, 1, 2, 3]}, TWO_NODES, "it takes every node"),
        ({"role": "launcher"}, TWO_NODES, "has no launcher with it"),
    ],
)
def test_a_launcher_is_taken_with_its_whole_node_only(
    plan: Planner, target: dict[str, Any], cluster: dict[str, Any], words: str
) -> None:
    job = {**JOB, "torchrun": {"join_timeout": "20s"}}
    assert words in plan.refused({**NODE_WITH_LAUNCHER, "target": target}, job=job, cluster=cluster)


def test_a_launcher_is_taken_only_where_it_stays_and_something_plans_what_follows(plan: Planner) -> None:
    text = plan.refused(NODE_WITH_LAUNCHER, job={**JOB, "protection": ()}, cluster=TWO_NODES)
    assert "nothing says what the launchers of the other nodes do then" in text
    other = Planner(traits=JobTraits(frozenset(PHASE_ORDER), "mindspore"), effects=EFFECTS)
    text = other.refused(NODE_WITH_LAUNCHER, job={"kind": "plain", "steps": 12}, cluster=TWO_NODES)
    assert "may have ended when it has started the ranks" in text


def test_mechanisms_of_mindspore_are_refused_beside_it(plan: Planner) -> None:
    text = plan.refused(kill(7), job={**JOB, "protection": ("ELASTIC", "TTP")})
    assert "trains with no part of MindSpore, and TTP is its fault tolerance" in text


def test_on_a_cpu_the_launchers_mechanism_needs_nothing_of_mindspore(plan: Planner) -> None:
    mindspore = JobTraits(frozenset(PHASE_ORDER), None, genuine=True, launcher_restarts=True)
    text = Planner(traits=mindspore, effects=EFFECTS).refused(
        kill(7), job={**JOB, "script": None, "protection": ("TTP", "ELASTIC")}
    )
    assert "puts nothing in its place, and TTP is on" in text
    assert plan(kill(7), job=JOB).response.mechanism == "ELASTIC"


def test_the_launcher_can_be_killed_where_it_stays_beside_its_ranks(plan: Planner) -> None:
    killed = {"kind": "kill", "target": {"role": "launcher"}, "trigger": {"elapsed": 1.0}}
    for protection in (("ELASTIC",), ()):
        found = plan(killed, job={**JOB, "protection": protection})
        assert found.response.mechanism is None
        assert any("SIGKILL of the launcher reaches none" in why for why in found.explanation.reasons)


def test_exit_code_0_is_noticed_by_nobody_without_it(plan: Planner) -> None:
    quiet = fault(EXIT, 7, parameters={"code": 0})
    assert "which everybody takes for the end of its training" in plan.refused(quiet, job={**JOB, "protection": ()})


def test_a_rank_may_come_late_by_half_of_the_groups_timeout(plan: Planner) -> None:
    def late(seconds: float) -> dict[str, Any]:
        return fault("hang", 7, parameters={"seconds": seconds})

    assert "half of job.torchrun.group_timeout" in plan.refused(late(6.0), job={**JOB, "torchrun": TEN})
    assert plan(late(4.0), job={**JOB, "torchrun": TEN}).response.mechanism is None


def test_the_right_root_cause_can_be_asked_for_where_torchrun_restarts(plan: Planner) -> None:
    expect = {"root_cause": "hit"}
    assert plan(kill(7), job=JOB, expect=expect).response.root_cause == "hit"
    assert plan(kill(7), job=JOB).response.root_cause is None
    assert plan(job=JOB, expect=expect).response.root_cause == "hit"  # the fault-free run has no restart


@pytest.mark.parametrize(
    ("job", "cluster", "why"),
    [
        ({**JOB, "protection": ()}, None, "the plan shows no restart by ELASTIC, in which the launcher names a root"),
        (JOB, TWO_NODES, "each node has a torchrun of its own"),
    ],
)
def test_no_root_cause_is_asked_for_where_nothing_names_it(
    plan: Planner, job: dict[str, Any], cluster: dict[str, Any] | None, why: str
) -> None:
    assert why in plan.refused(kill(7), job=job, cluster=cluster, expect={"root_cause": "hit"})
