"""No single field of a record can be taken away from a good recovery without a doubt, but for those named here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kit.runs.good_run import GoodRun, Record, good_run
from tests.kit.runs.repaired_run import hcce_run, uce_run
from tests.kit.runs.replaced_run import replaced_run
from tests.kit.runs.rolled_back_run import rolled_back_run
from tests.unit.checks.judging import Judge
from tests.unit.checks.limits import ended_run

MAKES: dict[str, Callable[[], GoodRun]] = {
    "ttp": good_run,
    "uce": uce_run,
    "hcce": hcce_run,
    "arf": replaced_run,
    "tre": rolled_back_run,
    "exit": ended_run,
}
ALL = " ".join(MAKES)
TO_THE_END = " ".join(name for name in MAKES if name != "exit")
"""Those in which somebody trains to the end."""
FRAME = ("seq", "mono", "wall", "event")
"""Without these a line is no event: the history is torn there."""

ALLOWED_GAPS = {
    "It is in the record for a reader, and no evidence.": {
        "agent.cost attempt": TO_THE_END,
        "agent.cost digest_us_median": TO_THE_END,
        "agent.cost hooks_us_median": TO_THE_END,
        "agent.cost pid": TO_THE_END,
        "agent.cost rank": TO_THE_END,
        "agent.cost steps": TO_THE_END,
        "agent.start argv": ALL,
        "agent.start python": ALL,
        "attempt.end attempt": ALL,
        "attempt.start argv": ALL,
        "attempt.start cwd": ALL,
        "digest cost_us": ALL,
        "fault.armed fault": "ttp exit",
        "fault.armed ranks": "ttp exit",
        "fault.healed how": ALL,
        "launcher.found attempt": ALL,
        "launcher.found pid": ALL,
        "launcher.found role": ALL,
        "launcher.found start_time": ALL,
        "load.end parameters": "ttp tre",
        "run.start cell": ALL,
        "run.start scenario": ALL,
        "run.start seed": ALL,
        "train.end attempt": TO_THE_END,
        "train.end pid": TO_THE_END,
        "train.end rank": TO_THE_END,
    },
    "What the handlers of the SDK, or the events of loading, say of the same save or load.": {
        "checkpoint.begin attempt": "ttp tre",
        "checkpoint.begin kind": "ttp tre",
        "checkpoint.begin path": "ttp tre",
        "checkpoint.begin pid": "ttp tre",
        "checkpoint.begin rank": "ttp tre",
        "checkpoint.begin step": "ttp tre",
        "checkpoint.end attempt": "ttp",
        "checkpoint.end kind": "ttp",
        "checkpoint.end path": "ttp",
        "checkpoint.end pid": "ttp",
        "checkpoint.end step": "ttp",
        "load.begin pid": "ttp tre",
        "load.end path": "ttp",
        "load.end pid": "ttp tre",
    },
    "A file of history is one process's, and other events of it name rank, process and launch.": {
        "digest pid": "ttp uce hcce arf exit",
        "fault.landed attempt": "uce hcce arf tre",
        "handler.enter pid": "ttp uce hcce arf exit",
        "handler.exit pid": "ttp uce hcce arf",
        "initial pid": ALL,
        "launcher.exit pid": ALL,
        "step.end pid": ALL,
        "train.begin pid": ALL,
        "train.joins attempt": "arf",
        "train.joins pid": "arf",
        "train.joins rank": "arf",
        "writer.start attempt": ALL,
        "writer.start pid": ALL,
        "writer.start rank": ALL,
        "writer.start writer": "ttp exit",
    },
    "The rank's own record of the act, its exit or its digests show it.": {
        "fault.injecting kind": ALL,
        "fault.injecting signal": "ttp arf exit",
        "fault.injecting target_rank": ALL,
        "fault.landed kind": ALL,
    },
    "The saved file with the step in its name, or the steps that are replayed, show it.": {
        "handler.enter step": "ttp uce arf",
    },
    "Nobody goes on from it: of a launch that just ends the digests after its steps and the ranks' exits count.": {
        **dict.fromkeys(("initial attempt", "initial rank", "step.end attempt", "step.end rank"), "exit"),
        **dict.fromkeys(("train.begin attempt", "train.begin initial_step", "train.begin rank"), "exit"),
        **dict.fromkeys(("launcher.exit attempt", "launcher.exit code"), "exit"),
    },
    "There is one launcher.": {
        "launcher.exit role": ALL,
    },
    "It matters only where a rank loads by an absolute path, which may be another run's.": {
        "run.start run": ALL,
    },
}
"""Why a field is not needed, with the recoveries that pass without it."""


def _parts(event: Record) -> Iterator[tuple[str, Record]]:
    """The event itself, and each proof in its evidence, with what stands before their fields."""
    yield "", event
    proofs = event.get("evidence")
    for proof in proofs if isinstance(proofs, list) else []:
        yield "evidence.", proof


def _without(run: GoodRun, name: str) -> GoodRun:
    event, _, field = name.partition(" ")
    for records in run.files.values():
        for record in records:
            for before, part in _parts(record) if record["event"] == event else ():
                if field.startswith(before):
                    part.pop(field.removeprefix(before), None)
    return run


NIGHTLY = [pytest.param(one, 1, marks=pytest.mark.nightly) for one in MAKES]


@pytest.mark.parametrize(("base", "stride"), [("ttp", 7), *NIGHTLY])
def test_no_field_is_missed_without_a_doubt_but_those_that_are_named(base: str, stride: int, judged: Judge) -> None:
    make = MAKES[base]
    assert judged(make()).verdict == "pass"
    every = {
        f"{record['event']} {before}{field}"
        for records in make().files.values()
        for record in records
        for before, part in _parts(record)
        for field, value in part.items()
        if value is not None and not (before == "" and field in FRAME)
    }
    names = set(sorted(every)[::stride])
    passed = {name for name in names if judged(_without(make(), name)).verdict == "pass"}
    excused = {name for group in ALLOWED_GAPS.values() for name, bases in group.items() if base in bases.split()}
    assert excused <= every
    assert sorted(passed) == sorted(excused & names)
