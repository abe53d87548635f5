"""A helper on a host without files of the harness: a launch's inputs go there first, its outputs come back."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from paramiko import SFTPClient, SSHException

from chaos.base.walking import entries_below, raise_too_deep
from chaos.machine.job.ending import Ended
from chaos.machine.job.protocol import HelperLost, LaunchSpec, PlatformError
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.remote.bundle import BUNDLE, bundle
from chaos.machine.remote.client import HelperClient, Visitors
from chaos.platforms.ssh.connection import Connection, HostUnreachable
from chaos.platforms.ssh.files import (
    PACKAGE,
    File,
    ListedFile,
    closed,
    fetch,
    full_there,
    list_there,
    package_files,
    unpack_there,
)
from chaos.platforms.ssh.mirror import Mirror
from chaos.platforms.ssh.translation import Translation
from chaos.platforms.ssh.transport import ChannelTransport

MARKER = ".chaos-run"
MAX_SCENARIO_BYTES = 64 << 20
"""Bytes of a scenario's directory that are copied to a host, where the job needs a file of it."""


class NoRoom(PlatformError):
    """The run's private directory could not be made or filled on the host; a directory made for it is removed."""


def place_of(directory: str, token: str, node: int) -> str:
    """Return the private directory of a run on a host."""
    return f"{directory.rstrip('/')}/chaos-{token[-16:]}-{node}"


def make_place(connection: Connection, place: str, token: str) -> None:
    """Make the run's private directory there, with its marker and the helper's program. Raises PlatformError, NoRoom.

    A directory that could not be filled is removed again: where the disk is full nothing else could remove it.
    """
    host, made = connection.host, False
    with contextlib.closing(connection.sftp()) as sftp:
        try:
            try:
                sftp.mkdir(place, 0o700)
                made = True
            except OSError:
                if marker_of(connection, place) not in (token, ""):
                    raise PlatformError(f"{host}: {place} was not made by this run; it was left alone") from None
            for name, content in ((MARKER, token.encode()), (BUNDLE, bundle())):
                with sftp.open(f"{place}/{name}", "wb") as file:
                    file.write(content)
        except OSError as error:
            why = f"{error}{full_there(connection)}"
            if made:
                _take_away(sftp, place)
            raise NoRoom(f"{host}: {place} cannot be made: {why}; name another 'directory'") from error


def _take_away(sftp: SFTPClient, place: str) -> None:
    for name in (BUNDLE, MARKER):  # the marker last: by it heal knows what is left
        with contextlib.suppress(OSError):
            sftp.remove(f"{place}/{name}")
    with contextlib.suppress(OSError):
        sftp.rmdir(place)


def marker_of(connection: Connection, place: str) -> str | None:
    """Return the marker's content in a directory there; empty without a marker, None without the directory."""
    with contextlib.closing(connection.sftp()) as sftp:
        try:
            if sftp.normalize(place) and sftp.lstat(place):
                with sftp.open(f"{place}/{MARKER}", "rb") as file:
                    return bytes(file.read(4096)).decode("utf-8", "replace").strip()
        except FileNotFoundError:
            with contextlib.suppress(FileNotFoundError):
                sftp.lstat(place)
                return ""
    return None


def helper_transport(connection: Connection, place: str) -> ChannelTransport:
    """Start the remote helper's program on the host."""
    return ChannelTransport(connection, shlex.join([connection.host.python, "-I", f"{place}/{BUNDLE}"]))


