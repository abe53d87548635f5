"""What shortens a recovery must really have been used, and must not where the plan does without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.checks.recovery.recovery_options import judge_recovery_options
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.history.reader import read_history
from chaos.plan.parts.recovery_options import RecoveryOptions
from tests.kit.runs.good_run import RANKS, VICTIM, GoodRun
from tests.unit.checks.judging import Judge, said, verdicts

READ = "the checkpoint to go on from is read from"
GRAPH = "the graphs of the restarted job come from"
SAVE = "periodic checkpoints are written"
LINK = "the broken link is found by the"
CACHE_HIT = "Use the compilation cache and execute the backend actions only. Be aware of correctness risks."
CACHE_MISS = "Check the consistency of dependency files hash failed. Execute all the compilation actions."
WATCHDOG = "HcclWatchdogThread catch an error: link down, rank id: 2, group name: hccl_world_group"
TIMEOUT = "RuntimeError: Launch kernel failed: EI0002: notify wait timeout, HCCL_EXEC_TIMEOUT: waited 18 s"
C = "(99,7f9a,python):2026-11-21-06:03:48.287.665 [mindspore/ccsrc/a.cc:1] Caller] "
"""What stands between the level and the words of MindSpore's C++."""


def with_reads(run: GoodRun, source: str) -> None:
    for rank in range(RANKS):
        begin = run.only("load.begin", rank=rank)
        path = begin["path"]
        run.add(f"resume-rank_{rank}", {**begin, "event": "checkpoint.read", "path": path, "source": source})


def log_of(rank: int) -> str:
    return f"logs/resume/worker_{rank}.log"


def with_graphs(run: GoodRun, line: str) -> None:
    run.replan(
        recovery_options=RecoveryOptions(
            graph=True, compile_cache=run.plan.fault_tolerance.recovery_options.compile_cache
        )
    )
    for rank in range(RANKS):
        end = next(run.events("step.begin", attempt="resume", rank=rank))
        run.add(f"resume-rank_{rank}", {**end, "event": "graph.compiled", "mono": end["mono"] + 1, "seconds": 0.1})
        run.others[log_of(rank)] = f"[WARNING] PIPELINE{C}{line}\n".encode()


@pytest.mark.parametrize("memory", [True, False])
def test_reads_from_where_the_plan_says_pass(run: GoodRun, judged: Judge, memory: bool) -> None:
    run.replan(recovery_options=RecoveryOptions(memory=memory))
    with_reads(run, "memory" if memory else "storage")
    judgement = judged(run)
    (finding,) = said(judgement, "recovery", "pass", READ)
    assert finding.seen.endswith("by the readers' own records alone")
    assert judgement.verdict == "pass"


@pytest.mark.parametrize("memory", [True, False])
def test_one_read_from_elsewhere_fails(run: GoodRun, judged: Judge, memory: bool) -> None:
    run.replan(recovery_options=RecoveryOptions(memory=memory))
    with_reads(run, "memory" if memory else "storage")
    run.only("checkpoint.read", rank=3)["source"] = "storage" if memory else "memory"
    assert said(judged(run), "recovery", "fail", "rank 3 read")


def test_memory_without_a_record_of_the_read_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.replan(recovery_options=RecoveryOptions(memory=True))
    with_reads(run, "memory")
    run.drop("checkpoint.read", rank=1)
    assert said(judged(run), "recovery", "unknown", "no read of rank 1 is recorded")


@pytest.mark.parametrize(("cache", "line"), [(True, CACHE_HIT), (False, "nothing about caches")])
def test_graphs_from_where_the_plan_says_pass(run: GoodRun, judged: Judge, cache: bool, line: str) -> None:
    run.replan(recovery_options=RecoveryOptions(graph=True, compile_cache=cache))
    with_graphs(run, line)
    judgement = judged(run)
    assert said(judgement, "recovery", "pass", GRAPH), [
        finding for finding in judgement.findings if finding.verdict != "pass"
    ]


@pytest.mark.parametrize(
    ("told", "verdict", "words", "by_log"),
    [
        ({}, "pass", "on 4 ranks, by lines of a log alone", True),
        ({"cached": True, "cache_written": False}, "pass", "on 4 ranks", False),
        ({"cached": False, "cache_written": True}, "fail", "that a cache was used, but no cache held a graph", False),
        (
            {"cached": True, "cache_written": True},
            "fail",
            "that a cache was used, but the cache was written meanwhile",
            False,
        ),
    ],
)
def test_a_line_about_the_cache_is_held_against_its_files(
    run: GoodRun, judged: Judge, told: dict[str, bool], verdict: str, words: str, by_log: bool
) -> None:
    run.replan(recovery_options=RecoveryOptions(graph=True, compile_cache=True))
    with_graphs(run, CACHE_HIT)
    for record in run.events("graph.compiled", attempt="resume"):
        record.update(told)
    findings = said(judged(run), "recovery", verdict, words)
    assert findings and {finding.by_log for finding in findings} == {by_log}


