"""The cause that torchrun names is compared with the process that was hit, by logs of real runs and by broken ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timezone
from pathlib import Path

import pytest

from chaos.evidence.launcher.named_cause import NamedFailure, compare, named_failures
from chaos.history.event import Event
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.reader import built_in_readers, read_log

SAMPLES = Path(__file__).parents[1] / "observe" / "data" / "samples"


def read(path: Path) -> list[LogEvent]:
    return list(read_log(path, built_in_readers(timezone.utc)))


def hit(pid: int | None, rank: int = 2, *, mono: int = 1, fault: str = "f1", start_time: int | None = None) -> Event:
    data = {"fault": fault} | ({} if start_time is None else {"start_time": start_time})
    return Event("fault.injecting", mono, mono, "harness", 1, "train", rank, pid, data, f"history/harness.jsonl:{mono}")


def ended(pid: int, *, signal: int | None = None, code: int | None = None, start_time: int | None = None) -> Event:
    data = {"signal": signal, "code": code} | ({} if start_time is None else {"start_time": start_time})
    return Event("rank.exit", 9, 9, "launcher", 1, "train", 2, pid, data, "history/launcher.jsonl:9")


@pytest.mark.parametrize(
    ("log", "pid", "rank", "cause"),
    [
        ("torchrun-kill-merged.log", 1283, 2, "hit"),
        ("torchrun-kill-tee.log", 1406, 2, "hit"),
        ("torchrun-raise.log", 3565, 1, "hit"),
        ("torchrun-restart.log", None, 2, "hit"),
        ("torchrun-node-1.log", 5976, 2, "hit"),
        ("torchrun-late.log", 6874, 2, "ended"),
        ("torchrun-exit-0.log", 2147, 2, "other"),
        ("torchrun-stop.log", 5007, 2, "other"),
    ],
)
def test_a_real_log_is_compared_with_the_process_that_was_hit(log: str, pid: int | None, rank: int, cause: str) -> None:
    """``late``: killed with a monitor interval of 5 s. ``stop``: SIGSTOP, with a timeout of the group of 8 s."""
    (named,) = named_failures(read(SAMPLES / log))
    result = compare(named, [hit(named.pid if pid is None else pid, rank)])
    assert (result.cause, result.where[0]) == (cause, named.where)
    assert f"process {named.pid}" in result.reason


def test_what_torchrun_names_is_read_with_its_signals() -> None:
    (late,) = named_failures(read(SAMPLES / "torchrun-late.log"))
    assert (late.local_rank, late.pid, late.code, late.sent, late.launcher) == (1, 6873, -15, (15,), 6698)
    assert "ended by SIGTERM" in compare(late, [hit(6874)]).reason
    assert "had sent SIGTERM to 6873" in compare(late, [hit(6874)]).reason


def test_each_restart_has_its_own_failure_and_its_own_signals(tmp_path: Path) -> None:
    prefix = "W1128 01:24:46.246000 6698 torch/distributed/elastic/multiprocessing/api.py:1028] "
    failed = "failed (exitcode: {}) local_rank: {} (pid: {}) of binary: /usr/bin/python"
    path = tmp_path / "torchrun.log"
    path.write_text(
        f"{prefix}Sending process 11 closing signal SIGTERM\n{prefix}{failed.format(-9, 2, 12)}\n"
        f"{prefix.replace('6698', '6699')}Sending process 21 closing signal SIGTERM\n"
        f"{prefix}Sending process 21 closing signal SIGTERM\n"
        f"{prefix}Unable to shutdown process 21 via 15, forcefully exiting via 9\n{prefix}{failed.format(-9, 1, 21)}\n"
    )
    first, second = named_failures(read(path))
    assert (first.pid, first.sent, second.pid, second.sent) == (12, (), 21, (15, 9))
    assert compare(second, [hit(22)]).cause == "ended"


def test_a_log_without_the_line_of_the_failure_has_the_root_cause_of_the_summary(tmp_path: Path) -> None:
    lines = (SAMPLES / "torchrun-late.log").read_text().splitlines(keepends=True)
    path = tmp_path / "torchrun.log"
    path.write_text("".join(line for line in lines if "failed (exitcode" not in line))
    (named,) = named_failures(read(path))
    assert (named.local_rank, named.pid, named.code, named.sent) == (1, 6873, -15, (15,))
    assert compare(named, [hit(6874)]).cause == "ended"


def test_a_summary_that_a_ranks_text_may_have_imitated_names_nobody(tmp_path: Path) -> None:
    text = (SAMPLES / "torchrun-late.log").read_text()
    block = text[text.index("Root Cause") :]
    lines = [line for line in (text + block).splitlines(keepends=True) if "failed (exitcode" not in line]
    path = tmp_path / "torchrun.log"
    path.write_text("".join(lines))
    assert named_failures(read(path)) == []


def test_lines_of_a_failure_in_the_text_of_another_are_not_the_root_cause(tmp_path: Path) -> None:
    """The text of an exception stands, indented, behind ``traceback``."""
    block = (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-28_01:23:38\n  host      : node\n"
        "  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 11) \n  error_file: <N/A>\n"
        "  traceback : Traceback (most recent call last):\n  rank      : 9 (local_rank: 9)\n"
        "  exitcode  : -9 (pid: 99)  (SIGKILL)\n"
    )
    path = tmp_path / "torchrun.log"
    path.write_text(block)
    assert [(named.pid, named.local_rank, named.code) for named in named_failures(read(path))] == [(11, 1, 1)]
    path.write_text("".join(line for line in block.splitlines(keepends=True) if "pid: 11" not in line))
    assert named_failures(read(path)) == []


NAMED = NamedFailure(1, 11, -9, 6698, (), logged=True, where="torchrun.log:5")


def cause(named: NamedFailure | None, hits: Iterable[Event], exits: Iterable[Event] = ()) -> str:
    return compare(named, list(hits), list(exits)).cause


def test_without_evidence_it_is_unknown() -> None:
    assert cause(None, [hit(11)]) == "unknown"
    assert cause(NAMED, []) == "unknown"
    assert cause(NAMED, [hit(None)]) == "unknown"


def test_a_signal_that_the_log_may_have_left_out_is_unknown() -> None:
    assert cause(replace(NAMED, logged=False), [hit(12)]) == "unknown"
    assert cause(replace(NAMED, logged=False, code=1), [hit(12)]) == "other"
    assert cause(NAMED, [hit(12)]) == "other"


def test_the_first_of_several_acts_counts_and_all_processes_of_its_fault() -> None:
    assert cause(NAMED, [hit(12, mono=1), hit(11, mono=2)]) == "hit"
    assert cause(NAMED, [hit(12, mono=1), hit(11, mono=2, fault="f2")]) == "other"
    assert cause(NAMED, [hit(11, mono=2, fault="f2"), hit(12, mono=3)]) == "hit"


def test_a_process_that_was_hit_and_then_ended_by_torchrun_is_the_one_that_was_hit() -> None:
    assert cause(replace(NAMED, sent=(15, 9)), [hit(11)]) == "hit"


def test_a_record_of_another_end_contradicts_the_log() -> None:
    assert cause(NAMED, [hit(11)], [ended(11, signal=9)]) == "hit"
    assert cause(NAMED, [hit(11)], [ended(11, code=0)]) == "unknown"
    assert cause(replace(NAMED, sent=(15,)), [hit(12)], [ended(11, signal=15)]) == "unknown"
    assert cause(NAMED, [hit(11)], [ended(12, code=0), ended(11)]) == "hit"


def test_a_number_given_to_another_process_is_not_the_process_that_was_hit() -> None:
    assert cause(NAMED, [hit(11, start_time=5)], [ended(11, signal=9, start_time=5)]) == "hit"
    assert cause(NAMED, [hit(11, start_time=5)], [ended(11, signal=9, start_time=6)]) == "unknown"
