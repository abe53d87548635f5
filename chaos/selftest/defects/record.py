"""Defects of the record itself: lines lost or torn, clocks that jump, files of another run."""

from __future__ import annotations

import json
import re
import shutil
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from chaos.selftest.defect import Mutate, NothingToMutate, file_defect
from chaos.selftest.files import removed, rewritten
from chaos.selftest.records import Records, recorded

WHOLE = "every line of the history is complete and in order"
_TIME = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")


_defect = partial(file_defect, base="ttp", check="history", verdict="unknown")


def _lost(event: str, **match: object) -> Mutate:
    """Return a mutation: lines are gone; the lines around them are as they were written."""
    return recorded(lambda records: records.drop(records.all(event, **match)), renumber=False)


def _torn_in_the_middle(content: bytes) -> bytes:
    lines = content.rstrip(b"\0").splitlines(keepends=True)
    lines[9] = lines[9][: len(lines[9]) // 2] + b"\n"
    return b"".join(lines)


def _torn_at_the_end(content: bytes) -> bytes:
    return content.rstrip(b"\0")[:-20]


def _tail_lost(content: bytes) -> bytes:
    """Return the lines up to the end of step 10, as if the others were never written to the disk; the rest is whole."""
    lines = content.rstrip(b"\0").splitlines(keepends=True)
    ends = [at for at, line in enumerate(lines) if b'"event":"step.end"' in line and b'"step":10' in line]
    if not ends:
        raise NothingToMutate("no end of step 10 is recorded")
    return b"".join(lines[: ends[0]])


def _clock_back(records: Records) -> None:
    rank_records = records.all(attempt="resume", rank=1)
    rank_records[9]["mono"] -= 10_000_000_000


def _wall_jumps(records: Records) -> None:
    """Set the wall clock back by a minute when the fault is made; the monotonic clock goes on."""
    act = records.first("fault.injecting")["mono"]
    for record in records:
        if record["mono"] >= act:
            record["wall"] -= 60_000_000_000


def _log_clock_back(content: bytes) -> bytes:
    """Return the log with times ten seconds earlier from the line about the fault on."""
    lines = content.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if b"STATE_OP_ABNORMAL" in line), len(lines))
    return b"".join(line if number < first else _earlier(line) for number, line in enumerate(lines))


def _earlier(line: bytes) -> bytes:
    match = _TIME.match(line)
    if match is None:
        return line
    time = datetime.strptime(match[0].decode(), "%Y-%m-%d %H:%M:%S.%f") - timedelta(seconds=10)
    return time.strftime("%Y-%m-%d %H:%M:%S.%f").encode() + line[match.end() :]


def _boots_differ(records: Records) -> None:
    records.first("writer.start", attempt="resume", rank=0)["boot"] = "00000000-0000-4000-8000-000000000000"


def _of_another_run(records: Records) -> None:
    records.first("writer.start", attempt="train", rank=1)["run"] = "ttp-of-yesterday"


def _a_fifth_rank(records: Records) -> None:
    records.insert(records.last("agent.start", attempt="resume", rank=3), rank=4)


def _compared_with_itself(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "baseline/history")
    shutil.copytree(run_dir / "history", run_dir / "baseline/history")


def _plan_changed(run_dir: Path) -> None:
    path = run_dir / "plan.json"
    plan = json.loads(path.read_bytes())
    if plan["budget"]["total"] is None:
        raise NothingToMutate("the plan has no budget")
    plan["budget"]["total"] += 1000.0
    path.write_text(json.dumps(plan), "utf-8")


