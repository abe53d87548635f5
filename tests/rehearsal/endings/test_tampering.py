"""A run that passed turns to fail when what it saved is changed by hand, and to unknown when evidence is taken away."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.cli.main import entry
from chaos.selftest.ckpt_file import CkptFile
from tests.kit.shipped import shipped
from tests.rehearsal.kit import Done, Run, checks_of, said

Tamper = Callable[[Run], None]
Analyzed = Callable[[Run], Done]
Event = dict[str, Any]

FILE = "ttp_rank_0-1_5.ckpt"
WEIGHT = "layer3.weight"
MOMENT = "moments.layer2.bias"
ANOTHER_DIGEST = "0" * 32
KILL_RANK = shipped("kill-rank")


def below(key: str) -> str:
    """Where the scenario has what stands first under a key, as the judge names it."""
    (above,) = [
        number for number, line in enumerate(KILL_RANK.read_text("utf-8").splitlines(), 1) if line.strip() == key
    ]
    return f"scenario.yaml:{above + 1}"


def saved(run: Run) -> Path:
    """The end-of-life checkpoint."""
    (path,) = run.path.glob(f"job/checkpoints/ttp_saved_checkpoints-step_5/rank_0/{FILE}")
    return path


def edit_file(change: Callable[[CkptFile], None]) -> Tamper:
    """Change the content of the checkpoint."""

    def tamper(run: Run) -> None:
        content = CkptFile(saved(run))
        change(content)
        content.write()

    return tamper


def zero_moments(content: CkptFile) -> None:
    for name in content.moments():
        content.set_content(name, bytes(len(content.content(name))))


def rename(source: str, target: str) -> Tamper:
    """Rename something in the directory of checkpoints."""

    def tamper(run: Run) -> None:
        directory = run.path / "job/checkpoints"
        (directory / source).rename(directory / target)

    return tamper


def truncate(run: Run) -> None:
    path = saved(run)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_between_records(run: Run) -> None:
    """Cut the file where a record ends: what is left is a sound file."""
    content = CkptFile(saved(run))
    del content.entries[-5:]
    content.write()


def remove(pattern: str) -> Tamper:
    """Remove one file or directory."""

    def tamper(run: Run) -> None:
        (path,) = run.path.glob(pattern)
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return tamper


def leave_temporary(run: Run) -> None:
    directory = run.path / "job/checkpoints/ttp_saved_checkpoints-step_5"
    shutil.copytree(directory, directory.with_name(f"{directory.name}_tmp"))


def save_from_the_dead(run: Run) -> None:
    target = saved(run).parents[1] / "rank_2" / "ttp_rank_2-1_5.ckpt"
    target.parent.mkdir()
    shutil.copy2(saved(run), target)


def edit_history(pattern: str, change: Callable[[Event], Event | None], *, renumber: bool = True) -> Tamper:
    """Change events of one history file, or remove those for which ``change`` gives None. Something must change."""

    def tamper(run: Run) -> None:
        (path,) = run.path.glob(pattern)
        before = [json.loads(line) for line in path.read_bytes().rstrip(b"\0").splitlines()]
        after = [event for one in before if (event := change(dict(one))) is not None]
        assert after != before
        if renumber:
            after = [{**event, "seq": number} for number, event in enumerate(after)]
        path.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in after), "utf-8")

    return tamper


def at(event: str, step: int, /, **values: Any) -> Callable[[Event], Event]:
    """Replace values in the event of one step."""
    return lambda one: {**one, **values} if (one["event"], one.get("step")) == (event, step) else one


def without(event: str, **match: Any) -> Callable[[Event], Event | None]:
    """Remove the events of that name with these values."""
    return lambda one: None if one["event"] == event and match.items() <= one.items() else one


def with_parameter(step: int, name: str) -> Callable[[Event], Event]:
    """Replace the digest of one parameter after one step."""

    def change(event: Event) -> Event:
        if (event["event"], event.get("step")) != ("digest", step):
            return event
        assert name in event["parameters"]
        return {**event, "parameters": {**event["parameters"], name: ANOTHER_DIGEST}}

    return change


FAILURES: dict[str, tuple[Tamper, str, tuple[str, ...]]] = {
    "the saved step": (
        edit_file(lambda file: file.set_number("step_num", 6)),
        "checkpoint",
        ("step_num of rank 0 is 5", "step_num 6 is stored", FILE, below("checkpoint:")),
    ),
    "the optimizer's step": (
        edit_file(lambda file: file.set_number("global_step", 4)),
        "checkpoint",
        ("global_step 4 is stored", FILE),
    ),
    "the directory's step": (
        rename("ttp_saved_checkpoints-step_5", "ttp_saved_checkpoints-step_6"),
        "checkpoint",
        ("the directory's step is the stored one, 5", "it is 6", FILE),
    ),
    "the file's step": (
        rename(
            f"ttp_saved_checkpoints-step_5/rank_0/{FILE}", "ttp_saved_checkpoints-step_5/rank_0/ttp_rank_0-1_6.ckpt"
        ),
        "checkpoint",
        ("rank 0's file is named 1_6",),
    ),
    "the directory's rank": (
        rename("ttp_saved_checkpoints-step_5/rank_0", "ttp_saved_checkpoints-step_5/rank_1"),
        "checkpoint",
        ("rank 1", "it is rank 0's"),
    ),
    "the stored rank": (
        edit_file(lambda file: file.set_number("cur_rank", 3)),
        "checkpoint",
        ("cur_rank 3 is stored", FILE),
    ),
    "one bit of one weight": (
        edit_file(lambda file: file.flip_bit(WEIGHT, 1_000_003)),
        "checkpoint",
        ("1 of", "parameters of rank 0 differ", WEIGHT, FILE),
    ),
    "one bit of one moment": (
        edit_file(lambda file: file.flip_bit(MOMENT, 7)),
        "checkpoint",
        ("1 of", "parameters of rank 0 differ", MOMENT, FILE),
    ),
    "the optimizer state, zeroed": (
        edit_file(zero_moments),
        "checkpoint",
        ("9 of", "moments.layer1.param", FILE),
    ),
    "one moment, left out": (
        edit_file(lambda file: file.remove(MOMENT)),
        "checkpoint",
        ("rank 0's file lacks optimizer state", MOMENT, FILE),
    ),
    "one weight, left out": (
        edit_file(lambda file: file.remove(WEIGHT)),
        "checkpoint",
        ("rank 0's file lacks parameters", WEIGHT, FILE),
    ),
    "one weight, not a number": (
        edit_file(lambda file: file.set_float(WEIGHT, 5, float("nan"))),
        "checkpoint",
        ("not finite in rank 0's file", WEIGHT, FILE),
    ),
    "the flag of a finished update": (
        edit_file(lambda file: file.set_number("tft_g_one_flag", 0)),
        "checkpoint",
        ("tft_g_one_flag is 0", "in the middle of an update", FILE),
    ),
    "half of the file": (truncate, "checkpoint", ("rank 0's file is damaged at byte", FILE)),
    "the end of the file, cut between two records": (
        cut_between_records,
        "checkpoint",
        ("rank 0's file lacks optimizer state: learning_rate", FILE),
    ),
    "the file, removed": (
        remove(f"job/checkpoints/*/rank_0/{FILE}"),
        "checkpoint",
        ("no checkpoint of replica group [0, 1, 2, 3]", "scenario.yaml:"),
    ),
    "a directory that was not renamed": (
        leave_temporary,
        "checkpoint",
        ("temporary directories are renamed", "ttp_saved_checkpoints-step_5_tmp is left"),
    ),
    "a file of the rank that died": (
        save_from_the_dead,
        "checkpoint",
        ("rank 2 saved without being entitled to", "ttp_rank_2-1_5.ckpt"),
    ),
    "a loss after the resume": (
        edit_history("history/resume-rank_1-*.jsonl", at("digest", 8, loss=(2.5).hex())),
        "loss",
        ("rank 1", "step 8", "history/resume-rank_1-"),
    ),
    "a weight after the resume": (
        edit_history("history/resume-rank_1-*.jsonl", with_parameter(9, WEIGHT)),
        "loss",
        ("rank 1", "step 9", WEIGHT),
    ),
    "a batch after the resume": (
        edit_history("history/resume-rank_3-*.jsonl", at("digest", 6, batch=ANOTHER_DIGEST)),
        "resume",
        ("rank 3", "step 6"),
    ),
    "a weight of the baseline": (
        edit_history("baseline/history/train-rank_2-*.jsonl", with_parameter(11, WEIGHT)),
        "loss",
        ("rank 2", "step 11", WEIGHT, "baseline/history/train-rank_2-"),
    ),
    "a loss of the baseline": (
        edit_history("baseline/history/train-rank_2-*.jsonl", at("digest", 12, loss=(0.5).hex())),
        "loss",
        ("rank 2", "step 12", "baseline/history/train-rank_2-"),
    ),
    "the first step after the resume": (
        edit_history("history/resume-rank_0-*.jsonl", at("step.begin", 6, step=7)),
        "resume",
        ("training goes on at step 6", "rank 0 began with step 7", below("resume:")),
    ),
    "an exit code of the resumed job": (
        edit_history("history/harness.jsonl", lambda event: {**event, "code": 1} if _resumed_exit(event, 3) else event),
        "hygiene",
        ("rank 3 of attempt resume ends with exit code 0", "exit code 1"),
    ),
    "an orphan": (
        edit_history(
            "history/harness.jsonl",
            lambda event: (
                {**event, "orphans": [{"pid": 77, "cmdline": ["sleep"]}]} if event["event"] == "hygiene" else event
            ),
        ),
        "hygiene",
        ("processes left: 77 (sleep)",),
    ),
}


def _resumed_exit(event: Event, rank: int) -> bool:
    return (event["event"], event["attempt"], event["rank"]) == ("rank.exit", "resume", rank)


EVIDENCE: dict[str, tuple[Tamper, str, tuple[str, ...]]] = {
    "the landing": (
        edit_history("history/harness.jsonl", without("fault.landed")),
        "injection",
        ("no landing of this fault", below("faults:")),
    ),
    "the injection": (
        edit_history("history/harness.jsonl", without("fault.injecting")),
        "injection",
        ("no record of the injection into rank 2",),
    ),
    "the exit status of the killed rank": (
        edit_history("history/harness.jsonl", without("rank.exit", attempt="train", rank=2)),
        "injection",
        ("no exit status of rank 2",),
    ),
    "who the process was": (
        edit_history("history/harness.jsonl", without("rank.found", attempt="train", rank=2)),
        "injection",
        ("was never identified as rank 2",),
    ),
    "the barrier in the rank's own history": (
        edit_history("history/train-rank_2-*.jsonl", without("barrier.reached")),
        "injection",
        ("rank 2's own history has no barrier",),
    ),
    "the history of the killed rank": (
        remove("history/train-rank_2-*.jsonl"),
        "history",
        ("no history of rank 2 in attempt train",),
    ),
    "one line in the middle": (
        edit_history("history/resume-rank_2-*.jsonl", without("step.end", step=9), renumber=False),
        "history",
        ("history/resume-rank_2-", "seq"),
    ),
    "the end of the run": (
        edit_history("history/harness.jsonl", without("run.end")),
        "run",
        ("no run.end",),
    ),
    "the look around after the teardown": (
        edit_history("history/harness.jsonl", without("hygiene")),
        "hygiene",
        ("no check was made",),
    ),
    "the history of the baseline": (
        remove("baseline/history"),
        "loss",
        ("cannot be compared: there is no baseline history",),
    ),
    "the sameness of the baseline before the fault": (
        edit_history("baseline/history/train-rank_0-*.jsonl", with_parameter(3, WEIGHT)),
        "loss",
        ("cannot be compared", WEIGHT, "step 3, before any fault"),
    ),
}


@pytest.fixture
def analyzed(capsys: pytest.CaptureFixture[str]) -> Analyzed:
    """``chaos analyze`` in this process: tests/rehearsal/test_kill_rank.py has it as a process of its own."""

    def analyzed(run: Run) -> Done:
        capsys.readouterr()
        code = entry(["analyze", str(run.path), "--json"])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return analyzed


@pytest.mark.parametrize("what", FAILURES)
def test_what_is_changed_by_hand_fails(copy_of_run: Run, analyzed: Analyzed, what: str) -> None:
    tamper, check, texts = FAILURES[what]
    tamper(copy_of_run)
    done = analyzed(copy_of_run)
    failed = checks_of(done.json, "fail")
    assert (done.code, done.json["verdict"]) == (1, "fail"), said(checks_of(done.json, "unknown"))
    message = said([candidate for candidate in failed if candidate["name"] == check])
    for text in texts:
        assert text in message, said(failed)


@pytest.mark.parametrize("what", EVIDENCE)
def test_without_evidence_it_is_unknown_and_never_a_pass(copy_of_run: Run, analyzed: Analyzed, what: str) -> None:
    tamper, check, texts = EVIDENCE[what]
    tamper(copy_of_run)
    done = analyzed(copy_of_run)
    unknown = checks_of(done.json, "unknown")
    assert (done.code, done.json["verdict"]) == (2, "unknown"), said(checks_of(done.json, "fail"))
    message = said([candidate for candidate in unknown if candidate["name"] == check])
    for text in texts:
        assert text in message, said(unknown)


def test_the_editor_writes_what_it_has_read(copy_of_run: Run) -> None:
    before = saved(copy_of_run).read_bytes()
    content = CkptFile(saved(copy_of_run))
    assert (content.number("step_num"), content.number("global_step"), len(content.moments())) == (5, 5, 9)
    content.write()
    assert saved(copy_of_run).read_bytes() == before
