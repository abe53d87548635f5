"""The cache of baselines: one fault-free run for each key, made once, copied into every run that compares with it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timezone
from pathlib import Path

from chaos.base.file_lock import FileLock
from chaos.base.plain_files import open_plain, read_plain
from chaos.base.rank_sets import rank_set
from chaos.base.wait import Patience
from chaos.history.reader import History, read_history
from chaos.machine.lease_holder import Holder, read_holder, this_holder
from chaos.plan import io
from chaos.store.directory import RUN_NAME, write_json

DIRECTORY = ".baselines"
"""Directory of the reports that holds the pointers to baselines, by their keys."""
_UNFINISHED = re.compile(r"[0-9a-f]{64}\.new")
"""Name of a pointer that is being written: the name of its key (chaos.store.baseline_key)."""
_KEY = re.compile(r"[0-9a-z]{1,64}")
_BLOCK = 1 << 20


class BaselineError(RuntimeError):
    """There is no usable baseline. The text says why."""


def find_or_make(
    reports: Path,
    key: str,
    make: Callable[[], Path],
    *,
    wait: Patience,
    still: Callable[[], bool] = lambda: True,
    blocked: Callable[[Holder | None], None] = lambda maker: None,
) -> tuple[Path, bool]:
    """Return the run directory of the baseline with this key, and whether it was made now.

    One harness makes the baseline while others with the same key wait: ``blocked`` is called once, with its maker as
    far as that is recorded. An incomplete cached baseline is made again. A new baseline is kept for others only if its
    key is ``still`` the job's. Raises the exceptions of ``make`` and ``still``, and BaselineError if the new baseline
    is incomplete.
    """
    cache = reports / DIRECTORY
    cache.mkdir(parents=True, exist_ok=True)
    pointer = cache / f"{key}.txt"
    blocks: list[Holder | None] = []

    def locked() -> FileLock | None:
        lock = FileLock.try_acquire(_lock_of(reports, key))
        if lock is None and not blocks:
            blocks.append(maker_of(reports, key))
            blocked(blocks[0])
        return lock

    with wait(f"baseline {key[:12]}", locked):
        cached = _run_named_in(pointer, reports)
        if cached is not None and why_incomplete(cached) is None:
            return cached, False
        made = _made(make, _lock_of(reports, key))
        if (why := why_incomplete(made)) is not None:
            raise BaselineError(f"the fault-free run {made} cannot serve as a baseline: {why}")
        if not still():
            return made, True
        unfinished = pointer.with_suffix(".new")
        unfinished.write_text(made.name, "utf-8")
        unfinished.replace(pointer)
        return made, True


def _made(make: Callable[[], Path], lock: Path) -> Path:
    """Return what is made, while those who wait for the lock can read by whom."""
    _write_into(lock, this_holder())
    try:
        return make()
    finally:
        _write_into(lock, None)


def maker_of(reports: Path, key: str) -> Holder | None:
    """Return the living process that makes the baseline with this key now, as it has recorded itself."""
    return read_holder(_lock_of(reports, key)) if _KEY.fullmatch(key) else None


def name_maker_run(reports: Path, key: str, run: str) -> None:
    """Record the run in which this process makes the baseline with this key."""
    maker = maker_of(reports, key)
    if maker is not None and maker.pid == os.getpid():
        _write_into(_lock_of(reports, key), replace(maker, run=run))


def _lock_of(reports: Path, key: str) -> Path:
    return reports / DIRECTORY / f"{key}.lock"


def _write_into(lock: Path, maker: Holder | None) -> None:
    """Record the maker in its lock. The record only informs a reader: where the disk is full there is none."""
    text = b"" if maker is None else json.dumps(asdict(maker)).encode()
    with contextlib.suppress(OSError):
        descriptor = os.open(lock, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, text, 0)
            os.ftruncate(descriptor, len(text))
        finally:
            os.close(descriptor)


def remove_abandoned(reports: Path) -> dict[str, str | None]:
    """Remove the pointers that killed harnesses left half written.

    Returns by name why removal failed, None if it worked. The writer of a pointer holds the lock of its key, so a
    pointer whose lock is held is left to its owner. A link is not a pointer, and no link is followed.
    """
    cache = reports / DIRECTORY
    if cache.is_symlink() or not cache.is_dir():
        return {}
    done: dict[str, str | None] = {}
    for path in sorted(cache.iterdir()):
        if not _UNFINISHED.fullmatch(path.name) or not _is_plain(path):
            continue
        try:
            lock = FileLock.try_acquire(path.with_suffix(".lock"))
            if lock is None:
                continue
            with lock:
                if _is_plain(path):  # it may have been finished meanwhile
                    path.unlink()
                    done[path.name] = None
        except OSError as error:
            done[path.name] = str(error.strerror)
    return done


def _is_plain(path: Path) -> bool:
    """Return whether it is a plain file of this user; a file of another user is left to its owner."""
    try:
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    except FileNotFoundError:
        return False


def _run_named_in(pointer: Path, reports: Path) -> Path | None:
    """Return the run that a cache entry names; None unless it is the name of a run's directory in ``reports``."""
    try:
        name = pointer.read_text("utf-8")
    except (OSError, ValueError):
        return None
    path = reports / name
    return path if RUN_NAME.fullmatch(name) and "/" not in name and path.is_dir() and not path.is_symlink() else None


