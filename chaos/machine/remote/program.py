"""The program on a node. It carries out the harness's requests over standard input and output, and nothing by itself.

It is the subreaper of the launchers that it starts, so it knows how ranks ended; it signals processes of its run only,
by process descriptors. It never listens on a network. When the harness has gone it ends; the job lives on, as after a
killed harness, until ``chaos heal`` starts another helper.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK, boot_id
from chaos.base.walking import entries_below, raise_too_deep
from chaos.machine.job.ending import Ended, end_processes
from chaos.machine.job.local import LocalJob, LocalPlatform
from chaos.machine.job.processes import RUN_VARIABLE, find_run_processes
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.linux.children import subreaper
from chaos.machine.linux.process import ProcessIdentity, has_ended, send_signal, state
from chaos.machine.linux.procfs import environment, lines_of, read_signals
from chaos.machine.remote.listening import Listening
from chaos.machine.remote.network import NetworkRequests
from chaos.machine.remote.packages import PackageRequests
from chaos.machine.remote.processes_in_directory import standing_in
from chaos.machine.remote.tools import ToolRequests
from chaos.machine.remote.wire import PROTOCOL, Writer, messages

MARKER = ".chaos-run"
_READ = 1 << 16
_PIECE = 1 << 20


class Refused(ValueError):
    """The request cannot be met; nothing was done."""


class RemoteHelper(NetworkRequests, PackageRequests, ToolRequests):
    """The remote helper's actions, by the name of the request. Arguments and results are JSON."""

    def __init__(self, run: str, tell: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(run)
        self._run = run
        self._tell = tell
        self._platform = LocalPlatform()
        self._jobs: dict[str, LocalJob] = {}
        self._listening: Listening | None = None
        self._roots: list[Path] = []
        self._mounts = _mounts()

    # The run's places on this node.

    def place(self, path: str, files: dict[str, str]) -> None:
        """Make a private directory with these files, or replace the files of a directory that this run has made."""
        place = Path(path)
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            if self._marker(place) != self._run:
                raise Refused(f"{place} was not made by this run; it was left alone") from None
        for name, text in {MARKER: self._run, **files}.items():
            if Path(name).name != name:
                raise Refused(f"{name!r} is no name of a file")
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(place / name, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(text)

    def remove(self, path: str) -> bool:
        """Remove a private directory that this run has made here; return False when there is none."""
        place = Path(path)
        try:
            status = place.lstat()
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or self._marker(place) != self._run:
            raise Refused(f"{place} was not made by this run; it was left alone")
        shutil.rmtree(place)
        return True

    def open_roots(self, paths: list[str]) -> None:
        """Allow files below these directories, and no others, to be listed and read."""
        self._roots = [Path(path).resolve() for path in paths]

    def files(self, path: str) -> list[dict[str, Any]]:
        """Return all plain files below a directory, with size (bytes) and time of change (ns), or raise an error."""
        root = self._inside(path)
        below = entries_below(root, raise_too_deep)
        files = [
            (candidate, candidate.lstat()) for candidate in below if candidate.is_file() and not candidate.is_symlink()
        ]
        return [{"path": str(file), "size": of.st_size, "changed": of.st_mtime_ns} for file, of in files]

    def read(self, path: str, offset: int, size: int) -> str:
        """Return a piece of a file in base64, at most 1 MiB; shorter at its end."""
        descriptor = os.open(self._inside(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return base64.b64encode(os.pread(descriptor, min(size, _PIECE), offset)).decode("ascii")
        finally:
            os.close(descriptor)

    # Agents.

    def listen(self, path: str) -> None:
        """Listen for this node's agents on a Unix socket in a private directory of the run."""
        if self._marker(Path(path).parent) != self._run:
            raise Refused(f"{path} is in no private directory of this run")
        if self._listening is None:
            with contextlib.suppress(FileNotFoundError):
                Path(path).unlink()  # left by a remote helper of this node that was ended
            self._listening = Listening(path, self._tell)

    def answer(self, caller: int, line: str) -> None:
        """Answer an agent."""
        if self._listening is not None:
            self._listening.answer(caller, line)

    def hang_up(self, caller: int) -> None:
        """End an agent's connection."""
        if self._listening is not None:
            self._listening.end(caller)

    # Jobs.

    def start(
        self,
        attempt: str,
        argv: list[str],
        environment: dict[str, str],
        before: dict[str, str],
        cwd: str,
        log: str,
        cores: list[int] | None,
    ) -> dict[str, Any]:
        """Start this node's launcher of an attempt, and return its identity."""
        if attempt in self._jobs:
            raise Refused(f"attempt {attempt} was started before")
        pinned = None if cores is None else tuple(cores)
        spec = LaunchSpec(self._run, attempt, tuple(argv), environment, Path(cwd), Path(log), pinned, None, before)
        self._jobs[attempt] = self._platform.start(spec)
        return asdict(self._jobs[attempt].launcher)

    def processes(self, attempt: str) -> list[dict[str, Any]]:
        """Return the living processes of an attempt."""
        return [asdict(process) for process in self._job(attempt).processes()]

    def state(self, identity: dict[str, Any]) -> str:
        """Return whether a process runs, is stopped, is a zombie, or is gone."""
        return state(_identity(identity))

    def exit_statuses(self, attempt: str, identities: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """Return how processes of an attempt ended, in their order; None for one that runs."""
        statuses = [self._job(attempt).exit_status(_identity(identity)) for identity in identities]
        return [None if status is None else asdict(status) for status in statuses]

    def signal(self, attempt: str, identity: dict[str, Any], signum: int) -> None:
        """Send a signal to a process of an attempt."""
        self._job(attempt).signal(_identity(identity), signum)

    def signals(self, identity: dict[str, Any]) -> dict[str, list[int]] | None:
        """Return a process's handling of signals, and the signals that it has not taken yet; None when it has ended."""
        who = _identity(identity)
        signals = None if has_ended(state(who)) else read_signals(who.pid)
        if signals is None or has_ended(state(who)):
            return None
        return {
            "caught": sorted(signals.caught),
            "ignored": sorted(signals.ignored),
            "pending": sorted(signals.pending),
        }

    def stop(self, attempt: str, grace_seconds: float) -> dict[str, Any]:
        """End all processes of an attempt."""
        return _ended(self._job(attempt).stop(grace_seconds))

    # Restoring, after the process that has started the job has gone.

    def find(self) -> list[dict[str, Any]]:
        """Return every living process of the run here."""
        return [asdict(process) for process in find_run_processes(self._run)]

    def resume(self, identity: dict[str, Any]) -> None:
        """Continue a stopped process of the run, whichever process has started it."""
        who = _identity(identity)
        if has_ended(state(who)):
            return
        if (environment(who.pid) or {}).get(RUN_VARIABLE) != self._run:
            raise Refused(f"{who} does not carry this run's {RUN_VARIABLE}; nothing was sent")
        send_signal(who, signal.SIGCONT)

    def end_run(self) -> dict[str, Any]:
        """End every process of the run here with SIGKILL."""
        return _ended(end_processes(lambda: find_run_processes(self._run), grace_seconds=0, clock=SYSTEM_CLOCK))

    def leftovers(self, directories: list[str]) -> dict[str, list[str]]:
        """Return the run's leftovers here: its processes, and mounts below these directories made meanwhile."""
        roots = tuple(f"{path.rstrip('/')}/" for path in directories)
        mounts = sorted(mount for mount in _mounts() - self._mounts if f"{mount}/".startswith(roots))
        processes = [f"{process.pid} ({' '.join(process.cmdline)})" for process in find_run_processes(self._run)]
        return {"processes": processes, "mounts": mounts}

    def standing(self, place: str) -> list[str]:
        """Return processes that have their place below a directory of the run, whatever they carry, in words."""
        return list(standing_in(place))

    def clock(self) -> dict[str, Any]:
        """Return this node's clocks, and the boot that they belong to."""
        return {"mono": SYSTEM_CLOCK.mono(), "wall": SYSTEM_CLOCK.wall(), "boot": boot_id()}

    def close(self) -> None:
        """Lift the rules that this helper has laid, and stop listening."""
        super().close()
        if self._listening is not None:
            self._listening.close()

    def _job(self, attempt: str) -> LocalJob:
        if attempt not in self._jobs:
            raise Refused(f"attempt {attempt} was not started by this helper")
        return self._jobs[attempt]

    def _inside(self, path: str) -> Path:
        resolved = Path(path).resolve()
        if not any(root == resolved or root in resolved.parents for root in self._roots):
            raise Refused(f"{path} is not below a directory of this run")
        return resolved

    @staticmethod
    def _marker(place: Path) -> str:
        try:
            descriptor = os.open(place / MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return ""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(4096).decode("utf-8", "replace").strip()


def _mounts(mountinfo: Path = Path("/proc/self/mountinfo")) -> set[str]:
    """Return the mount points that this process sees (proc(5), mountinfo)."""
    points = [fields[4] for line in lines_of(mountinfo) if len(fields := line.split(" ")) > 4]
    return {re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point) for point in points}


REQUESTS = frozenset(name for name in dir(RemoteHelper) if not name.startswith("_")) - {"close"}
_SLOW = frozenset({"stop", "end_run", "look", "echo", "attempt", "lacking", "tool"})
"""These requests may take many seconds; others are answered meanwhile."""


def _identity(values: dict[str, Any]) -> ProcessIdentity:
    return ProcessIdentity(int(values["pid"]), int(values["start_time"]), str(values["boot"]))


def _ended(result: Ended) -> dict[str, Any]:
    return {
        "ended": [asdict(process) for process in result.ended],
        "remaining": [[asdict(process), reason] for process, reason in result.remaining],
    }


def _network() -> str:
    """Return the network of this machine that the helper is on; empty where the kernel does not say."""
    try:
        return str(Path("/proc/self/ns/net").readlink())
    except OSError:
        return ""


def serve(read: Callable[[], bytes], write: Callable[[bytes], None]) -> None:
    """Serve one harness until it has gone.

    The first request names the run; a second request for another run is refused.
    """
    writer = Writer(write)
    helper: RemoteHelper | None = None

    def tell(message: dict[str, Any]) -> None:
        try:
            writer.send(message)
        except OSError:  # the harness has gone, which ends the reading too
            return

    tell(
        {
            "hello": PROTOCOL,
            "pid": os.getpid(),
            "uid": os.geteuid(),
            "host": socket.gethostname(),
            "boot": boot_id(),
            "network": _network(),
            "python": ".".join(map(str, sys.version_info[:3])),
        }
    )
    try:
        for message in messages(read):
            number, name, arguments = message.get("number"), message.get("request"), message.get("arguments")
            if name == "begin" and isinstance(arguments, dict) and arguments.get("run") and helper is None:
                helper = RemoteHelper(str(arguments["run"]), tell)
                tell({"answer": number, "result": None})
            elif helper is None or name not in REQUESTS or not isinstance(arguments, dict):
                tell({"answer": number, "error": "Refused", "text": f"there is no request {name!r} here, or no run"})
            elif name in _SLOW:
                threading.Thread(target=_act, args=(helper, number, name, arguments, tell), daemon=True).start()
            else:
                _act(helper, number, name, arguments, tell)
    finally:
        if helper is not None:
            helper.close()


def _act(
    helper: RemoteHelper, number: Any, name: str, arguments: dict[str, Any], tell: Callable[[dict[str, Any]], None]
) -> None:
    try:
        result = getattr(helper, name)(**arguments)
    except Exception as error:  # every request is answered, whatever it came to
        tell({"answer": number, "error": type(error).__name__, "text": str(error)})
    else:
        tell({"answer": number, "result": result})


def main() -> None:
    """Serve over standard input and output; other output goes to standard error."""
    source, target = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    os.close(empty)

    def write(line: bytes) -> None:
        while line:
            line = line[os.write(target, line) :]

    # Ctrl-C on the harness's terminal is for the harness to handle. Not SIG_IGN, which ranks would inherit.
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    with subreaper():
        serve(lambda: os.read(source, _READ), write)


if __name__ == "__main__":
    main()
