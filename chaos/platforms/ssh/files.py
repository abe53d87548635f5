"""Files of a run to a host and back, by sftp, below the run's private directory there.

Files from a host are not trusted: plain files only, below their directory, whatever their names.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import paramiko

from chaos.base.walking import MAX_LEVELS
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.ssh.connection import Connection

PACKAGE = Path(__file__).parents[2]
"""The package ``chaos``."""

_SHIPPED = frozenset({".py", ".json", ".yaml", ".j2"})
_PREPARE = """
import os, sys, tarfile
os.umask(0o077)
os.chdir(sys.argv[1])
for path in sys.argv[2:]:
    os.makedirs(path, exist_ok=True)
with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
    archive.extractall(".")
"""
PREPARE_SECONDS = 300.0
"""How long the host may take no bytes, or give no answer."""
_BLOCK = 1 << 18
_MOST_SAID = 1 << 16


@dataclass(frozen=True)
class ListedFile:
    """A file as a listing shows it: its bytes, and the time of its last change in seconds."""

    size: int
    changed: int


File = tuple[Path, str]
"""A file or directory here, and its name below the run's directory on the host."""


def package_files() -> Iterator[File]:
    """Yield the files of the package ``chaos``, for the modules that the ranks load."""
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in _SHIPPED and path.is_file():
            yield path, str(PurePosixPath("code", "chaos", *path.relative_to(PACKAGE).parts))


def unpack_there(connection: Connection, place: str, made: Iterable[str], files: Iterable[File]) -> None:
    """Make directories below ``place``, and put the files there. Raises PlatformError."""
    command = shlex.join([connection.host.python, "-I", "-c", _PREPARE, place, *made])
    with contextlib.closing(connection.open_channel(command)) as channel:
        channel.settimeout(PREPARE_SECONDS)
        why = ""
        try:
            try:
                for block in _archive(files):
                    channel.sendall(block)
                channel.shutdown_write()
            except OSError as error:
                why = str(error)  # it has ended before it had read everything: the reason is in its output
                if not connection.alive:
                    raise
            while channel.recv(_BLOCK):
                pass  # the output of a login's own files
            code = channel.recv_exit_status()
            if code != 0:
                errors = channel.recv_stderr(_MOST_SAID).decode("utf-8", "replace").strip()
                why = errors.rpartition("\n")[2] or why or f"exit code {code}"
        except (OSError, paramiko.SSHException, EOFError) as error:
            code, why = -1, str(error) or type(error).__name__
    if code != 0:
        raise PlatformError(f"{connection.host}: files could not be put into {place}: {why}{full_there(connection)}")


def full_there(connection: Connection) -> str:
    """Return the addition to an error of a host whose disk is full; empty where it is not, or does not say."""
    directory = connection.host.directory
    try:
        code, output = connection.run(shlex.join(["df", "-P", "-k", "--", directory]))
        available = int(output.strip().rpartition("\n")[2].split()[3]) if code == 0 else None
    except (PlatformError, ValueError, IndexError):
        return ""
    return f"; its disk is full below {directory}" if available == 0 else ""


def _archive(files: Iterable[File]) -> Iterator[bytes]:
    """Yield a tar file, piece by piece."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w|") as archive:
        for path, name in files:
            _add(archive, path, name)
            if buffer.tell() > _BLOCK:
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
    yield buffer.getvalue()


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    info = archive.gettarinfo(str(path), name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if info.isreg():
        with path.open("rb") as file:
            archive.addfile(info, file)
    elif info.isdir():
        info.mode |= stat.S_IRWXU
        archive.addfile(info)


def closed(sftp: paramiko.SFTPClient) -> bool:
    """Return whether the channel for files has ended, whatever the connection does."""
    channel = sftp.get_channel()
    return channel is None or channel.closed


@dataclass(frozen=True)
class Listing:
    """The files below a directory of a host, by paths from it. ``unlisted`` has the reason for each part left out."""

    files: dict[str, ListedFile] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    unlisted: dict[str, str] = field(default_factory=dict)


def list_there(sftp: paramiko.SFTPClient, root: str) -> Listing:
    """Return the plain files and the directories below ``root``, without links. Of a deep tree the top is listed."""
    listing = Listing()
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            entries = sftp.listdir_attr(f"{root}/{inside}" if inside else root)
        except FileNotFoundError:
            continue
        for entry in entries:
            name = f"{inside}/{entry.filename}" if inside else entry.filename
            if not is_plain(entry.filename) or entry.st_mode is None:
                continue
            if stat.S_ISDIR(entry.st_mode):
                if name.count("/") == MAX_LEVELS:
                    top = name.partition("/")[0]
                    listing.unlisted[top] = f"it has more than {MAX_LEVELS} levels of directories below"
                    continue
                listing.directories.add(name)
                waiting.append(name)
            elif stat.S_ISREG(entry.st_mode):
                listing.files[name] = ListedFile(entry.st_size or 0, int(entry.st_mtime or 0))
    return listing


def is_plain(name: str) -> bool:
    """Return whether the name is an entry of its directory, and leads nowhere else."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def fetch(sftp: paramiko.SFTPClient, there: str, here: Path) -> None:
    """Fetch a file, in one piece for other readers. Raises OSError."""
    here.parent.mkdir(parents=True, exist_ok=True)
    unfinished = here.with_name(f".{here.name}.fetched")
    try:
        sftp.get(there, str(unfinished))
        changed = int(sftp.stat(there).st_mtime or 0)
        os.utime(unfinished, (changed, changed))
        unfinished.replace(here)
    finally:
        unfinished.unlink(missing_ok=True)


def put(sftp: paramiko.SFTPClient, here: Path, there: str, unfinished: str) -> None:
    """Put a file, in one piece for other readers; ``unfinished`` is a name beside it meanwhile. Raises OSError."""
    sftp.put(str(here), unfinished, confirm=False)
    sftp.posix_rename(unfinished, there)
