"""Whole logs of real runs: no fact is lost, and every line that no reader knows is one that tells nothing."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timezone
from pathlib import Path

import pytest

from chaos.observe.logs.reader import LogScan, built_in_readers, read_log

READERS = built_in_readers(timezone.utc)
FILES = {
    "train-2-epochs.log": ("mindformers", 92, 12),
    "tre-spike.log": ("mindformers", 89, 41),
    "resume-iterations.log": ("mindformers", 106, 38),
    "resume-legacy.log": ("mindformers", 77, 28),
    "trainer-tre.log": ("mindformers", 96, 16),
    "arf-ttp_log.log.7790": ("ttp", 187, 0),
    "arf-ttp_log.log.7820": ("ttp", 45, 0),
    "hcce-ttp_log.log.1609": ("ttp", 124, 0),
    "kill-ttp_log.log.30677": ("ttp", 83, 0),
    "uce-ttp_log.log.1306": ("ttp", 140, 0),
    "uce-ttp_log.log.1309": ("ttp", 47, 0),
}
"""Reader, lines, and lines that no reader knows.

Of the logs of MindFormers' whole Trainer only what Trainer, callbacks and checkpoints say was kept, not the thousand
lines of configuration.
"""

MARKS = {
    "train.step": r"\{ Epoch:\[",
    "train.progress": "samples/s/p",
    "train.loss": ", loss is ",
    "train.epoch_time": "Train epoch time",
    "checkpoint.begin": r"\.{6}Saving ckpt|Start to save checkpoint",
    "checkpoint.saved": "Finish saving ckpt",
    "tre.thrown": "is greater equal than threshold",
    "ttp.state": "nextState: STATE_OP_",
    "ttp.received": " message\n",
    "ttp.status_error": r"\] status error, ",
    "ttp.agent_action": "do action report_[fs]",
    "ttp.result": "do action report_result",
    "ttp.repair_begin": "Start do ",
    "ttp.renamed": "finish rename",
    "ttp.dump_config": "set dump config",
    "acc.link_reset": "receive header failed, reset by peer",
    "acc.chatter": r"(?:info|warning) \[\d+\]\[ACC .*(?:thread|set processor local ip)",
}
"""What every line of a kind holds, and no other: how often it is there is counted without a reader."""

SAYS_NOTHING = (
    r"^\[WARNING\] (?:ME|RUNTIME_FRAMEWORK)\(.*(?:deprecated|may not be supp|bind core policy|BindCore)",
    r" - WARNING - (?:Import PyNative|Model Flops)",
    # the Trainer about its settings, and the steps of a load whose beginning and end are events
    r"trainer/(?:base_trainer|utils)\.py:\S+ - \w+ - (?:host_name|Now Running|Input model|See the list|Since the)",
    r"trainer/(?:base_trainer|utils)\.py:\S+ - \w+ - (?:`full_batch`|The Lazy|The current par|global_batch_size =)",
    r"trainer/(?:base_trainer|utils)\.py:\S+ - \w+ - (?:Create train|Param|Network Par|warmup_|Recommend|step scale)",
    r"trainer/(?:base_trainer|utils)\.py:\S+ - \w+ - (?:Sink mode|\.+(?:train network|optimizer) delay)",
    r"callback\.py:\d+\] - INFO - Full model flops",
    r"checkpoint/(?:metadata|sharded_tensor|reshard|utils)\.py:\d+\] - ",
    r"checkpoint/checkpoint\.py:\d+\] - INFO - (?:'common\.json' successfully loaded|\.+(?:Get Meta|Loading State))",
    r"load_checkpoint_utils\.py:\d+\] - [A-Z]+ - (?:\.{6}(?!Start load checkpoint from)|no metadata info)",
    r"^Traceback|^  File |^    |^During handling|^-+$|^- C\+\+ Call Stack|^mindspore/ccsrc/",  # a traceback
)


@pytest.mark.parametrize("name", FILES)
def test_a_sample_is_read_to_the_last_line(data: Path, name: str) -> None:
    path = data / "samples" / name
    scan = LogScan(keep=1000)
    counts = Counter(event.kind for event in read_log(path, READERS, scan=scan))
    text = path.read_text()
    assert (scan.reader, scan.lines, scan.unknown) == FILES[name]
    whole = text[: text.rfind("\n") + 1]
    blank = sum(not line.strip() for line in whole.splitlines())
    assert counts.total() + scan.unknown + blank == scan.lines == text.count("\n")
    assert {kind: counts[kind] for kind in MARKS} == {
        kind: len(re.findall(mark, whole)) for kind, mark in MARKS.items()
    }
    strange = [line for _, line in scan.samples if not any(re.search(one, line) for one in SAYS_NOTHING)]
    assert not strange


def test_all_samples_together_show_every_mechanism(data: Path) -> None:
    """A guard against a mark that no sample holds: then its count of nothing would prove nothing."""
    text = "".join((data / "samples" / name).read_text() for name in FILES)
    assert [kind for kind, mark in MARKS.items() if not re.search(mark, text)] == []


def test_ranks_and_steps_of_a_recovery_are_those_of_the_log(data: Path) -> None:
    events = list(read_log(data / "samples" / "arf-ttp_log.log.7790", READERS))
    lost = [event for event in events if event.kind == "ttp.heartbeat_lost"]
    assert [(event.rank, event.step, event.pid) for event in lost] == [(2, 5, 7790)]
    assert [event.step for event in events if event.kind == "ttp.prelocked"] == [10]
    assert [event.fields["repair"] for event in events if event.kind == "ttp.agent_chose"] == ["ARF"]
    assert all(event.wall_ns for event in events)


def test_a_rollback_inside_the_whole_trainer_can_be_followed(data: Path) -> None:
    events = list(read_log(data / "samples" / "trainer-tre.log", READERS))
    entries = [event.kind for event in events if event.kind.startswith(("tre.", "tft."))]
    begin = ["tre.thrown", "tre.barrier", "tre.synchronised", "tre.restore_begin", "tre.channel_cleaned"]
    assert entries == [
        *begin,
        "tre.load",
        "tre.not_loaded",
        "tre.not_loaded",
        "tre.restore_end",
        "tft.resumed",
        "tft.continued",
    ]
    (resumed,) = [event for event in events if event.kind == "tft.resumed"]
    steps = [event.step or 0 for event in events if event.kind == "train.step"]
    again = [event.step or 0 for event in events if event.kind == "train.step" and event.line > resumed.line]
    assert resumed.step is not None and again[0] == resumed.step + 1
    assert steps == [*range(1, steps[len(steps) - len(again) - 1] + 1), *again]


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("resume-legacy.log", "/job/output/checkpoint/rank_0/qwen3_rank_0-1_6.safetensors"),
        ("resume-iterations.log", "/job/output/checkpoint/iteration_00000006"),
    ],
)
def test_a_resume_of_either_layout_tells_what_it_reads_and_where_it_goes_on(data: Path, name: str, reads: str) -> None:
    events = list(read_log(data / "samples" / name, READERS))
    assert any(
        str(event.fields.get("path_text")).startswith(reads) for event in events if event.kind == "checkpoint.reads"
    )
    assert [event.fields["steps"] for event in events if event.kind == "resume.data_skipped"] == [6]
    assert [event.step for event in events if event.kind == "train.step"] == [7, 8, 9, 10, 11, 12]
