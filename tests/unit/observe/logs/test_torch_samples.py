"""Whole logs of real runs under torchrun (torch 2.13, gloo): no fact is lost, and no unknown line holds one."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timezone
from pathlib import Path

import pytest

from chaos.observe.logs.reader import LogScan, built_in_readers, read_log

READERS = built_in_readers(timezone.utc)
MARKS = {
    "torchrun.closing": r"Sending process \d+ closing signal",
    "torchrun.killing": "forcefully exiting via",
    "torchrun.failed": r"\] failed \(exitcode: ",
    "torchrun.signalled": "death signal",
    "torchrun.restart": "attempts left; will restart",
    "torchrun.root_cause": "^Root Cause",
    "torchrun.failure": r"^  (?:time      |host      |rank      |exitcode  |error_file|traceback ): ",
    "torchrun.rendezvous_end": "Rendezvous complete",
    "torchrun.finished": "worker group (?:successfully )?finished",
    "torchrun.ended_by": r"^torch\S+SignalException",
    "train.loss": r"^(?:\[\w+\d\]:)?step \d+ loss ",
    "error.traceback": r"\[rank\d\]: Traceback",
    "error.raised": r"\[rank\d\]: ValueError",
    "collective.failed": r"\[rank\d\]: RuntimeError: .*(?:Connection closed|Read error)",
}
"""What every line of a kind holds, and no other: how often it is there is counted without a reader."""

FILES = {
    "torchrun-exit-0.log": {"torchrun.closing", "torchrun.failed", "torchrun.root_cause"},
    "torchrun-kill-merged.log": {"torchrun.failed", "collective.failed", "train.loss"},
    "torchrun-kill-tee.log": {"torchrun.rendezvous_end", "collective.failed", "train.loss"},
    "torchrun-late.log": {"torchrun.closing", "torchrun.failed"},
    "torchrun-node-1.log": {"torchrun.restart", "torchrun.failed"},
    "torchrun-raise.log": {"torchrun.failed", "torchrun.failure"},
    "torchrun-restart.log": {"torchrun.restart", "torchrun.finished"},
    "torchrun-role-rank.log": {"error.raised", "error.traceback", "train.loss"},
    "torchrun-sigterm.log": {"torchrun.signalled", "torchrun.ended_by"},
    "torchrun-stop.log": {"torchrun.killing", "torchrun.root_cause"},
}
SAYS_NOTHING = (
    r"^(?:\[default\d\]:)?(?:\[rank\d\]:){0,2} ?(?:Traceback|  |$)",
    r"^ {2,}",  # the text of an exception in the summary
    r"^[=-]{20,}$|^train\.py FAILED$|^Failures:$|^\[\d\]:$",
    r"^(?:Traceback|The above exception|During handling)",
    r"^I.*\] (?:use_agent_store|Environment variable|Registered signal|$)",
    r"^W.*node_rank is only used for static",
    r"^\[rank1\]:\[rank1\]: at step 3$",  # the second line of an exception
)


@pytest.mark.parametrize("name", FILES)
def test_a_sample_of_torchrun_is_read_to_the_last_line(data: Path, name: str) -> None:
    path = data / "samples" / name
    scan = LogScan(keep=1000)
    counts = Counter(event.kind for event in read_log(path, READERS, scan=scan))
    text = path.read_text()
    blank = sum(not line.strip() for line in text.splitlines())
    assert (scan.reader, scan.torn) == ("torchrun", False)
    assert counts.total() + scan.unknown + blank == scan.lines == text.count("\n")
    assert {kind: counts[kind] for kind in MARKS} == {
        kind: len(re.findall(mark, text, re.MULTILINE)) for kind, mark in MARKS.items()
    }
    assert counts.keys() >= FILES[name]
    strange = [line for _, line in scan.samples if not any(re.search(form, line) for form in SAYS_NOTHING)]
    assert strange == []


def test_the_samples_show_every_mark(data: Path) -> None:
    text = "".join((data / "samples" / name).read_text() for name in FILES)
    assert [kind for kind, mark in MARKS.items() if not re.search(mark, text, re.MULTILINE)] == []


def test_a_restart_can_be_followed(data: Path) -> None:
    events = list(read_log(data / "samples" / "torchrun-restart.log", READERS))
    (restart,) = [event for event in events if event.kind == "torchrun.restart"]
    assert (restart.fields["left"], restart.fields["of"], restart.fields["state"]) == (2, 2, "FAILED")
    assigned = [event.fields for event in events if event.kind == "torchrun.assigned"]
    assert [fields["value"] for fields in assigned if fields["what"] == "restart_count"] == [0, 1]
    assert [fields["value"] for fields in assigned if fields["what"] == "global_ranks"] == [[0, 1, 2, 3]] * 2
    settings = {
        event.fields["what"]: event.fields["value_text"] for event in events if event.kind == "torchrun.setting"
    }
    assert (settings["max_restarts"], settings["rdzv_backend"]) == ("2", "c10d")


def test_a_second_node_tells_its_own_local_ranks(data: Path) -> None:
    events = list(read_log(data / "samples" / "torchrun-node-1.log", READERS))
    (failed,) = [event for event in events if event.kind == "torchrun.failed"]
    assert (failed.rank, failed.fields["local_rank"], failed.fields["code"]) == (None, 0, -9)
    assigned = {event.fields["what"]: event.fields["value"] for event in events if event.kind == "torchrun.assigned"}
    assert (assigned["local_ranks"], assigned["global_ranks"]) == ([0, 1], [2, 3])


def test_the_directory_of_torchrun_is_read_whole_and_its_local_ranks_are_not_taken_for_ranks(data: Path) -> None:
    found: dict[str, list[tuple[str, int | None]]] = {}
    for path in sorted((data / "torchrun").rglob("*.*")):
        scan = LogScan()
        events = list(read_log(path, READERS, scan=scan))
        assert scan.torn is False
        found[f"{path.parent.name}/{path.name}"] = [(event.kind, event.rank) for event in events]
    assert found == {
        "0/error.json": [("error.file", None)],
        "0/stderr.log": [("error.traceback", 0), ("collective.failed", 0)],
        "0/stdout.log": [("train.loss", None)] * 2,
        "1/error.json": [("error.file", None)],
        "1/stderr.log": [("error.traceback", 1), ("error.raised", 1)],
        "1/stdout.log": [("train.loss", None)] * 2,
    }
