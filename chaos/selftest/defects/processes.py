"""Defects of processes: exit statuses, ranks that hang, leftovers."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Record, Records, recorded

_MAIN = 0x7FD246406740
"""The number of a main thread."""

_defect = partial(file_defect, base="ttp", check="hygiene")


def _ends(attempt: str, rank: int, **status: object) -> Mutate:
    return recorded(lambda records: records.end(records.last("rank.exit", attempt=attempt, rank=rank), **status))


def _left(**what: object) -> Mutate:
    return recorded(lambda records: records.first("hygiene").update(what))


def _launcher_ends(attempt: str, **status: object) -> Mutate:
    return recorded(lambda records: records.last("launcher.exit", attempt=attempt, role="launcher").update(status))


def _another_sdk(records: Records) -> None:
    file = "/opt/lib/python3.11/site-packages/mindio_ttp/framework_ttp/__init__.py"
    records.first("sdk.imported", attempt="train", rank=1).update(file=file)


def _outlived(records: Records) -> None:
    end = records.last("attempt.end", attempt="train")
    orphan = {"pid": 77, "cmdline": ["python", "data_worker.py"]}
    records.insert(end, event="job.leftovers", orphans=[orphan])


def _hangs(rank: int, attempt: str, after: int) -> Mutate:
    """Return a mutation: a rank stops after a step while the others go on, until the harness gives up and ends it."""

    def change(records: Records) -> None:
        gone = [record for record in records.all(attempt=attempt, rank=rank) if _is_later(record, after)]
        records.drop(gone)
        ended = records.last("rank.exit", attempt=attempt, rank=rank)
        records.end(ended, signal=9, code=None)
        expired = records.insert(ended, event="deadline.expired", name="end", seconds=300.0)
        for key in ("rank", "pid"):
            expired[key] = None
        expired["detail"] = f"rank {rank} has not exited"
        for key in ("signal", "code", "start_time"):
            del expired[key]

    return recorded(change)


def _is_later(record: Record, after: int) -> bool:
    step = record.get("step")
    return record["event"] in ("train.end", "agent.cost") or (isinstance(step, int) and step > after)


def _open_undo(run_dir: Path) -> None:
    """Leave the last step of the ledger open."""
    path = run_dir / "undo.jsonl"
    lines = path.read_text("utf-8").splitlines()
    steps = [json.loads(line) for line in lines]
    last = max(index for index, step in enumerate(steps) if step["record"] == "close")
    del lines[last]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _unfinished_file(run_dir: Path) -> None:
    (run_dir / "job/checkpoints/rank_0/sliced-2_1.tmp").write_bytes(b"half of a file")


def _resumed_job_fails(records: Records) -> None:
    reason = "rank 1 (exit code 1) ended before every rank had begun its first step"
    exited = records.last("rank.exit", attempt="resume", rank=1)
    records.end(exited, code=1)
    records.insert(exited, event="job.failed", rank=None, pid=None, reason=reason)
    records.first("run.end")["error"] = reason


def _before(event: str, other: str, attempt: str) -> Mutate:
    """Return a mutation: the harness has recorded an event of a launch just before another one."""

    def change(records: Records) -> None:
        lines = records.files["harness.jsonl"]
        early, late = records.last(event), records.first(other, attempt=attempt)
        lines.remove(early)
        early.update(mono=late["mono"] - 1000, wall=late["wall"] - 1000)
        lines.insert(lines.index(late), early)

    return recorded(change)


def _ends_before_its_last_steps(records: Records) -> None:
    """Make the end of rank 3 that the harness has observed the end of another process."""
    lines = records.files["harness.jsonl"]
    end, step = records.last("rank.exit", attempt="train", rank=3), records.first("step.begin", rank=3, step=9)
    lines.remove(end)
    end.update(mono=step["mono"] - 1000, wall=step["wall"] - 1000)
    lines.insert(next(number for number, record in enumerate(lines) if record["mono"] > end["mono"]), end)


def _crashes_after_its_end(rank: int, thread: str) -> Mutate:
    """Return a mutation: a rank trains to the end after the resume, leaves the cluster and ends by SIGSEGV.

    ``thread`` begins the line of its main thread in the stacks: ``Current thread`` where that crashed.
    """

    def mutate(run_dir: Path) -> None:
        def change(records: Records) -> None:
            end = records.last("rank.exit", attempt="resume", rank=rank)
            records.end(end, signal=11, code=None)
            start = records.last("agent.start", attempt="resume", rank=rank)
            start["stacks"] = {"signal": 62, "main": _MAIN}
            logs = run_dir / "logs/resume"
            logs.mkdir(parents=True, exist_ok=True)
            dump = f"{thread} 0x{_MAIN:016x} (most recent call first):\n  <no Python frame>\n"
            path = logs / f"stacks-rank_{rank}-{end['pid']}.txt"
            path.write_text(f"Fatal Python error: Segmentation fault\n\n{dump}", "utf-8")
            left = f"[meta_server_node.cc:323] ProcessUnregister] Node {rank} has unregistered.\n"
            (logs / "scheduler.log").write_text(left, "utf-8")

        recorded(change)(run_dir)

    return mutate


DEFECTS = (
    _defect(
        "another-sdk",
        "Rank 1 trains with the vendor's SDK, and the report says that it is the stand-in.",
        recorded(_another_sdk),
        "every rank uses the stand-in",
        "rank 1 has imported …/mindio_ttp/framework_ttp/__init__.py",
        check="mechanism",
    ),
    _defect(
        "exit-0-of-a-failed-rank",
        "A rank of the launch that failed ends with exit code 0.",
        _ends("train", 1, code=0),
        "rank 1 of attempt train ends with exit code 1",
        "exit code 0",
    ),
    _defect(
        "exit-1-after-resume",
        "Rank 3 trains to the end after the resume and ends with exit code 1.",
        _ends("resume", 3, code=1),
        "rank 3 of attempt resume ends with exit code 0",
        "exit code 1",
    ),
    _defect(
        "crash-after-the-end",
        "Rank 3 trains to the end after the resume and ends by SIGSEGV. Nothing says in which thread.",
        _ends("resume", 3, signal=11, code=None),
        "rank 3 of attempt resume ends with exit code 0 | ended by SIGSEGV (history/",
    ),
    _defect(
        "main-thread-crashes-after-the-end",
        "Rank 3 trains to the end after the resume, leaves the cluster and crashes in its main thread.",
        _crashes_after_its_end(3, "Current thread"),
        "rank 3 of attempt resume ends with exit code 0 | ended by SIGSEGV (history/",
    ),
    _defect(
        "cluster-thread-crashes-after-the-end",
        "Rank 3 trains to the end after the resume, leaves the cluster and crashes in a thread without Python (F-15).",
        _crashes_after_its_end(3, "Thread"),
        "rank 3 of attempt resume ends with exit code 0",
        "ended by SIGSEGV in a native thread",
        "F-15",
    ),
    _defect(
        "launcher-exit-1-after-resume",
        "The launcher of the resumed job ends with exit code 1.",
        _launcher_ends("resume", code=1),
        "the launcher of attempt resume exits with 0",
        "exit code 1",
    ),
    _defect(
        "survivor-crashes-at-exit",
        "Rank 0 crashes while it ends after its save.",
        _ends("train", 0, signal=11, code=None),
        "rank 0 of attempt train ends with exit code 1",
        "ended by SIGSEGV",
    ),
    _defect(
        "repaired-rank-crashes-at-exit",
        "Rank 1 is repaired, trains to the end and is killed there.",
        _ends("train", 1, signal=9, code=None),
        "rank 1 of attempt train ends with exit code 0",
        "ended by SIGKILL",
        base="uce",
    ),
    _defect(
        "launcher-exit-1-after-repair",
        "The job is repaired online, and its launcher ends with exit code 1.",
        _launcher_ends("train", code=1),
        "the launcher of attempt train exits with 0",
        base="hcce",
    ),
    _defect(
        "replaced-process-ends-well",
        "The replaced process ended with exit code 0, so nothing had failed.",
        recorded(lambda records: records.end(records.first("rank.exit", rank=0), signal=None, code=0)),
        "its process",
        "which was replaced, exit code 0",
        base="rsc",
    ),
    _defect(
        "rank-hangs-after-resume",
        "Rank 3 hangs in step 9 after the resume, and the others go on to the end.",
        _hangs(3, "resume", 8),
        "deadline end (300.0 s) is kept",
        "rank 3 has not exited",
        check="run",
    ),
    _defect(
        "rank-hangs-behind-repair",
        "Rank 2 hangs behind the online repair, and the others go on to the end.",
        _hangs(2, "train", 7),
        "every rank trains to step 10",
        "rank 2 stopped after step 7",
        base="uce",
        check="resume",
    ),
    _defect(
        "resumed-job-fails",
        "The job that was started again ends by itself before it trains.",
        recorded(_resumed_job_fails),
        "the resumed job runs",
        "rank 1 ended with exit code 1",
        check="run",
    ),
    _defect(
        "orphan-left",
        "A process of the job is still there at the end.",
        _left(orphans=[{"pid": 77, "cmdline": ["python", "train.py"]}]),
        "processes left: 77 (python train.py)",
    ),
    _defect(
        "orphan-outlives-its-rank",
        "A helper process outlives the ranks of the first launch.",
        recorded(_outlived),
        "outlived the ranks of attempt train: 77 (python data_worker.py)",
    ),
    _defect(
        "port-left-open",
        "A port of the job is still open at the end.",
        _left(ports=[20003]),
        "ports still open: 20003",
    ),
    _defect(
        "stale-file-left",
        "A temporary file of the job is still there at the end.",
        _unfinished_file,
        "unfinished files: job/checkpoints/rank_0/sliced-2_1.tmp",
    ),
    _defect(
        "private-directory-left",
        "The run's private directory is still there at the end.",
        _left(private_left=True),
        "the run's private directory is left",
    ),
    _defect(
        "undo-step-left-open",
        "A step of the undo ledger was never closed.",
        _open_undo,
        "undo step",
        "is still open",
    ),
    _defect(
        "fault-not-healed",
        "There is no record that the fault was undone.",
        recorded(lambda records: records.drop(records.all("fault.healed"))),
        "fault kill has no record of being healed",
        verdict="unknown",
    ),
    _defect(
        "nobody-looked-around",
        "The harness did not look for leftovers.",
        recorded(lambda records: records.drop(records.all("hygiene"))),
        "no check was made: the history has no hygiene event",
        verdict="unknown",
    ),
    _defect(
        "looked-around-too-early",
        "The harness looked for leftovers before the job was started again, and not afterwards.",
        _before("hygiene", "attempt.start", "resume"),
        "no check was made after attempt resume had started",
        verdict="unknown",
    ),
    _defect(
        "fault-healed-too-early",
        "The fault is said to be undone before it was made.",
        _before("fault.healed", "fault.injecting", "train"),
        "fault kill was made again after its last healing",
        verdict="unknown",
    ),
    _defect(
        "rank-trains-after-its-exit",
        "Rank 3 has ended with 0 by the harness's record, and trains two steps more by its own.",
        recorded(_ends_before_its_last_steps),
        "after its exit: it is another's",
        base="uce",
        verdict="unknown",
    ),
)