def why_incomplete(run_dir: Path) -> str | None:
    """Return why this run cannot serve as a baseline, None if it can: every rank must have trained to the last step."""
    try:
        plan = io.loads(read_plain(run_dir / "plan.json"))
    except (OSError, io.PlanFormatError) as error:
        return f"its plan cannot be read: {error}"
    if plan.faults:
        return "it had faults"
    history = read_history(run_dir / "history")
    done = {event.rank for event in history.select("step.end", attempt="train", step=plan.training.last_step)}
    missing = sorted(set(range(plan.layout.ranks)) - done)
    if missing:
        return (
            f"{rank_set(missing, plan.layout.ranks)} did not reach step {plan.training.last_step}{_what_ended(history)}"
        )
    for fact in history.select("rank.exit", attempt="train"):
        if fact.data.get("code") != 0:
            return f"rank {fact.rank} did not exit with 0 ({fact.source})"
    if history.problems:
        return f"its history is damaged: {history.problems[0]}"
    return None


def _what_ended(history: History) -> str:
    """Return the deadline or the error that ended a run early, if it says so."""
    from chaos.observe.stack_words import EVENT, in_words, stacks_of  # where a baseline failed

    for expired in history.select("deadline.expired"):
        name, seconds = expired.data.get("name"), expired.data.get("seconds")
        taken = history.first(EVENT, attempt=expired.attempt)
        stacks = "" if taken is None else in_words(*stacks_of(taken.data))
        return f": deadline {name} of {seconds} s has expired, {expired.data.get('detail')}{stacks}"
    end = history.last("run.end")
    return f": {end.data['error']}" if end is not None and end.data.get("error") else ""


def _tells_losses(log: Path) -> bool:
    """Return whether a rank's log has lines with losses to compare, readers of other packages included."""
    # Readers are imported when there is a log to read: the job starts sooner.
    from chaos.observe.logs.losses.mean_losses import MARKS
    from chaos.observe.logs.losses.training_line import MARK

    marks, held = [mark.encode() for mark in (MARK, *MARKS)], b""
    with open_plain(log) as file:
        while block := file.read(_BLOCK):
            if any(mark in held + block for mark in marks):
                return True
            held = block[-max(map(len, marks)) :]
    from chaos.observe.logs.losses.other_losses import read_losses
    from chaos.observe.logs.registered import other_readers

    try:
        others = other_readers(timezone.utc)
        return bool(others) and len(read_losses(log, None, others).step) > 0
    except Exception:  # from a reader of another package: the judgement reports it where the log is needed
        return True


def copy_into(baseline: Path, run_dir: Path) -> None:
    """Copy the files that comparisons need into ``run_dir/baseline``, so that the run can be judged anywhere."""
    target = run_dir / "baseline"
    shutil.copytree(baseline / "history", target / "history")
    for log in sorted((baseline / "logs" / "train").glob("worker_*.log")):
        if log.is_file() and not log.is_symlink() and _tells_losses(log):
            (target / "logs" / "train").mkdir(parents=True, exist_ok=True)
            shutil.copy2(log, target / "logs" / "train" / log.name)
    for name in ("plan.json", "run.json"):
        shutil.copy2(baseline / name, target / name)
    write_json(target / "source.json", {"run": baseline.name})
