"""``chaos inject`` of damage to checkpoints: the file of the named rank alone, shown before, kept, and put back."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.faults.checkpoints.file_content import unfinished_place
from chaos.faults.checkpoints.running_checkpoint import RESTORE_ADOPTED, RunningCheckpoint
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.registered import fault_kind
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_step
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.reader import read_history
from chaos.machine.running.running import JobProcess, survey
from chaos.store.directory import read_run
from tests.kit.checkpoints.saved_checkpoints import save
from tests.kit.jobs.running_jobs import OwnJob, own_job, untouched_job
from tests.unit.cli.kit import Ended
from tests.unit.faults.test_damaging_checkpoints import NEWEST, OLDER, content
from tests.unit.observe.mindformers_files import write_safetensors

pytestmark = pytest.mark.processes

Call = Callable[..., Ended]

KINDS = (
    "truncate-checkpoint",
    "flip-checkpoint",
    "stale-checkpoint",
    "rename-checkpoint",
    "remove-checkpoint",
    "partial-checkpoint",
)
WAIT = 120.0


@pytest.fixture
def job(tmp_path: Path) -> Iterator[OwnJob]:
    """A job that has saved two checkpoints of each rank below the directory that it works in."""
    with untouched_job(tmp_path / "job") as job:
        save(job.work / "checkpoints")
        yield job


def files(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mode)
        for path in directory.rglob("*")
        if path.is_file()
    }


def told_of(ended: Ended) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(ended.out)
    return fields


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_file_of_the_rank_is_damaged_with_evidence_and_put_back(
    chaos: Call, job: OwnJob, reports: Path, kind: str
) -> None:
    before = files(job.work)
    ended = chaos("inject", kind, "--rank", "1", "--job", str(job.logs), "--for", "100ms", "--json")
    assert ended.code == 0, ended.err
    answer = told_of(ended)
    (hit,) = answer["hits"]
    assert (answer["outcome"], answer["undone"], answer["left"], hit["why"]) == ("landed", True, [], "")
    shown = hit["evidence"]
    assert (shown["file"], shown["step"]) == (f"checkpoints/rank_1/{NEWEST}", 8)
    assert shown["before"] == hashlib.sha256(content(8)).hexdigest()
    assert (shown["after"] == shown["before"]) == (kind == "rename-checkpoint")
    assert shown["said_by"] == "the file itself"
    assert files(job.work) == before
    run = Path(answer["directory"])
    assert Ledger(run / "undo.jsonl").read().open == []
    assert not (run / "damaged").exists()
    assert read_history(run / "history").problems == ()


def test_one_file_of_a_save_in_mindformers_new_layout_is_hit(chaos: Call, job: OwnJob, reports: Path) -> None:
    own = job.work / "iteration_00000012"
    own.mkdir(parents=True)
    for part in ("model", "opt"):
        write_safetensors(own / f"tiny-{part}-0000000-0000001.safetensors", {f"{part}.weight": [1.0, 2.0]})
    (own / "common.json").write_text('{"step_num": 12}')
    before = files(job.work)
    call = ("inject", "remove-checkpoint", "--rank", "0", "--job", str(job.logs), "--for", "100ms", "--json")
    for part, file in (("common.json", "common.json"), ("optimizer", "tiny-opt-0000000-0000001.safetensors")):
        ended = chaos(*call, "--set", f"part={part}")
        assert ended.code == 0, ended.err
        answer = told_of(ended)
        assert answer["hits"][0]["evidence"]["file"] == f"iteration_00000012/{file}"
        assert files(job.work) == before
    assert "there is no metadata.json beside" in chaos(*call, "--set", "part=metadata.json").err


@pytest.mark.parametrize(
    ("settings", "step", "name"), [((), 8, NEWEST), (("--set", "step=4"), 4, OLDER), (("--set", "step=8"), 8, NEWEST)]
)
def test_a_dry_run_shows_the_file_and_changes_nothing(
    chaos: Call, job: OwnJob, reports: Path, settings: tuple[str, ...], step: int, name: str
) -> None:
    before = files(job.work)
    command = ("inject", "truncate-checkpoint", "--rank", "1", "--job", str(job.logs), *settings, "--dry-run")
    path = job.work.resolve() / "checkpoints" / "rank_1" / name
    assert told_of(chaos(*command, "--json"))["targets"] == [
        {"rank": 1, "path": str(path), "step": step, "bytes": len(content(step))}
    ]
    assert f"path {path}, step {step}" in chaos(*command).out
    assert (files(job.work), reports.exists()) == (before, False)


def refused(chaos: Call, job: OwnJob, *more: str) -> str:
    """What is said where nothing is done."""
    before = files(job.work)
    ended = chaos("inject", "remove-checkpoint", "--rank", "1", "--job", str(job.logs), "--for", "1s", *more)
    assert ended.code == 64, ended.out
    assert files(job.work) == before
    assert not Path("reports").exists()
    return " ".join(ended.err.split())


def test_a_step_that_there_is_not_is_refused_with_those_that_there_are(chaos: Call, job: OwnJob, reports: Path) -> None:
    assert "of step 5; there are those of 4, 8" in refused(chaos, job, "--set", "step=5")
    assert "step of remove-checkpoint is a whole number" in refused(chaos, job, "--set", "step=last")


def test_what_lies_behind_a_link_out_of_the_job_is_refused(
    chaos: Call, job: OwnJob, reports: Path, tmp_path: Path
) -> None:
    (job.work / "checkpoints").rename(tmp_path / "elsewhere")
    (job.work / "checkpoints").symlink_to(tmp_path / "elsewhere")
    before = files(tmp_path / "elsewhere")
    message = refused(chaos, job)
    assert f"{job.work / 'checkpoints'} is a link to {tmp_path / 'elsewhere'}" in message
    (job.work / "checkpoints").unlink()
    (job.work / "rank_1").mkdir()
    (job.work / "rank_1" / NEWEST).symlink_to(tmp_path / "elsewhere" / "rank_1" / NEWEST)
    assert "has no finished checkpoint there" in refused(chaos, job)
    assert files(tmp_path / "elsewhere") == before


def test_a_file_that_names_no_rank_is_told(chaos: Call, job: OwnJob, reports: Path) -> None:
    for path in (job.work / "checkpoints" / "rank_1").iterdir():
        path.rename(job.work / path.name)
    assert f"{job.work / OLDER} names no rank" in refused(chaos, job)


def test_what_chaos_has_kept_in_the_jobs_directory_is_none_of_the_jobs(chaos: Call, job: OwnJob, reports: Path) -> None:
    kept = job.work / "reports" / "inject-1" / "damaged" / "rank_1"
    kept.mkdir(parents=True)
    (kept / "plain-1_9.ckpt").write_bytes(content(9))
    (job.work / "reports" / "inject-1" / "run.json").write_text("{}")
    ended = chaos("inject", "remove-checkpoint", "--rank", "1", "--job", str(job.logs), "--dry-run", "--json")
    assert told_of(ended)["targets"][0]["step"] == 8


def test_a_file_where_two_jobs_work_is_nobodys(chaos: Call, job: OwnJob, reports: Path) -> None:
    with own_job(job.work, logs="others"):
        assert f"because the job with ranks 0-1 that logs in {job.work / 'others'}" in refused(chaos, job)
    with own_job(job.work / "beside"):  # works below, so that it cannot have saved the file
        ended = chaos("inject", "remove-checkpoint", "--rank", "1", "--job", str(job.logs), "--dry-run")
        assert ended.code == 0, ended.err


def start(job: OwnJob, reports: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "chaos", "inject", "truncate-checkpoint", "--rank", "1", "--job", str(job.logs)]
    process = subprocess.Popen([*command, "--reports", str(reports), *more], stdout=subprocess.PIPE, text=True)
    wait_for("the damage", lambda: landed(reports), seconds=WAIT)
    return process


def landed(reports: Path) -> bool:
    runs = [*reports.glob("inject-*")] if reports.exists() else []
    return any(read_history(run / "history").first("fault.landed") is not None for run in runs)


def test_heal_puts_the_file_back_after_sigkill_and_the_job_runs_on(chaos: Call, job: OwnJob, reports: Path) -> None:
    before = files(job.work)
    process = start(job, reports)
    process.kill()
    process.wait()
    assert len((job.work / "checkpoints" / "rank_1" / NEWEST).read_bytes()) == len(content(8)) // 2
    ended = chaos("heal", "--json")
    assert ended.code == 0, ended.out
    assert files(job.work) == before
    assert chaos("heal", "--json").code == 0
    assert files(job.work) == before


def test_heal_removes_what_was_half_written_when_the_harness_was_killed(
    chaos: Call, job: OwnJob, reports: Path
) -> None:
    before = files(job.work)
    process = start(job, reports)
    process.kill()
    process.wait()
    path = job.work / "checkpoints" / "rank_1" / NEWEST
    path.write_bytes(content(8))  # as it is before the other content has taken its place
    unfinished_place(path).write_bytes(b"half of")
    assert chaos("heal", "--json").code == 0
    assert files(job.work) == before


def test_a_file_that_the_job_has_saved_since_is_left_alone_and_that_is_told(
    chaos: Call, job: OwnJob, reports: Path
) -> None:
    process = start(job, reports, "--json")
    path = job.work / "checkpoints" / "rank_1" / NEWEST
    path.with_suffix(".tmp").write_bytes(content(12))
    path.with_suffix(".tmp").replace(path)
    out, _ = process.communicate(timeout=WAIT)
    result = json.loads(out)
    assert "another file is there, or none" in result["hits"][0]["why"]
    assert path.read_bytes() == content(12)
    (healed,) = read_history(Path(result["directory"]) / "history").select("fault.healed")
    assert "the job has saved another" in healed.data["how"]


def test_the_damage_is_there_for_the_next_launch_when_the_rank_has_ended(tmp_path: Path, reports: Path) -> None:
    with own_job(tmp_path / "job") as job:
        save(job.work / "checkpoints")
        path = job.work / "checkpoints" / "rank_1" / NEWEST
        process = start(job, reports, "--json")
        job.ranks[1].kill()
        job.ranks[1].wait()
        (run,) = reports.glob("inject-*")
        # It looks ten times a second, and would note at the next one that the fault had ended with the rank.
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        assert read_history(run / "history").select("fault.ending") == []
        assert path.read_bytes() != content(8)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=WAIT)
        assert json.loads(out)["undone"] is True
        assert path.read_bytes() == content(8)


@pytest.fixture
def process(job: OwnJob) -> JobProcess:
    """Rank 1 as it is found."""
    return next(candidate for found in survey().jobs for candidate in found.ranks if candidate.pid == job.ranks[1].pid)


def bound(kind: str, process: JobProcess, **parameters: Any) -> RunningCheckpoint:
    found = fault_kind(kind).in_running_job()
    assert isinstance(found, RunningCheckpoint)
    return found.aim_at([process], parameters)


def test_a_file_that_was_saved_anew_since_it_was_shown_is_not_hit(
    chaos: Call, job: OwnJob, process: JobProcess, tmp_path: Path
) -> None:
    for kind in KINDS:
        fault = bound(kind, process)
        record = tmp_path / f"run-{kind}" / "history" / "x.jsonl"
        victim = Victim(1, process.identity, record, fault="hit")
        path = job.work / "checkpoints" / "rank_1" / NEWEST
        fresh = path.with_suffix(".tmp")
        fresh.write_bytes(content(8))
        fresh.replace(path)
        no_job: Any = None
        with pytest.raises(FaultMissed, match="not the file any more"):
            fault.inject(no_job, victim)
        assert path.read_bytes() == content(8)
        with pytest.raises(FaultMissed, match="not the file any more"):
            fault.undo_steps("hit", [victim])
        for left in path.parent.glob(".*.chaos"):
            left.unlink()  # as the undo does


NOT_TOUCHED: list[tuple[dict[str, Any], str]] = [
    ({"path": "/etc/passwd"}, "is in no directory of this run or its job"),
    ({"root": "/nowhere"}, "is in no directory of this run or its job"),
    ({"kept": "/etc/passwd"}, "is in no directory of this run or its job"),
    ({"moved": "/etc/passwd"}, "is in no directory of this run or its job"),
    ({"root": 3}, "does not say which directory of the job"),
    ({"directory": [0, 0]}, ""),
]
"""What is wrong with a step, and why it is not undone; the last one finds nothing of its own to undo."""


def test_the_undo_touches_nothing_but_the_file_that_was_hit(chaos: Call, job: OwnJob, reports: Path) -> None:
    harness = start(job, reports)
    harness.kill()
    harness.wait()
    (run,) = reports.glob("inject-*")
    ledger = Ledger(run / "undo.jsonl")
    (step,) = ledger.open_steps()
    assert step.action == RESTORE_ADOPTED
    before = files(job.work)
    context = UndoContext(read_run(run)["token"], SYSTEM_CLOCK, adopted=True)
    for change, why in NOT_TOUCHED:
        spoilt = UndoStep(step.id, step.fault, step.action, {**step.arguments, **change}, step.note)
        undone = undo_step(ledger, spoilt, UNDO_ACTIONS, context)
        assert (undone.ok, why in undone.how) == (not why, True), change
        assert files(job.work) == before, change


def test_a_run_that_started_its_job_restores_nothing_in_another(chaos: Call, job: OwnJob, reports: Path) -> None:
    harness = start(job, reports)
    harness.kill()
    harness.wait()
    (run,) = reports.glob("inject-*")
    (step,) = Ledger(run / "undo.jsonl").open_steps()
    undone = undo_step(
        Ledger(run / "undo.jsonl"), step, UNDO_ACTIONS, UndoContext(read_run(run)["token"], SYSTEM_CLOCK)
    )
    assert (undone.ok, "but this run started its own" in undone.how) == (False, True)
