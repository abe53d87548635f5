"""Times of different hosts are compared only as far as their clocks are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.evidence.timestamp import Timestamp, earliest, latest
from tests.kit.hosts.two_hosts import Host, on_hosts
from tests.kit.runs.good_run import GoodRun, pid_of, record, written
from tests.kit.runs.repaired_run import uce_run
from tests.unit.checks.judging import Judge, said

SECOND = Host("h2", (2, 3))


def test_a_good_recovery_of_two_hosts_passes_every_check(run: GoodRun, judged: Judge) -> None:
    judgement = judged(on_hosts(run, SECOND))
    assert [finding for finding in judgement.findings if finding.verdict != "pass"] == []


def test_the_history_says_how_well_the_clocks_are_known(run: GoodRun, judged: Judge) -> None:
    (finding,) = said(judged(on_hosts(run, SECOND)), "history", "pass", "clocks with a measured offset")
    assert "h2 is 4321.000000 s ahead of the harness, ± 0.300 ms" in finding.seen


def test_a_host_whose_clock_was_not_measured_makes_the_history_unknown(run: GoodRun, judged: Judge) -> None:
    on_hosts(run, SECOND)
    run.drop("clock")
    assert said(judged(run), "history", "unknown", "cannot be compared")


def test_a_clock_that_was_measured_wrongly_is_no_proof_of_a_hit(run: GoodRun, judged: Judge) -> None:
    """An offset that is wrong by seconds puts the barrier behind the injection, far beyond its error."""
    on_hosts(run, SECOND)
    for event in run.events("clock"):
        event["offset"] -= 3_000_000_000
    assert said(judged(run), "injection", "unknown", "was hit before it reached the barrier")


def test_an_order_within_the_error_of_the_clocks_is_not_held_against_the_evidence(run: GoodRun, judged: Judge) -> None:
    on_hosts(run, replace(SECOND, error=60_000_000))
    for event in run.events("clock"):
        event["offset"] -= 50_000_000  # the barrier, 40 ms before the injection, seems to be 10 ms after it
    assert not said(judged(run), "injection", "unknown", "")


@pytest.mark.parametrize(
    ("budget", "verdict"),
    # Between the harness's record of the fault and the log of the second host there are 600 ms, known to 0.3 ms.
    [(0.5, "fail"), (0.5998, "unknown"), (0.6001, "unknown"), (0.7, "pass")],
)
def test_a_budget_kept_or_missed_by_less_than_the_error_is_unknown(
    run: GoodRun, judged: Judge, budget: float, verdict: str
) -> None:
    on_hosts(run, Host("h2", (0, 1)))
    run.log = [(at - 90.0, text) for at, text in run.log]  # rank 0's host wrote it, by its own wall clock
    phases = {**run.plan.response.budget.phases, "detection": budget}
    run.replan(budget=replace(run.plan.response.budget, phases=phases))
    (finding,) = [
        candidate
        for candidate in judged(run).findings
        if candidate.check == "recovery" and "detection" in candidate.expected
    ]
    assert finding.verdict == verdict
    assert "0.600 s ± 0.000300000 s" in finding.seen or "± 0.0003 s" in finding.seen
    assert ("clocks of two hosts" in finding.seen) == (verdict == "unknown")


def with_one_number_on_both(run: GoodRun) -> GoodRun:
    """Ranks 0 and 2 are on two hosts that both gave their process one number; the second's wall clock is behind."""
    on_hosts(run, Host("h1", (0, 1), wall_ahead=0), SECOND)
    for number, host in enumerate(("h1", "h2")):
        for measured in run.events("clock", host=host):
            measured["node"] = number
    for records in run.files.values():
        for event in records:
            if event.get("pid") == pid_of("train", 2):
                event["pid"] = pid_of("train", 0)
    return run


@pytest.mark.parametrize(("node", "detection"), [(0, 0.6), (1, 90.6)])
def test_of_two_processes_with_one_number_that_of_the_logs_node_wrote_it(
    run: GoodRun, judged: Judge, node: int, detection: float
) -> None:
    with_one_number_on_both(run).log_directory = f"ttp-node_{node}"
    (phase,) = [candidate for candidate in judged(run).recovery.phases if candidate.name == "detection"]
    assert phase.nanoseconds == pytest.approx(detection * 1e9, abs=1e6)


@pytest.mark.parametrize("directory", ["ttp", "ttp-node_2"])
def test_of_two_processes_with_one_number_none_is_guessed(run: GoodRun, judged: Judge, directory: str) -> None:
    with_one_number_on_both(run).log_directory = directory
    assert said(
        judged(run), "recovery", "unknown", f"the host that wrote logs/train/{directory}/ttp_log.log.1000 is unknown"
    )


def test_a_phase_between_times_of_one_host_has_no_error(run: GoodRun, judged: Judge) -> None:
    judgement = judged(on_hosts(run, Host("h2", (0, 1, 2, 3), error=50_000_000)))
    errors = {phase.name: phase.error for phase in judgement.recovery.phases}
    assert errors["load"] == 0
    assert errors["exit"] > 50_000_000


def test_a_copy_before_all_are_clean_is_a_failure_only_where_the_clocks_tell(judged: Judge) -> None:
    def late_clean(error: int) -> tuple[int, int]:
        """Ranks 1 and 3 copy, on one host; rank 0 is cleaned 10 ms later, on the other."""
        host = Host("h2", (1, 3), error=error)
        run = on_hosts(uce_run(), host)
        copy = min(event["mono"] for event in run.events("handler.enter", name="repair"))
        (clean,) = run.events("handler.exit", name="clean", rank=0)
        clean["mono"] = copy - host.ahead + 10_000_000
        judgement = judged(run)
        failed = said(judgement, "mechanism", "fail", "before rank 0 was clean")
        return len(failed), len(said(judgement, "mechanism", "unknown", "do not tell"))

    assert late_clean(100_000) == (1, 0)
    assert late_clean(20_000_000) == (0, 1)


def test_a_handler_at_the_border_of_two_recoveries_is_not_given_to_either(run: GoodRun, judged: Judge) -> None:
    on_hosts(run, replace(SECOND, error=1_500_000_000))
    assert said(judged(run), "recovery", "unknown", "do not show whether handler.enter of rank 3")


def test_a_clock_of_the_same_boot_is_the_same_clock(run: GoodRun, judged: Judge) -> None:
    """Containers of one machine have host names of their own, and no error."""
    on_hosts(run, Host("box", (2, 3), ahead=0, drift=0, wall_ahead=0))
    for event in run.events("clock"):
        event["boot"] = "b1"
    for name, records in run.files.items():
        run.files[name] = [{**event, "boot": "b1"} if event.get("boot") == "boot-box" else event for event in records]
    judgement = judged(run)
    assert [finding for finding in judgement.findings if finding.verdict != "pass"] == []
    assert {phase.error for phase in judgement.recovery.phases} == {0}


def gone(run: GoodRun, event: str, at: float = 11.7, **fields: Any) -> GoodRun:
    """Ranks 2 and 3 are on node 1, whose host goes; the file of rank 3 ends with half a line."""
    on_hosts(run, SECOND)
    for rank in range(4):
        for entry in run.events("rank.found", rank=rank):
            entry["node"] = rank // 2
    run.add("harness", record(at, event, node=1, host="second", **fields))
    name = "train-rank_3-1003.jsonl"
    run.raw[name] = written(run.files.pop(name)) + b'{"seq":19,"mono":5010'
    return run


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("host.vanished", {"boot": "boot-h2"}),
        ("host.rebooted", {"boot": {"before": "boot-h2", "after": "other"}}),
        ("host.reboot", {"command": "reboot"}),
    ],
)
def test_half_a_line_of_a_host_that_has_gone_is_a_fact(
    run: GoodRun, judged: Judge, event: str, fields: dict[str, Any]
) -> None:
    judgement = judged(gone(run, event, **fields))
    (whole,) = [
        finding for finding in judgement.findings if finding.check == "history" and "is complete" in finding.expected
    ][:1]
    assert whole.verdict == "pass"
    assert "half a line at the end of history/train-rank_3-1003.jsonl" in whole.seen


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("host.lost", {"boot": "boot-h2"}),
        ("host.vanished", {"boot": "another"}),
        ("host.vanished", {"boot": "boot-h2", "at": 20.0}),
        ("host.vanished", {"boot": "boot-h2", "node": 0}),
    ],
)
def test_half_a_line_of_a_host_that_lives_is_unknown(
    run: GoodRun, judged: Judge, event: str, fields: dict[str, Any]
) -> None:
    node = fields.pop("node", 1)
    at = fields.pop("at", 11.7)
    assert isinstance(at, float)
    gone(run, event, at, **fields)
    run.only(event)["node"] = node
    assert said(judged(run), "history", "unknown", "the last line is torn")


def test_files_of_a_host_that_could_not_be_fetched_make_the_history_unknown_and_nobody_is_blamed(
    run: GoodRun, judged: Judge
) -> None:
    on_hosts(run, SECOND)
    for rank in (2, 3):
        run.drop("step.end", attempt="resume", rank=rank)
    files = {"history": "Failure", "job/checkpoints/rank_2/a.ckpt": "Input/output error"}
    run.add("harness", record(25.0, "host.unfetched", "resume", node=1, host="second", files=files))
    judgement = judged(run)
    (found,) = said(judgement, "history", "unknown", "the files of every host were copied here")
    assert found.seen == "2 of host second in attempt resume were not copied: history (Failure) and 1 more"
    assert [finding for finding in judgement.findings if finding.verdict == "fail"] == []


def test_a_host_that_is_lost_from_sight_makes_the_history_unknown(run: GoodRun, judged: Judge) -> None:
    on_hosts(run, SECOND)
    run.add("harness", record(11.7, "host.lost", node=1, host="second", why="reset", boot="boot-h2"))
    (finding,) = said(judged(run), "history", "unknown", "the files of every host were copied here")
    assert finding.seen == "the connection to host second was lost, and what the host did afterwards is unknown"


def test_a_line_that_is_lost_before_the_torn_one_is_not_hidden(run: GoodRun, judged: Judge) -> None:
    gone(run, "host.vanished", boot="boot-h2")
    lines = run.raw["train-rank_3-1003.jsonl"].splitlines(keepends=True)
    run.raw["train-rank_3-1003.jsonl"] = b"".join(lines[:5] + lines[6:])
    assert said(judged(run), "history", "unknown", "was expected")


def test_how_ranks_of_a_host_that_vanished_ended_is_unknown_and_no_failure_of_theirs(
    run: GoodRun, judged: Judge
) -> None:
    run.only("rank.exit", attempt="train", rank=3)["code"] = None
    judgement = judged(run)
    assert said(judgement, "hygiene", "unknown", "its exit status is unknown")
    assert not said(judgement, "hygiene", "fail", "rank 3")


def test_a_large_error_covers_no_order_that_is_wrong(run: GoodRun, judged: Judge) -> None:
    """The barrier seems to be 3 s behind the injection, and the clocks may be wrong by more: that proves nothing."""
    on_hosts(run, replace(SECOND, error=900_000_000))
    for event in run.events("clock"):
        event["offset"] -= 500_000_000
    (finding,) = said(judged(run), "injection", "unknown", "was hit before it reached the barrier")
    assert "for all that the clocks of their hosts tell: they may be wrong by 900." in finding.seen


def test_an_order_that_is_beyond_a_large_error_is_told(run: GoodRun, judged: Judge) -> None:
    """Ranks of which no order is asked may be on a clock that is known badly."""
    on_hosts(run, Host("h2", (0, 1, 3), error=900_000_000))
    assert not said(judged(run), "injection", "unknown", "")


def test_a_clock_that_is_hardly_known_makes_the_history_unknown(run: GoodRun, judged: Judge) -> None:
    on_hosts(run, replace(SECOND, error=1_100_000_000))
    (finding,) = said(judged(run), "history", "unknown", "no time of another host may be wrong by more than 1 s")
    assert "times of h2 may be wrong by 1.100 s" in finding.seen


def test_a_large_error_does_not_make_a_trigger_wait_less(run: GoodRun, judged: Judge) -> None:
    """A fault that came too early is not excused by a clock that may be wrong by as much."""
    elapsed = {"all": [dict(run.plan.faults[0].trigger), {"elapsed": 0.6}]}
    run.replan(faults=(replace(run.plan.faults[0], trigger=elapsed),))
    assert said(judged(run), "injection", "unknown", "s after the first step")
    assert said(judged(on_hosts(run, replace(SECOND, error=900_000_000))), "injection", "unknown", "s after the first")


def test_the_last_of_several_hosts_ranks_is_known_as_badly_as_the_worst_of_them() -> None:
    """The last one's own clock may be the harness's: whether it was the last is told by the others' clocks."""
    own, far = Timestamp(1000, "a", "", 0), Timestamp(990, "b", "h2/b", 50)
    last = latest((own, far))
    assert (last.mono, last.where, last.error) == (1000, "a", 60)
    assert last.uncertainty(Timestamp(0, "x", "", 0)) == 60
    assert latest((own, Timestamp(940, "b", "h2/b", 50))) == own  # that one was not the last
    assert latest((own, Timestamp(1001, "c", "", 0))).error == 0
    first = earliest((own, Timestamp(1010, "b", "h2/b", 50)))
    assert (first.mono, first.uncertainty(last)) == (1000, 120)
    assert earliest((own, Timestamp(1060, "b", "h2/b", 50))) == own


def test_two_moments_that_were_picked_of_several_clocks_have_none_in_common() -> None:
    one = latest((Timestamp(1000, "a", "h1/b", 5), Timestamp(1000, "b", "h2/b", 7)))
    other = latest((Timestamp(2000, "a", "h1/b", 5), Timestamp(2000, "b", "h2/b", 7)))
    assert one.uncertainty(other) == 14
