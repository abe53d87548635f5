"""Mirroring while a job runs: a host's growing files have copies here, and all hosts share the ranks' meeting place.

The harness reads the history and logs of a run in its own directory. On a host they grow elsewhere, so each growing
file has a copy here that follows it. The ranks of several hosts find each other by files in one directory; without a
shared file system the harness carries these files from host to host.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko

from chaos.base.walking import entries_below
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.ssh.connection import Connection
from chaos.platforms.ssh.files import ListedFile, Listing, closed, fetch, list_there, put

_LOOK_SECONDS = 0.03
_LOGS_EVERY = 8
_LEAST = 1 << 12
_MOST = 1 << 18

_HISTORY, _LOGS, _MEETING = "history", "logs", "meeting"

_LOST = (OSError, EOFError, paramiko.SSHException)

_log = logging.getLogger(__name__)


class Followed:
    """The copy of one growing file. NUL bytes at its end are the part of a mapped file that is not written yet."""

    def __init__(self, here: Path) -> None:
        self._here = here
        self._handle: paramiko.SFTPFile | None = None
        self._offset = 0
        self._piece = _LEAST

    def catch_up(self, sftp: paramiko.SFTPClient, there: str) -> None:
        """Copy the bytes written since. Raises OSError."""
        if self._handle is None:
            self._handle = sftp.open(there, "rb")
        while True:
            self._handle.seek(self._offset)
            data = self._handle.read(self._piece)
            written = data.rstrip(b"\0")
            if written:
                self._here.parent.mkdir(parents=True, exist_ok=True)
                with self._here.open("ab") as copy:
                    copy.write(written)
                self._offset += len(written)
            if len(written) < self._piece:
                self._piece = _LEAST
                return
            self._piece = min(self._piece * 4, _MOST)

    def again(self) -> None:
        """Start again: another file has taken its name, and is copied from its beginning."""
        self.let_go()
        self._offset = 0
        self._here.unlink(missing_ok=True)

    def let_go(self) -> None:
        """Close the file on the host: the next look opens it again, and goes on at the same place."""
        if self._handle is not None:
            with contextlib.suppress(*_LOST):
                self._handle.close()
        self._handle = None

    @property
    def copied(self) -> int:
        """Bytes of the file that are copied."""
        return self._offset


class Mirror:
    """Follows one host during one attempt, in a thread of its own, until :meth:`finish` or the loss of the connection.

    After an error with a file, or with only the channel for files, the copy is tried again at the next look and nothing
    ends. ``run_here`` and ``meeting_here`` are copies of the host's directories ``run`` and ``meeting``. ``owners``
    maps each log here to its host, for all mirrors of the run: a second log of the same name is not copied, so that no
    log silently replaces another.
    """

    def __init__(
        self,
        connection: Connection,
        attempt: str,
        *,
        run: str,
        run_here: Path,
        meeting: str,
        meeting_here: Path,
        owners: dict[Path, str],
    ) -> None:
        self._connection = connection
        self._sftp = connection.sftp()
        self._attempt = attempt
        self._run = run
        self._run_here = run_here
        self._meeting = meeting
        self._meeting_here = meeting_here
        self._owners = owners
        self._histories: dict[str, Followed] = {}
        self._logs: dict[str, Followed] = {}
        self._met: dict[str, ListedFile] = {}
        self._brought: dict[str, tuple[int, int]] = {}
        self._directories: set[str] = set()
        self._stop = threading.Event()
        # A client of sftp belongs to one thread at a time: another thread would take its answers.
        self._turn = threading.Lock()
        self._wrong: dict[str, dict[str, str]] = {}
        self.lost: str | None = None
        self._thread = threading.Thread(target=self._follow, name=f"mirror-{connection.host.name}", daemon=True)
        self._thread.start()

    def catch_up(self) -> None:
        """Copy the present history now."""
        with self._turn:
            self._look(_HISTORY, self._look_at_history)

    @property
    def unfetched(self) -> dict[str, str]:
        """The files and directories that could not be copied at the last look, each with the reason."""
        return {name: why for wrong in self._wrong.values() for name, why in wrong.items()}

    def finish(self) -> None:
        """End, after copying the last of everything here. Where the connection was lost, the earlier copies remain."""
        self._stop.set()
        self._thread.join()
        self._look(_HISTORY, self._look_at_history)
        self._look(_LOGS, self._fetch_logs)
        with contextlib.suppress(*_LOST):
            self._sftp.close()

    def _follow(self) -> None:
        looks = 0
        while not self._stop.wait(_LOOK_SECONDS) and self.lost is None:
            with self._turn:
                self._look(_HISTORY, self._look_at_history)
                self._look(_MEETING, self._exchange)
                if looks % _LOGS_EVERY == 0:
                    self._look(_LOGS, self._look_at_logs)
            looks += 1

    def _look(self, at: str, look: Callable[[], None]) -> None:
        """Look at one part of the host's files, anew: its earlier errors are forgotten."""
        if self.lost is not None:
            return
        self._wrong[at] = {}
        try:
            if closed(self._sftp):
                self._open_again()
            look()
        except (PlatformError, *_LOST) as error:
            why = str(error) or type(error).__name__
            self._wrong[at][at] = why
            if not self._connection.alive or isinstance(error, PlatformError):
                self.lost = why
                _log.debug("the mirror ends: %s", why)

    def _open_again(self) -> None:
        self._sftp = self._connection.sftp()
        for followed in (*self._histories.values(), *self._logs.values()):
            followed.let_go()

    @contextlib.contextmanager
    def _errors_of_file(self, at: str, name: str) -> Iterator[None]:
        """Keep an error with one file from stopping the other copies. A missing file was renamed."""
        try:
            yield
        except FileNotFoundError:
            return
        except OSError as error:
            if closed(self._sftp):
                raise
            self._wrong[at][f"{at}/{name}"] = str(error) or type(error).__name__

    def _listing(self, at: str, root: str) -> Listing:
        listing = list_there(self._sftp, root)
        self._wrong[at] |= {f"{at}/{name}": why for name, why in listing.unlisted.items()}
        return listing

    def _look_at_history(self) -> None:
        for name in sorted(self._sftp.listdir(f"{self._run}/history")):
            if name.startswith(f"{self._attempt}-") and name.endswith(".jsonl") and "/" not in name:
                followed = self._histories.setdefault(name, Followed(self._run_here / "history" / name))
                with self._errors_of_file(_HISTORY, name):
                    followed.catch_up(self._sftp, f"{self._run}/history/{name}")

    def _look_at_logs(self) -> None:
        inside = f"logs/{self._attempt}"
        listing = self._listing(_LOGS, f"{self._run}/{inside}")
        for name, entry in listing.files.items():
            with self._errors_of_file(_LOGS, name):
                followed = self._logs.setdefault(name, Followed(self._own(self._run_here / inside / name)))
                if entry.size < followed.copied:
                    followed.again()
                if entry.size > followed.copied:
                    followed.catch_up(self._sftp, f"{self._run}/{inside}/{name}")

    def _fetch_logs(self) -> None:
        """Copy the final logs: a log that was renamed meanwhile has been followed under two names."""
        inside = f"logs/{self._attempt}"
        files = self._listing(_LOGS, f"{self._run}/{inside}").files
        for name in files:
            with self._errors_of_file(_LOGS, name):
                fetch(self._sftp, f"{self._run}/{inside}/{name}", self._own(self._run_here / inside / name))
        for name in self._logs.keys() - files.keys():
            (self._run_here / inside / name).unlink(missing_ok=True)

    def _own(self, log: Path) -> Path:
        """Return the copy of a log of this host. Raises OSError where a log of another host has its name."""
        host = self._connection.host.name
        owner = self._owners.setdefault(log, host)
        if owner != host:
            raise OSError(f"host {owner} has a log of the same name, and that is the one that is here")
        return log

    # The ranks' meeting place: this host's files come here, other hosts' files go there.

    def _exchange(self) -> None:
        listing = self._listing(_MEETING, self._meeting)
        self._directories |= listing.directories
        for name in listing.directories:
            (self._meeting_here / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, entry in listing.files.items():
            if self._met.get(name) != entry:
                self._bring(name, entry)
        self._take()

    def _bring(self, name: str, entry: ListedFile) -> None:
        here = self._meeting_here / name
        with self._errors_of_file(_MEETING, name):
            fetch(self._sftp, f"{self._meeting}/{name}", here)
            self._met[name] = entry
            self._brought[name] = _version(here)

    def _take(self) -> None:
        for here in entries_below(self._meeting_here, self._unseen):
            name = here.relative_to(self._meeting_here).as_posix()
            if here.is_dir():
                if name not in self._directories:
                    with contextlib.suppress(OSError):  # made there meanwhile
                        self._sftp.mkdir(f"{self._meeting}/{name}", 0o700)
                    self._directories.add(name)
            elif not here.name.startswith("."):
                with self._errors_of_file(_MEETING, name):
                    self._take_file(here, name)

    def _unseen(self, error: OSError) -> None:
        self._wrong[_MEETING][_MEETING] = str(error)

    def _take_file(self, here: Path, name: str) -> None:
        version = _version(here)
        if self._brought.get(name) == version:
            return
        there = f"{self._meeting}/{name}"
        # Outside of the directory: a reader of the directory must not take it for a file of another rank.
        put(self._sftp, here, there, f"{self._meeting}.unfinished")
        status = self._sftp.stat(there)
        self._met[name] = ListedFile(status.st_size or 0, int(status.st_mtime or 0))
        self._brought[name] = version


def _version(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns
