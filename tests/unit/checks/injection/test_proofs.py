"""Faults of the storage, and a signal that changes nothing: each counts with its proof alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.runs.good_run import GoodRun, record
from tests.kit.spread import spread
from tests.unit.checks.harmless import EVIDENCE, HIT, PARAMETERS, with_fault, without_end
from tests.unit.checks.judging import Judge, not_passed, said

ONE_RESET = EVIDENCE["connection-reset"]["reset"][0]


@pytest.mark.parametrize("kind", EVIDENCE)
def test_with_its_proof_it_has_landed(kind: str, run: GoodRun, judged: Judge) -> None:
    judgement = judged(with_fault(run, kind))
    assert said(judgement, "injection", "pass", f"fault first ({kind}) hits rank 0")
    assert [
        finding for finding in judgement.findings if finding.check == "injection" and finding.verdict != "pass"
    ] == []


@pytest.mark.parametrize(
    ("kind", "changed", "reason"),
    [
        ("disk-full", {"refused": None}, "refused a file with None, not with ENOSPC"),
        ("disk-full", {"refused": "EROFS"}, "refused a file with EROFS, not with ENOSPC"),
        ("read-only", {"refused": "ENOSPC"}, "refused a file with ENOSPC, not with EROFS"),
        ("read-only", {"mount": None}, "what rank 0 sees mounted is not in the evidence"),
        ("io-error", {"refused": "EROFS"}, "refused a file with EROFS, not with EIO"),
        ("network-delay", {"round_trip": 1}, "a round trip took 1 ms, with a delay of 30 ms"),
        ("network-loss", {"lost": 0}, "of 200 echoes 0 were lost"),
        ("network-loss", {"lost": 90}, "of 200 echoes 90 were lost, which is not 5 %"),
        ("storage-gone", {"refused": None}, "refused a file with None, not with ENOENT"),
        ("node-volume-gone", {"refused": "EROFS"}, "refused a file with EROFS, not with ENOENT"),
        ("node-volume-gone", {"mount": None}, "what rank 0 sees mounted is not in the evidence"),
        ("no-permission", {"refused": "EIO"}, "refused a file with EIO, not with EPERM or EACCES"),
        ("no-permission", {"directory": None}, "what has become of the directory of rank 0 is not in the evidence"),
        ("slow-storage", {"opened_after": 0.2}, "opened_after is 0.2, and delay 0.3 s"),
        ("slow-storage", {"opened_after": None}, "opened_after is None"),
        ("storage-stall", {"frozen": None}, "frozen is None"),
        ("clock-skew", {"seen": 3600}, "its clock was off by 3600 s, not by -3600"),
        ("clock-skew", {"seen": None}, "its clock was off by None s"),
        ("cpu-load", {"consumed": 0}, "consumed is 0"),
        ("cpu-quota", {"throttled": None}, "throttled is None"),
        ("fd-limit", {"left": 17}, "left is 17, and spare 16"),
        ("memory-load", {"resident": 63}, "resident is 63, and megabytes 64 MiB"),
        ("freeze", {"state": None}, "its state is None"),
        ("dns-gone", {"error": None}, "chaos-0 was ['172.18.0.2'] before, and then: None"),
        ("dns-gone", {"before": []}, "chaos-0 was [] before, and then: [Errno -3]"),
        ("dns-gone", {"reached": None}, "address 172.18.0.2 was not reached either"),
        ("dns-gone", {"cut": []}, "the resolvers that it is kept from are []"),
        ("network-rate", {"kbit": 128}, "the rate is 128 kbit, not 64"),
        ("network-rate", {"bytes": 0}, "bytes is 0"),
        ("partition", {"lost": [[0, 1]]}, "packets are lost on ways [[0, 1]], of 2"),
        ("partition", {"lost": [[0, 1]], "ways": 1}, "packets are lost on ways [[0, 1]], of 1"),
        ("partition", {"connections": 0}, "connections is 0"),
        ("port-blocked", {"port": None}, "the blocked port is None, the planned port is controller"),
        ("port-blocked", {"lost": []}, "packets are lost on ways [], of 1"),
        ("port-blocked", {"connections": 0}, "connections is 0"),
        ("port-blocked", {"passing": []}, "other packets pass on ways [], of 1"),
        ("port-blocked", {"attempts": None}, "what became of attempts to connect is None"),
        ("port-blocked", {"attempts": {"made": 1, "answered": 1}}, "what became of attempts to connect is {'made': 1"),
        (
            "port-blocked",
            {"attempts elsewhere": {"made": 1, "answered": 0}},
            "what became of attempts elsewhere to connect is {'made': 1, 'answered': 0}",
        ),
        ("pod-network-loss", {"injected": []}, "the records that it was made in are []"),
        ("pod-network-delay", {"injected": ["train/b"]}, "it was made in ['train/b'], and not in pod a"),
        ("pod-io-delay", {"pod": {"name": "a"}}, "pod is {'name': 'a'}"),
        ("pod-network-partition", {"uid": None}, "of object None"),
        ("node-cordon", {"unschedulable": None}, "unschedulable is None"),
        ("public-fault", {"fault id": ""}, "fault id is "),
        ("connection-reset", {"reset": []}, "the connections of the node of rank 0 that were reset are not in the"),
        ("connection-reset", {"left": 1}, "of the connections of rank 0's node 1 were left"),
        ("connection-reset", {"left": None}, "of the connections of rank 0's node None were left"),
        ("connection-reset", {"port": None}, "is of port None, the planned port is controller"),
        ("connection-reset", {"port": 20001}, "a connection of rank 0's node was reset that has no end at port 20001"),
        *(
            (
                "connection-reset",
                {"reset": [{**ONE_RESET, **changed}]},
                "nothing shows that both ends of a connection of",
            )
            for changed in ({"confirmed": False}, {"cookie": None}, {"other cookie": None})
        ),
        ("terminate", {"pending": True}, "the signal still waited at rank 0"),
        ("terminate", {"signal": 9}, "shows SIGKILL, not SIGTERM"),
        ("terminate", {"caught": False}, "rank 0 exit code 1, not ended by SIGTERM"),
        ("terminate", {"barrier": None}, "no barrier in the evidence for rank 0"),
    ],
)
def test_without_it_nothing_is_known(
    kind: str, changed: dict[str, Any], reason: str, run: GoodRun, judged: Judge
) -> None:
    judgement = judged(with_fault(run, kind, **changed))
    assert said(judgement, "injection", "unknown", reason), [
        finding for finding in judgement.findings if finding.check == "injection"
    ]


def no_end(run: GoodRun) -> None:
    run.drop("fault.ending", fault="first")


def ended_early(run: GoodRun) -> None:
    run.only("fault.ending", fault="first")["mono"] -= 500_000_000


LASTING = [kind for kind, given in PARAMETERS.items() if "seconds" in given]


@pytest.mark.parametrize("kind", spread(LASTING, 3))
def test_a_condition_that_vanished_before_its_end_proves_nothing(kind: str, run: GoodRun, judged: Judge) -> None:
    (still,) = with_fault(run, kind).only("fault.ending", fault="first")["evidence"]
    still_there = dict(still)
    still.clear()
    still.update({"rank": 0, "pid": HIT["pid"]})  # what is recorded where nothing shows any more
    assert said(judged(run), "injection", "unknown", "nothing shows that rank 0 was under the fault up to its end: ")
    still.update(still_there | {"pid": 1})
    assert said(judged(run), "injection", "unknown", "process 1 was checked, but the fault landed on process")
    del run.only("fault.ending", fault="first")["evidence"]
    assert said(judged(run), "injection", "unknown", "it was not looked at then")


@pytest.mark.parametrize(
    ("kind", "changed", "reason"),
    [
        ("fd-limit", {"limit": 1024}, "its limit is 1024, and was 44"),
        ("network-delay", {"by": "netem"}, "its by is netem, and was relay"),
        ("node-cpu-quota", {"quota": 0}, "its quota is 0 us in each 100000"),
        ("dns-gone", {"cut": []}, "the resolvers that it is kept from are []"),
        ("dns-gone", {"cut": ["10.0.0.53"]}, "its cut is ['10.0.0.53'], and was ['127.0.0.11']"),
        ("cpu-quota", {"group": "another"}, "its group is another, and was chaos-x-first-0"),
        ("slow-storage", {"opened_after": 0.001}, "opened_after is 0.001, and delay 0.3 s"),
        ("partition", {"lost": []}, "packets are lost on ways [], of 2"),
        ("port-blocked", {"lost": []}, "packets are lost on ways [], of 1"),
        ("port-blocked", {"port": 20001}, "its port is 20001, and was 20000"),
        ("freeze", {"state": "alive"}, "its state is alive"),
        ("memory-load", {"resident": 1}, "resident is 1, and megabytes 64 MiB"),
        ("pod-network-loss", {"uid": "v"}, "its uid is v, and was u"),
        ("node-cordon", {"host": "worker-2"}, "its host is worker-2, and was worker-1"),
        ("public-fault", {"fault id": "another"}, "its fault id is another, and was run.first"),
    ],
)
def test_a_condition_is_shown_at_its_end_as_at_its_landing(
    kind: str, changed: dict[str, Any], reason: str, run: GoodRun, judged: Judge
) -> None:
    with_fault(run, kind).only("fault.ending", fault="first")["evidence"][0].update(changed)
    assert said(judged(run), "injection", "unknown", reason)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [("fd-limit", {"left": 900}), ("partition", {"connections": 0}), ("port-blocked", {"connections": 0})],
)
def test_what_the_job_does_meanwhile_takes_no_condition_away(
    kind: str, changed: dict[str, Any], run: GoodRun, judged: Judge
) -> None:
    with_fault(run, kind).only("fault.ending", fault="first")["evidence"][0].update(changed)
    assert said(judged(run), "injection", "pass", f"fault first ({kind}) hits rank 0")


@pytest.mark.parametrize(("kind", "longest"), [("partition", 3.0), ("port-blocked", 3.0), ("freeze", 4.0)])
def test_a_silence_that_was_put_back_late_may_cost_ranks_and_blames_nobody(
    kind: str, longest: float, run: GoodRun, judged: Judge
) -> None:
    healed = with_fault(run, kind).only("fault.healed", fault="first")
    healed["mono"] = run.only("fault.injecting", fault="first")["mono"] + round((longest + 0.1) * 1e9)
    assert said(judged(run), "injection", "unknown", f"undone {longest + 0.1:.3f} s after it was made")
    healed["mono"] -= 200_000_000
    assert said(judged(run), "injection", "pass", f"fault first ({kind}) hits rank 0")


@pytest.mark.parametrize("kind", spread(LASTING, 4))
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (no_end, "its end is not recorded; planned was 1 s"),
        (ended_early, "it was planned for 1 s, but ended with the launch after 0.5"),
    ],
)
def test_a_condition_that_did_not_last_proves_nothing(
    kind: str, spoil: Callable[[GoodRun], None], reason: str, run: GoodRun, judged: Judge
) -> None:
    spoil(with_fault(run, kind))
    assert said(judged(run), "injection", "unknown", reason)


UNTIL_THE_END = [kind for kind in LASTING if kind not in ("freeze", "partition", "port-blocked", "storage-stall")]
"""Conditions whose parameter ``seconds`` may be left out."""


@pytest.mark.parametrize("kind", spread(UNTIL_THE_END, 3))
def test_a_condition_without_an_end_is_there_when_the_launch_ends(kind: str, run: GoodRun, judged: Judge) -> None:
    (still,) = without_end(run, kind).only("fault.ending", fault="first")["evidence"]
    assert not_passed(judged(run)) == []
    still_there = dict(still)
    still.clear()
    still.update({"rank": 0, "pid": HIT["pid"]})
    (doubt,) = said(
        judged(run), "injection", "unknown", "nothing shows that rank 0 was under the fault until the launch ended"
    )
    assert any(word in doubt.seen for word in (" may ", "the kernel ends"))
    still.update(still_there | {"pid": 1})
    assert said(judged(run), "injection", "unknown", "process 1 was checked, but the fault landed on process")
    del run.only("fault.ending", fault="first")["evidence"]
    assert said(judged(run), "injection", "unknown", "it was not looked at then")
    run.drop("fault.ending", fault="first")
    assert said(judged(run), "injection", "unknown", "no check was made whether rank 0 was still under the fault")


def ended_before(run: GoodRun, *, seconds: float, **changed: Any) -> GoodRun:
    """Rank 0, whose limit of files is low, has ended before the launch; it was looked at so long before."""
    answer = without_end(run, "fd-limit").only("fault.ending", fault="first")["evidence"][0]
    answer.update({"ended": True, "looked": last_of_rank_0(run) - int(seconds * 1e9), **changed})
    return run


def last_of_rank_0(run: GoodRun) -> int:
    """When rank 0 last recorded anything in the faulted launch, in ns."""
    (name,) = [name for name in run.files if name.startswith("train-rank_0")]
    return int(run.files[name][-1]["mono"])


def test_of_a_rank_that_has_ended_the_last_look_counts(run: GoodRun, judged: Judge) -> None:
    assert not_passed(judged(ended_before(run, seconds=0.1))) == []


@pytest.mark.parametrize(
    ("seconds", "changed", "reason"),
    [
        (0.1, {"limit": 1024}, "its limit is 1024, and was 44; the rank may have raised it itself"),
        (0.1, {"looked": None}, "was under the fault until its process ended"),
        (3.5, {}, "was under the fault until its process ended: the last look was 3.500 s before"),
    ],
)
def test_a_last_look_that_shows_nothing_or_is_old_proves_nothing(
    seconds: float, changed: dict[str, Any], reason: str, run: GoodRun, judged: Judge
) -> None:
    assert said(judged(ended_before(run, seconds=seconds, **changed)), "injection", "unknown", reason)


def test_a_last_look_before_another_fault_ends_the_rank_is_soon_enough(run: GoodRun, judged: Judge) -> None:
    ended_before(run, seconds=5)
    act = {**run.only("fault.injecting", fault="first"), "mono": last_of_rank_0(run) - 4_000_000_000}
    run.add("harness", act)
    assert said(judged(run), "injection", "unknown", "the last look was 5.000 s before")
    act["fault"] = "other"
    assert not said(judged(run), "injection", "unknown", "the last look was")


def test_a_rank_that_is_started_again_is_not_under_it(run: GoodRun, judged: Judge) -> None:
    ended_before(run, seconds=0.1)
    begun = run.only("agent.start", attempt="train", rank=0)
    again = {**begun, **record(11.9, "agent.start", attempt="train"), "rank": 0, "pid": 777}
    run.add("train-rank_1", again)
    assert said(
        judged(run), "injection", "unknown", "rank 0 was started again as process 777, which is not under the fault"
    )


def silent_after_the_signal(run: GoodRun) -> None:
    (name,) = [name for name in run.files if name.startswith("train-rank_0")]
    end = next(index for index, file in enumerate(run.files[name]) if file["event"] == "barrier.reached")
    del run.files[name][end + 1 :]
    run.drop("rank.exit", **HIT)


def never_ended(run: GoodRun) -> None:
    run.only("fault.landed", fault="first")["evidence"][0]["caught"] = False
    run.drop("rank.exit", **HIT)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (silent_after_the_signal, "rank 0 neither recorded anything after the signal nor ended"),
        (never_ended, "rank 0 has no handler for the signal, and no exit status"),
    ],
)
def test_a_signal_of_which_nobody_knows_what_became_proves_nothing(
    spoil: Callable[[GoodRun], None], reason: str, run: GoodRun, judged: Judge
) -> None:
    spoil(with_fault(run, "terminate"))
    assert said(judged(run), "injection", "unknown", reason)