DEFECTS = (
    _defect(
        "history-line-lost",
        "One line in the middle of a rank's history is lost.",
        _lost("digest", attempt="resume", rank=2, step=9),
        WHOLE,
        "history/resume-rank_2-",
        "seq",
    ),
    _defect(
        "history-line-lost-of-harness",
        "One line in the middle of the harness's own history is lost.",
        _lost("fault.armed"),
        WHOLE,
        "history/harness.jsonl",
        "seq",
    ),
    _defect(
        "history-tail-lost",
        "The last lines of a rank that ended well were never written.",
        rewritten("history/resume-rank_1-*.jsonl", _tail_lost),
        "no loss of rank 1 at step 10",
        check="loss",
    ),
    _defect(
        "history-line-torn",
        "A line in the middle of a rank's history is torn.",
        rewritten("history/train-rank_0-*.jsonl", _torn_in_the_middle),
        WHOLE,
        "not an event",
    ),
    _defect(
        "history-last-line-torn",
        "The last line of a rank that ended well is torn.",
        rewritten("history/resume-rank_3-*.jsonl", _torn_at_the_end),
        WHOLE,
        "the last line is torn",
    ),
    _defect(
        "history-of-a-rank-missing",
        "The history of rank 3 in the first launch is missing.",
        removed("history/train-rank_3-*.jsonl"),
        "no history of rank 3 in attempt train",
    ),
    _defect(
        "history-of-the-dead-process-missing",
        "The history of the process that was replaced is missing.",
        recorded(lambda records: records.drop_file(f"train-rank_2-{records.first('fault.injecting')['pid']}")),
        "no history of rank 2 in attempt train, though its process",
        base="arf",
    ),
    _defect(
        "history-clock-back",
        "The clock in a rank's history jumps back.",
        recorded(_clock_back),
        WHOLE,
        "the monotonic clock runs back",
    ),
    _defect(
        "history-wall-clock-back",
        "The wall clock was set back by a minute during the recovery.",
        recorded(_wall_jumps),
        "the wall clock jumped by",
        check="recovery",
    ),
    _defect(
        "log-clock-back",
        "The times in the SDK's log jump back by ten seconds.",
        rewritten("logs/train/ttp/ttp_log.log.*", _log_clock_back),
        "run back by",
        check="recovery",
    ),
    _defect(
        "log-of-sdk-missing",
        "There is no log of the SDK.",
        removed("logs/train/ttp"),
        "the controller's change to ABNORMAL is not in the SDK's logs",
        check="recovery",
    ),
    _defect(
        "history-of-another-boot",
        "A rank's history is of another boot of the machine.",
        recorded(_boots_differ),
        "all monotonic times come from one clock",
    ),
    _defect(
        "history-of-another-run",
        "A rank's history is of another run.",
        recorded(_of_another_run),
        "there are writers of 2 runs",
    ),
    _defect(
        "history-of-a-rank-too-many",
        "There is the history of a rank that the plan does not have.",
        recorded(_a_fifth_rank),
        "there is a rank 4",
    ),
    _defect(
        "plan-changed-afterwards",
        "The budget in the plan was raised after the run.",
        _plan_changed,
        "the plan is unchanged since the run",
        "it was changed afterwards",
    ),
    _defect(
        "run-not-ended",
        "The harness was killed before its end.",
        recorded(lambda records: records.drop(records.all("run.end"))),
        "the history has no run.end",
        check="run",
    ),
    _defect(
        "baseline-missing",
        "There is no fault-free run to compare with.",
        removed("baseline"),
        "there is no baseline history",
        check="loss",
    ),
    _defect(
        "baseline-is-the-run-itself",
        "The run is compared with itself.",
        _compared_with_itself,
        "cannot be compared",
        check="loss",
    ),
    _defect(
        "baseline-of-another-job",
        "The fault-free run began with other weights.",
        recorded(
            lambda records: records.first("initial", rank=1)["parameters"].update({"layer1.weight.param": "0" * 32}),
            baseline=True,
        ),
        "rank 1 began with another layer1.weight.param than the baseline: not the same job",
        check="loss",
    ),
    _defect(
        "baseline-cut-short",
        "The fault-free run did not reach the last step on rank 2.",
        recorded(lambda records: records.drop(records.all(rank=2, step=10)), baseline=True),
        "of the baseline did not reach step 10",
        check="loss",
    ),
    _defect(
        "baseline-line-lost",
        "One line of the fault-free run's history is lost.",
        recorded(lambda records: records.drop([records.digest(0, 8)]), renumber=False, baseline=True),
        "every line of the baseline's history is whole",
        "seq",
    ),
    _defect(
        "baseline-without-one-step",
        "Rank 1's state after step 9 of the fault-free run was never recorded.",
        recorded(lambda records: records.drop([records.digest(1, 9)]), baseline=True),
        "rank 1 of the baseline has recorded nothing of step 9, and others have",
        check="loss",
    ),
    _defect(
        "baseline-step-twice",
        "Rank 1 of the fault-free run has recorded step 9 twice, with another loss.",
        recorded(lambda records: records.insert(records.digest(1, 9), loss="0x1.8p+0"), baseline=True),
        "rank 1 of the baseline has recorded step 9 twice",
        check="loss",
    ),
    _defect(
        "baseline-exit-not-recorded",
        "The end of rank 3 in the fault-free run is not recorded.",
        recorded(lambda records: records.drop(records.all("rank.exit", rank=3)), baseline=True),
        "how rank 3 of the baseline ended is not recorded",
        check="loss",
    ),
)
