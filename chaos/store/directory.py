"""The directories of runs: their names, their identity, ``latest``, and a private directory outside them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.file_lock import FileLock
from chaos.base.plain_files import read_plain
from chaos.base.wait import wait_for
from chaos.history.jsonl import decode
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.seal import Seal
from chaos.store.host import HOST, this_host
from chaos.store.key import seal_of
from chaos.store.ownership import RunLock

MARKER = ".chaos-run"
CREATION_LOCK = ".lock"
RUN_FILE = "run.json"
LEDGER_FILE = "undo.jsonl"
DIRECTORY = "directory"
INODE = "inode"
DEVICE = "device"
OWNER = "owner"
"""Keys of run.json: where the run was made, and the owner of its directory.

A directory elsewhere with the same run.json is a copy of it, or was moved.
"""
ADOPTED = "adopted"
"""Key of run.json in a run with an attached job: the job was not started here, and is never ended here."""
INJECTED_FILE = "injection.json"
"""The outcome of the fault of such a run."""
_MAX_PRIVATE = 90
"""Bytes of the private directory's path that leave room for the name of a socket in it."""
MEMORY = Path("/dev/shm")
"""The place of directories in memory: Linux has a file system without a disk there."""
RUN_NAME = re.compile(r".+-\d{8}-\d{6}-[0-9a-f]{4}")
_UNFINISHED = re.compile(r"^\..+\.[0-9a-f]{8}\.new$")


class RunDirectoryError(RuntimeError):
    """A run's directory cannot be made or read."""


@dataclass(frozen=True)
class RunDirectory:
    """A run's directory, owned by this process while ``lock`` is held.

    ``token`` is the run's identity, the value of CHAOS_RUN in all its processes: unlike ``run``, the directory's name,
    it never repeats, so the processes of copies of a directory can be told apart. Knowing the token gives no power:
    everything that heal acts on is proved with ``seal``.
    """

    path: Path
    run: str
    token: str
    lock: FileLock
    seal: Seal

    @property
    def ledger(self) -> Ledger:
        """The run's undo ledger."""
        return Ledger(self.path / LEDGER_FILE, self.seal)


def create_run(
    reports: Path,
    scenario: str,
    cell: str = "",
    *,
    clock: Clock = SYSTEM_CLOCK,
    random_hex: Callable[[int], str] = secrets.token_hex,
) -> RunDirectory:
    """Make ``reports/<scenario>[-<cell>]-<date>-<time>-<4 hex>/`` with its run.json and own it.

    Creation is serialised with ``heal`` by a lock on ``reports``, so a directory is never seen unowned and unfinished.
    Raises RunDirectoryError, KeyUnusable without a key for its proof, and DeadlineExpired if the lock cannot be had.
    """
    try:
        reports.mkdir(private_mode(), parents=True, exist_ok=True)
        with creation_lock(reports, clock=clock):
            run = f"{_stem(scenario, cell)}-{_local(clock.wall()):%Y%m%d-%H%M%S}-{random_hex(2)}"
            path, token = reports / run, f"{run}-{random_hex(8)}"
            seal = seal_of(token)
            path.mkdir(private_mode())
            owned = RunDirectory(path, run, token, RunLock.acquire(path, clock=clock), seal)
            try:
                created, there = _local(clock.wall()).isoformat(), path.stat()
                made: dict[str, Any] = {"run": run, "token": owned.token, "created": created, HOST: this_host()}
                made |= {DIRECTORY: str(path.resolve()), INODE: there.st_ino, DEVICE: there.st_dev, OWNER: there.st_uid}
                write_json(path / RUN_FILE, owned.seal.document(made))
                (path / "history").mkdir()
            except BaseException:
                owned.lock.release()
                shutil.rmtree(path, ignore_errors=True)
                raise
    except OSError as error:
        raise RunDirectoryError(f"a run's directory cannot be made in {reports}: {error}") from error
    return owned


def private_mode() -> int:
    """Return the mode of a directory for runs: for its owner alone, unless the umask admits the group and not others.

    A umask of 027 or 007 says that the group may read the user's files; a umask of 022 or 002 says nothing of the kind.
    """
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o770 if mask & 0o007 == 0o007 and mask & 0o070 != 0o070 else 0o700


