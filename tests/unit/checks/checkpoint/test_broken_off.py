"""Half a periodic checkpoint is excused where the plan ends its process in the middle of the save, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.checks.checkpoint.broken_off import broken_off
from chaos.evidence.artifacts import Artifacts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import DEATH, MEMORY
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.plans import changed, plan_named

FAULT = PlannedFault("death", "kill", (0,), {"step": 4}, {}, None, 3, DEATH)
PLAN = plan_named(
    "half",
    faults=(FAULT,),
    mechanism="ARF",
    checkpoint_interval=4,
    protection=("ARF",),
    recoveries=(Recovery("ARF", ("death",), 4, restarted=(0,), copied=(0,)),),
)
TEMPORARY = {f"job/checkpoints/net-1_4{end}" for end in (".tmp", ".partial", ".ckpt.partial")}
OLD, NEW, OTHER = 100, 200, 101
"""The two processes of rank 0, which is killed, and that of rank 1."""


def saves(pid: int, *events: str, path: object = "job/checkpoints/net-1_4.ckpt", **more: Any) -> list[Event]:
    data = {"kind": "periodic", "path": path, "step": 4, **more}
    rank = 1 if pid == OTHER else 0
    return [Event(event, 5, 5, "agent", seq, "train", rank, pid, data, "x:1") for seq, event in enumerate(events)]


def half(*events: Event, plan: Plan = PLAN, codes: dict[int, int | None] | None = None) -> set[str]:
    """The names that are excused. ``codes``: the exit codes of processes, None for a signal."""
    fields = {OLD: None, NEW: 0, OTHER: 0, **(codes or {})}
    harness = [
        Event("fault.injecting", 6, 6, "harness", 0, "train", 0, OLD, {"fault": "death"}, "h:1"),
        *(
            Event(
                "rank.exit", 7 + at, 7 + at, "harness", at, "train", int(pid == OTHER), pid, ended(fields[pid]), "h:2"
            )
            for at, pid in enumerate((OLD, NEW, OTHER), 1)
        ),
    ]
    history = History(tuple(sorted([*harness, *events], key=lambda event: event.mono)))
    return broken_off(plan, history, Artifacts(Path("/nowhere"), None))


def ended(code: int | None) -> dict[str, Any]:
    return {"signal": 9 if code is None else None, "code": code}


BEGIN, END = "checkpoint.begin", "checkpoint.end"


def test_what_a_killed_rank_was_saving_is_excused() -> None:
    assert half(*saves(OLD, BEGIN)) == TEMPORARY
    assert half(*saves(OLD, BEGIN, END, BEGIN)) == TEMPORARY


@pytest.mark.parametrize(
    "events",
    [
        saves(OLD, BEGIN, END),  # it says that the file is whole
        saves(OLD, BEGIN, "step.begin"),  # the save has failed, and training went on
        saves(OLD, BEGIN, kind="end-of-life"),
        saves(NEW, BEGIN),  # it has trained to the end
        saves(OTHER, BEGIN),  # nothing ends it
    ],
)
def test_what_nothing_planned_has_broken_off_is_not(events: list[Event]) -> None:
    assert half(*events) == set()


def test_a_fault_that_its_rank_outlives_excuses_nothing() -> None:
    repaired = replace(FAULT, kind="uce", effect=MEMORY)
    plan = changed(PLAN, faults=(repaired,), mechanism="UCE", recoveries=(Recovery("UCE", ("death",), 4),))
    assert half(*saves(OLD, BEGIN), plan=plan) == set()


def test_a_restart_of_all_ranks_breaks_off_what_each_of_them_saves() -> None:
    everyone = replace(PLAN.response.recoveries[0], mechanism="RSC", restarted=(0, 1), copied=())
    events = [replace(event, rank=1, pid=150) for event in saves(OTHER, BEGIN)]
    killed = Event("rank.exit", 7, 7, "harness", 9, "train", 1, 150, ended(None), "h:3")
    plan = changed(PLAN, mechanism="RSC", recoveries=(everyone,))
    assert half(*events, killed, plan=plan) == TEMPORARY
    assert half(*events, killed) == set()


@pytest.mark.parametrize(
    ("mechanism", "code", "excused"), [("TTP", 1, 1), ("none", None, 1), ("TTP", 0, 0), ("ARF", 1, 0)]
)
def test_where_the_launch_ends_every_rank_may_be_ended_in_a_save(
    mechanism: str, code: int | None, excused: int
) -> None:
    plan = changed(PLAN, mechanism=mechanism, recoveries=())
    assert half(*saves(OTHER, BEGIN), plan=plan, codes={OTHER: code}) == (TEMPORARY if excused else set())


WRITTEN = "checkpoint.written"


def test_a_save_in_a_thread_of_the_jobs_own_goes_on_while_steps_begin() -> None:
    assert half(*saves(OLD, BEGIN, "step.begin")) == set()
    assert half(*saves(OLD, BEGIN, "step.begin", late=True)) == TEMPORARY
    assert half(*saves(OLD, BEGIN, "step.begin", END, late=True)) == set()


def test_a_save_in_the_background_ends_after_its_record() -> None:
    assert half(*saves(OLD, BEGIN, END, "step.begin", asynchronous=True)) == TEMPORARY
    assert half(*saves(OLD, BEGIN, asynchronous=True)) == TEMPORARY


@pytest.mark.parametrize("ok", [True, False])
def test_a_save_in_the_background_that_was_whole_or_has_failed_was_not_broken_off(ok: bool) -> None:
    """What is left then is the writer's own: it has failed without a word, or it has left a file behind."""
    assert half(*saves(OLD, BEGIN, END, WRITTEN, "step.begin", asynchronous=True, ok=ok)) == set()


def test_the_end_of_another_save_in_the_background_is_not_its_end() -> None:
    before = saves(OLD, BEGIN, END, WRITTEN, path="job/checkpoints/net-1_2.ckpt", asynchronous=True)
    last = [replace(event, seq=event.seq + 3) for event in saves(OLD, BEGIN, END, asynchronous=True)]
    assert half(*before, *last) == TEMPORARY


@pytest.mark.parametrize(
    ("path", "excused"),
    [
        (
            "job/a/net-1_4.safetensors",
            {"job/a/net-1_4.tmp", "job/a/net-1_4.partial", "job/a/net-1_4.safetensors.partial"},
        ),
        ("job/a/net-1_4", {"job/a/net-1_4.tmp", "job/a/net-1_4.partial"}),
        ("job/a/net-0.5-1_4", {"job/a/net-0.5-1_4.tmp", "job/a/net-0.5-1_4.partial"}),
        ("", set()),
        ("/", set()),
        (None, set()),
        (7, set()),
    ],
)
def test_the_temporary_name_is_the_one_that_mindspore_gives(path: object, excused: set[str]) -> None:
    assert half(*saves(OLD, BEGIN, path=path)) == excused