class HostHelper(HelperClient):
    """The remote helper on a host. It translates the harness's paths to the host's."""

    def __init__(
        self,
        connection: Connection,
        node: int,
        run: str,
        visitors: Visitors | None,
        *,
        run_here: Path,
        private_here: Path,
        meeting_here: Path,
        scenario_here: Path,
        owners: dict[Path, str],
        tell: Callable[..., object],
    ) -> None:
        self._tell = tell
        self._connection = connection
        self._host = connection.host
        self._place = place_of(self._host.directory, run, node)
        self._run_here = run_here
        # Its name stays: it identifies a path that a rank records as the run's.
        self._run = f"{self._place}/{run_here.name}"
        self._meeting_here = meeting_here
        self._scenario_here = scenario_here
        self._owners = owners
        self._meeting = f"{self._place}/private/{meeting_here.name}"
        self._translation = Translation(
            {
                str(run_here): self._run,
                str(private_here): f"{self._place}/private",
                str(PACKAGE): f"{self._place}/code/chaos",
                str(PACKAGE.parent): f"{self._place}/code",
                str(scenario_here): f"{self._place}/scenario",
                sys.executable: self._host.python,
                str(Path(sys.executable).parent): str(Path(self._host.python).parent),
            }
        )
        self._mirrors: dict[str, Mirror] = {}
        self._known: dict[str, ListedFile] = {}
        self._shipped = False
        self._listens = False
        make_place(connection, self._place, run)
        self._sftp = connection.sftp()
        super().__init__(helper_transport(connection, self._place), node, run, visitors)

    @property
    def private(self) -> Path:
        """The run's private directory for socket and secret on the host."""
        return Path(f"{self._place}/private")

    def place(self, path: str, files: Mapping[str, str]) -> None:
        """Make a private directory with these files on the host, their paths translated."""
        super().place(path, {name: self._translation.document(name, text) for name, text in files.items()})

    def listen(self, path: str) -> None:
        """Listen for agents on the host; a socket that an earlier remote helper has left is removed."""
        if not self._listens:
            with contextlib.suppress(FileNotFoundError):
                self._sftp.remove(path)
        super().listen(path)
        self._listens = True

    def start(self, spec: LaunchSpec) -> ProcessIdentity:
        """Copy the launch's inputs to the host, and start it."""
        with self._connection_errors():
            self._ship(spec)
            environment = {name: self._translation.text(value) for name, value in spec.environment.items()}
            modules = [self._translation.path_list(spec.before.get("PYTHONPATH", "")), f"{self._place}/code"]
            before = {
                "PATH": str(Path(self._host.python).parent),
                "PYTHONPATH": os.pathsep.join(filter(None, modules)),
            }
            if self._host.devices is not None:
                environment["ASCEND_RT_VISIBLE_DEVICES"] = ",".join(map(str, self._host.devices))
            self._mirrors[spec.attempt] = Mirror(
                self._connection,
                spec.attempt,
                run=self._run,
                run_here=self._run_here,
                meeting=self._meeting,
                meeting_here=self._meeting_here,
                owners=self._owners,
            )
        return super().start(
            replace(
                spec,
                argv=tuple(map(self._translation.text, spec.argv)),
                environment=environment,
                before=before,
                cwd=Path(self._translation.text(str(spec.cwd))),
                log=Path(self._translation.text(str(spec.log))),
                cores=self._host.cores,
            )
        )

    def stop(self, attempt: str, grace_seconds: float) -> Ended:
        """End all processes of an attempt, and fetch its files."""
        ended = super().stop(attempt, grace_seconds)
        self.fetch(attempt)
        return ended

    def catch_up(self) -> None:
        """Fetch the ranks' records so far: later it may be too late."""
        for mirror in self._mirrors.values():
            mirror.catch_up()

    def fetch(self, attempt: str) -> None:
        """Fetch the files of an attempt from the host, and report those that could not be fetched (``host.unfetched``).

        Raises HelperLost where the connection is lost.
        """
        mirror = self._mirrors.pop(attempt, None)
        if mirror is None:
            return
        mirror.finish()
        unfetched = dict(mirror.unfetched)
        if mirror.lost is not None and not self._connection.alive:
            raise HelperLost(f"{self._host}: its files could not be fetched: {mirror.lost}")
        try:
            unfetched |= self._fetch_job()
        except (PlatformError, OSError, EOFError, SSHException) as error:
            if not self._connection.alive:
                raise HelperLost(f"{self._host}: its files could not be fetched: {error}") from error
            unfetched["job"] = str(error) or type(error).__name__
        if unfetched:
            self._tell("host.unfetched", attempt=attempt, files=unfetched)

    def close(self) -> None:
        """Close the remote helper, and the connection."""
        super().close()
        for mirror in self._mirrors.values():
            mirror.finish()
        self._mirrors.clear()
        self._connection.close()

    # Files to the host.

    def _ship(self, spec: LaunchSpec) -> None:
        """Copy the launch's inputs to the host, by one command."""
        made = ["code", *(f"{self._run}/{name}" for name in ("history", f"logs/{spec.attempt}", "job")), self._meeting]
        parts: list[Iterator[File]] = []
        texts = (*spec.argv, *spec.environment.values(), *spec.before.values())
        if not self._shipped:
            parts.append(package_files())
            if any(str(self._scenario_here) in text for text in texts):
                parts.append(self._scenario_files())
        parts.append(self._job_files())
        unpack_there(self._connection, self._place, made, chain.from_iterable(parts))
        self._shipped = True
        self._known = list_there(self._sftp, f"{self._run}/job").files

    def _scenario_files(self) -> Iterator[File]:
        root = self._scenario_here
        files = [path for path in entries_below(root, raise_too_deep) if path.is_file()]
        if sum(path.stat().st_size for path in files) > MAX_SCENARIO_BYTES:
            raise PlatformError(
                f"{root}: has more than {MAX_SCENARIO_BYTES >> 20} MiB, too much to copy to every host: put the "
                "scenario and what its job reads into a directory of their own"
            )
        return ((path, f"scenario/{path.relative_to(root).as_posix()}") for path in files)

    def _job_files(self) -> Iterator[File]:
        """Yield the job's directory, as storage shared by all hosts would show it: with the files of other hosts."""
        root, run = self._run_here / "job", self._run_here.name
        there = list_there(self._sftp, f"{self._run}/job").files
        for path in entries_below(root, raise_too_deep):
            name = path.relative_to(root).as_posix()
            if not path.is_symlink() and (path.is_dir() or there.get(name) != _listed(path)):
                yield path, f"{run}/job/{name}"

    # Files from the host.

    def _fetch_job(self) -> dict[str, str]:
        """Fetch the job's files; return the files that could not be fetched, each with the reason."""
        if closed(self._sftp):
            self._sftp = self._connection.sftp()
        root = self._run_here / "job"
        listing = list_there(self._sftp, f"{self._run}/job")
        unfetched = {f"job/{name}": why for name, why in listing.unlisted.items()}
        for name in sorted(listing.directories):
            (root / name).mkdir(parents=True, exist_ok=True)
        there = listing.files
        for name, entry in there.items():
            if self._known.get(name) != entry:
                try:
                    fetch(self._sftp, f"{self._run}/job/{name}", root / name)
                except OSError as error:
                    if closed(self._sftp):
                        raise
                    unfetched[f"job/{name}"] = str(error) or type(error).__name__
        for name in self._known.keys() - there.keys():
            (root / name).unlink(missing_ok=True)  # the job has removed it
        self._known = there
        return unfetched

    @contextlib.contextmanager
    def _connection_errors(self) -> Iterator[None]:
        try:
            yield
        except HostUnreachable as error:
            raise HelperLost(str(error)) from error
        except (OSError, EOFError) as error:
            if not self._connection.alive:
                raise HelperLost(f"{self._host}: the connection was lost: {error}") from error
            raise PlatformError(f"{self._host}: {error}") from error


def _listed(path: Path) -> ListedFile:
    status = path.stat()
    return ListedFile(status.st_size, int(status.st_mtime))