SPOILT: list[tuple[bool, str, Callable[[GoodRun], Any], str, str]] = [
    (True, CACHE_MISS, lambda run: None, "fail", "rank 0 has compiled anew"),
    (False, CACHE_HIT, lambda run: None, "fail", "rank 0 has used a cache"),
    (False, f"help: '{CACHE_HIT}'", lambda run: None, "pass", "on 4 ranks"),
    (True, f"help: '{CACHE_HIT}'", lambda run: None, "unknown", "does not say whether the cache was used"),
    (True, "nothing about caches", lambda run: None, "unknown", "does not say whether the cache was used"),
    (True, CACHE_HIT, lambda run: run.drop("graph.compiled", rank=2), "unknown", "rank 2 is not recorded to have made"),
    (False, "nothing", lambda run: run.others.pop(log_of(1)), "unknown", "no log of rank 1 shows warnings"),
    (False, "nothing", lambda run: run.others.update({log_of(3): b""}), "unknown", "no log of rank 3 shows warnings"),
    (
        False,
        "nothing",
        lambda run: run.others.update({log_of(0): b"epoch: 1 step: 1, loss is 2.3\n"}),
        "unknown",
        "no log of rank 0 shows warnings",
    ),
]


@pytest.mark.parametrize(("cache", "line", "spoil", "verdict", "text"), SPOILT)
def test_where_graphs_come_from_is_told_by_mindspores_own_lines(
    run: GoodRun, judged: Judge, cache: bool, line: str, spoil: Callable[[GoodRun], Any], verdict: str, text: str
) -> None:
    run.replan(recovery_options=RecoveryOptions(graph=True, compile_cache=cache))
    with_graphs(run, line)
    spoil(run)
    assert said(judged(run), "recovery", verdict, text)


def saving(run: GoodRun, *, background: bool) -> None:
    """Every rank saves after step 2, in the background or not."""
    for rank in range(RANKS):
        end = run.only("step.end", attempt="train", rank=rank, step=2)
        more = {"kind": "periodic", "path": f"/r/job/rank_{rank}/mnist-1_2.ckpt", "asynchronous": background}
        for name, late in (("checkpoint.begin", 1), ("checkpoint.end", 2)):
            late_end = {"mono": end["mono"] + late, "wall": end["wall"] + late}
            run.add(f"train-rank_{rank}", {**end, **late_end, "event": name, **more})


@pytest.mark.parametrize("background", [True, False])
def test_a_script_of_the_users_own_may_save_as_it_likes(run: GoodRun, judged: Judge, background: bool) -> None:
    run.replan(recovery_options=RecoveryOptions(asynchronous_saving=None), checkpoint_interval=2)
    saving(run, background=background)
    assert "fail" not in verdicts(judged(run), "recovery")
    assert not said(judged(run), "recovery", "pass", "periodic checkpoints are written")


@pytest.mark.parametrize("background", [True, False])
def test_saving_that_is_not_as_planned_fails(run: GoodRun, judged: Judge, background: bool) -> None:
    run.replan(recovery_options=RecoveryOptions(asynchronous_saving=background), checkpoint_interval=2)
    saving(run, background=background)
    assert said(judged(run), "recovery", "pass", SAVE)
    run.only("checkpoint.begin", rank=1, kind="periodic")["asynchronous"] = not background
    assert said(judged(run), "recovery", "fail", SAVE)


@pytest.mark.parametrize(("background", "verdict"), [(True, "pass"), (None, "pass"), (False, "fail")])
def test_saving_in_the_background_needs_another_thread(
    run: GoodRun, judged: Judge, background: bool | None, verdict: str
) -> None:
    run.replan(recovery_options=RecoveryOptions(asynchronous_saving=True), checkpoint_interval=2)
    for rank in range(RANKS):
        end = run.only("step.end", attempt="train", rank=rank, step=2)
        more = {"kind": "periodic", "path": f"/r/job/rank_{rank}/mnist-1_2.ckpt", "asynchronous": True}
        answer = {"ok": True} if background is None else {"ok": True, "background": background or rank != 2}
        for late, (name, fields) in enumerate(
            {"checkpoint.begin": {}, "checkpoint.end": {}, "checkpoint.written": answer}.items(), 1
        ):
            late_end = {"mono": end["mono"] + late, "wall": end["wall"] + late}
            run.add(f"train-rank_{rank}", {**end, **late_end, "event": name, **more, **fields})
    judgement = judged(run)
    assert said(judgement, "recovery", verdict, SAVE)
    wrote = "rank 2 wrote /r/job/rank_2/mnist-1_2.ckpt in the training thread, not in the background"
    assert bool(said(judgement, "recovery", "fail", wrote)) is (verdict == "fail")


def test_saving_in_the_background_that_nobody_saw_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.replan(recovery_options=RecoveryOptions(asynchronous_saving=True), checkpoint_interval=2)
    assert said(judged(run), "recovery", "unknown", "no periodic checkpoint is recorded")


def with_link(run: GoodRun, line: str, *, watchdog: bool) -> None:
    """Only the fault's kind and the log are those of a broken link; the other checks have their own say."""
    (fault,) = run.plan.faults
    run.replan(
        recovery_options=RecoveryOptions(watchdog=watchdog, exec_timeout=18.0), faults=(replace(fault, kind="link"),)
    )
    shown = line if line == TIMEOUT else f"[ERROR] DISTRIBUTED{C}{line}"
    run.others[f"logs/train/worker_{VICTIM}.before-1.log"] = f"{shown}\n".encode()


def with_break(run: GoodRun, seconds: float) -> None:
    """The rank's own record of its broken link, so long before the end of its process."""
    end = run.only("rank.exit", attempt="train", rank=VICTIM)
    before = {"mono": end["mono"] - round(seconds * 1e9), "wall": end["wall"] - round(seconds * 1e9)}
    place = {"attempt": "train", "rank": VICTIM, "pid": end["pid"]}
    run.add(f"train-rank_{VICTIM}", {**before, **place, "event": "fault.device", "action": "link.down"})


def about_link(run: GoodRun, directory: Path) -> list[tuple[str, str, bool]]:
    """Verdict, what was seen, and whether it rests on lines alone."""
    run.write(directory)
    found = Collector("recovery")
    judge_recovery_options(run.plan, read_history(directory / "history"), Artifacts(directory, None), found)
    return [(finding.verdict, finding.seen, finding.by_log) for finding in found.findings() if LINK in finding.expected]


@pytest.mark.parametrize(("watchdog", "line"), [(True, WATCHDOG), (False, TIMEOUT)])
def test_a_link_that_is_found_as_planned_by_a_line_alone_passes_and_says_so(
    run: GoodRun, tmp_path: Path, watchdog: bool, line: str
) -> None:
    with_link(run, line, watchdog=watchdog)
    assert about_link(run, tmp_path) == [("pass", f"it is, on rank {VICTIM}, by lines of a log alone", True)]


@pytest.mark.parametrize(
    ("watchdog", "line", "seconds", "verdict", "words"),
    [
        (True, WATCHDOG, 0.4, "pass", "rank 2 ended 0.400 s after its link broke, with a timeout of 18 s"),
        (False, TIMEOUT, 18.2, "pass", "rank 2 ended 18.200 s after its link broke, with a timeout of 18 s"),
        (False, TIMEOUT, 0.4, "fail", "before the 18 s of the timeout were over"),
        (True, WATCHDOG, 18.2, "unknown", "either may have ended the wait"),
    ],
)
def test_a_line_is_held_against_the_time_that_passed(
    run: GoodRun, tmp_path: Path, watchdog: bool, line: str, seconds: float, verdict: str, words: str
) -> None:
    with_link(run, line, watchdog=watchdog)
    with_break(run, seconds)
    ((told, seen, by_log),) = about_link(run, tmp_path)
    assert (told, by_log) == (verdict, False)
    assert words in seen


@pytest.mark.parametrize(
    ("watchdog", "line", "verdict"),
    [
        (True, TIMEOUT, "fail"),
        (False, WATCHDOG, "fail"),
        (True, "nothing", "unknown"),
        (False, "nothing", "unknown"),
        (True, f"help: look for '{WATCHDOG}'", "unknown"),
        (False, f"help: look for '{TIMEOUT}'", "unknown"),
    ],
)
def test_a_link_that_is_found_otherwise_does_not_pass(
    run: GoodRun, tmp_path: Path, watchdog: bool, line: str, verdict: str
) -> None:
    with_link(run, line, watchdog=watchdog)
    assert [one for one, _, _ in about_link(run, tmp_path)] == [verdict]
