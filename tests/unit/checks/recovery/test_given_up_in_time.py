"""A replacement that never comes is given up when its time is up; a sooner end is no recovery as it was promised."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN
from chaos.evidence.finding import Finding
from chaos.evidence.recovery_windows import recovery_windows
from chaos.mechanisms.arf import rule as arf
from chaos.mechanisms.case import Case
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.model import Plan
from chaos.plan.parts.response import Recovery
from tests.kit.plans import changed
from tests.kit.runs.replaced_run import HELD, VICTIM, replaced_plan
from tests.unit.checks.mechanism.test_rsc_rule import Story

WAIT = {"fast": 40.0, "vendor": 600.0, "hardware": 600.0}
EXPECTED = "ARF is tried, no new process comes, and the next mechanism follows"


def in_vain(timings: str = "fast") -> Plan:
    """Nobody starts the lost rank again; TTP follows."""
    tried = Recovery("ARF", ("kill",), HELD, succeeds=False, copied=(VICTIM,))
    recoveries = (tried, Recovery("TTP", ("kill",), HELD))
    return changed(replaced_plan(), mechanism="TTP", recoveries=recoveries, timings=timings)


def waited(seconds: float, *, then: str = "save_ckpt", rank: int = 0) -> Story:
    """The survivors were stopped and cleaned, and so long after the last of them was clean came the next handler."""
    story = Story()
    story.add(10.0, "fault.injecting", VICTIM, 102, fault="kill", kind="kill")
    for one in (0, 1, 3):
        story.add(10.5, "handler.enter", one, 100 + one, name="stop")
        story.add(10.6, "handler.exit", one, 100 + one, name="stop", ok=True)
        story.add(11.0, "handler.exit", one, 100 + one, name="clean", ok=True)
    story.add(11.0 + seconds, "handler.enter", rank, 100 + rank, name=then)
    story.add(11.1 + seconds, "handler.enter", rank, 100 + rank, name="exit")
    return story


class Log:
    """The SDK's log, in which the replacement is begun."""

    def sdk_events(self, attempt: str) -> list[LogEvent]:
        assert attempt == TRAIN
        return [LogEvent("ttp.repair_begin", 0, fields={"repair": "arf"}, file="log", line=1)]


def judged(story: Story, plan: Plan) -> list[Finding]:
    history, found = story.history(), Collector("mechanism")
    (window,) = recovery_windows(plan, history)
    arf.judge(Case(plan, window, window.tried[0], history, Log(), found))  # type: ignore[arg-type]
    return found.findings()


@pytest.mark.parametrize("timings", WAIT)
@pytest.mark.parametrize("then", ["save_ckpt", "exit"])
def test_given_up_when_its_time_is_up_passes(timings: str, then: str) -> None:
    (finding,) = judged(waited(WAIT[timings], then=then), in_vain(timings))
    assert (finding.verdict, finding.expected) == ("pass", EXPECTED)


@pytest.mark.parametrize("timings", WAIT)
@pytest.mark.parametrize("share", [0.0, 0.003, 0.5, 0.9])
def test_given_up_sooner_fails(timings: str, share: float) -> None:
    (finding,) = judged(waited(WAIT[timings] * share), in_vain(timings))
    assert finding.verdict == "fail"
    assert finding.expected == f"{EXPECTED} after {WAIT[timings]:g} s"
    assert finding.seen == f"it was given up after {WAIT[timings] * share:.3f} s"


@pytest.mark.parametrize(
    ("drop", "seen"),
    [
        ({"event": "handler.exit", "name": "clean"}, "nothing shows when the last rank was clean"),
        ({"event": "handler.enter", "rank": 0}, "nothing shows when the next mechanism began"),
    ],
)
def test_without_its_ends_the_wait_is_unknown(drop: dict[str, object], seen: str) -> None:
    story = waited(40.0)
    story.drop(str(drop.pop("event")), **drop)
    assert [(finding.verdict, finding.seen) for finding in judged(story, in_vain())] == [("unknown", seen)]


def test_two_hosts_clocks_may_leave_it_open() -> None:
    story = waited(38.0001)
    (save,) = [event for event in story.events if event.data.get("name") == "save_ckpt"]
    story.events[story.events.index(save)] = replace(save, clock="h2/b2", error=1_000_000)
    (finding,) = judged(story, in_vain())
    assert (finding.verdict, finding.seen) == ("unknown", "it was given up after 38.000 s, by the clocks of two hosts")


def failed(story: Story, handler: str, rank: int) -> None:
    story.add(12.0, "handler.enter", rank, 100 + rank, name=handler)
    story.add(12.1, "handler.exit", rank, 100 + rank, name=handler, ok=False)


@pytest.mark.parametrize(("handler", "verdict"), [("rebuild_group", "pass"), ("clean", "fail")])
def test_the_failed_clean_of_an_online_repair_is_no_attempt_of_arf(handler: str, verdict: str) -> None:
    tried = [
        Recovery("UCE", ("kill",), HELD, succeeds=False, copied=(VICTIM,)),
        Recovery("ARF", ("kill",), HELD, succeeds=False, restarted=(VICTIM,), copied=(VICTIM,)),
    ]
    plan = changed(in_vain(), recoveries=(*tried, Recovery("TTP", ("kill",), HELD)))
    story = waited(1.0)
    failed(story, handler, 1)
    history, found = story.history(), Collector("mechanism")
    (window,) = recovery_windows(plan, history)
    arf.judge(Case(plan, window, tried[1], history, Log(), found))  # type: ignore[arg-type]
    assert [finding.verdict for finding in found.findings()] == [verdict]