def creation_lock(reports: Path, *, clock: Clock = SYSTEM_CLOCK) -> FileLock:
    """Lock the making of directories in ``reports``; it is only ever held for a moment."""
    path = reports / CREATION_LOCK
    return wait_for(f"lock of {reports}", lambda: FileLock.try_acquire(path), seconds=30, clock=clock)


def update_run(run_dir: Path, **values: Any) -> None:
    """Add values to run.json, or replace them, atomically. The keys that identify the run stay. One process at a time.

    Raises RunDirectoryError where somebody else has changed the file: the change must not get a proof.
    """
    if kept := {"run", "token", DIRECTORY, INODE, DEVICE, OWNER} & values.keys():
        raise ValueError(f"{', '.join(sorted(kept))} of a run cannot be changed")
    known = read_run(run_dir)
    seal = seal_of(known["token"])
    if not seal.proves_document(known):
        raise RunDirectoryError(
            f"{run_dir / RUN_FILE}: has no proof of this user's key: it was changed by another user or program"
        )
    write_json(run_dir / RUN_FILE, seal.document({**known, **values}))


def read_run(run_dir: Path) -> dict[str, Any]:
    """Return the content of run.json. Raises RunDirectoryError unless it names the run and its token."""
    path = run_dir / RUN_FILE
    try:
        record = decode(read_plain(path))
    except OSError as error:
        raise RunDirectoryError(str(error)) from error
    except ValueError as error:
        raise RunDirectoryError(f"{path}: is not JSON of a run: {error}") from error
    match record:
        case {"run": str(), "token": str(token)} if token:
            return dict(record)
        case _:
            raise RunDirectoryError(f"{path}: does not name the run and its token")


def point_latest(reports: Path, run: str) -> None:
    """Make ``reports/latest`` a link to the run, in one step: it never dangles and is never missing meanwhile."""
    target = reports / "latest"
    unfinished = _unfinished(target)
    unfinished.symlink_to(run)
    try:
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink()
        raise RunDirectoryError(f"{target}: cannot be replaced by a link: {error.strerror}") from error


def write_json(path: Path, value: object) -> None:
    """Replace ``path`` in one step: a reader sees the old content or the new one, also after a SIGKILL."""
    unfinished = _unfinished(path)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o660)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(value, indent=2, allow_nan=False) + "\n")
        unfinished.replace(path)
    except (Exception, KeyboardInterrupt):
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def unfinished_files(directory: Path) -> list[Path]:
    """Return the files that a killed ``write_json`` or ``point_latest`` has left in ``directory``."""
    return [path for path in sorted(directory.iterdir()) if _UNFINISHED.match(path.name)]


def make_private_directory(
    ledger: Ledger, token: str, *, parent: Path | None = None, step: str = "private-directory"
) -> Path:
    """Make a directory for this user alone outside ``reports``, for sockets and the like, and return it.

    Its undo step ("remove-directory", id ``step``) is on disk before it is made. Paths of sockets are
    limited to 107 bytes, so its name is short, and it is made in /tmp where TMPDIR is too long for that.
    """
    path = (parent or Path(tempfile.gettempdir())) / private_name(token)
    if parent is None and len(os.fsencode(path)) > _MAX_PRIVATE:
        path = Path("/tmp", path.name)
    note = "remove the run's private directory"
    ledger.record(UndoStep(step, None, "remove-directory", {"path": str(path)}, note))
    path.mkdir(mode=0o700)
    (path / MARKER).write_text(token, "utf-8")
    return path


def private_directories(token: str) -> list[Path]:
    """Return the private directories of a run; empty where it has none."""
    parents = dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp"), MEMORY))
    return [parent / private_name(token) for parent in parents]


def private_name(token: str) -> str:
    """Return the name of a run's private directories."""
    return f"chaos-{token[-16:]}"


def _stem(scenario: str, cell: str) -> str:
    named = f"{scenario}-{cell}" if cell else scenario
    return re.sub(r"[^A-Za-z0-9_.]+", "-", named).strip(".-")[:100] or "run"


def _local(wall: int) -> datetime:
    return datetime.fromtimestamp(wall // 1_000_000_000).astimezone()


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
