"""The first process of a host made of namespaces: its mounts, its network, its sshd, and its reboot.

``python ssh_host.py host.json``. On SIGUSR1 it ends everything on the host, takes another boot ID and starts sshd
again; on SIGUSR2 it starts sshd anew, with all of its connections ended, and nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

_TAKEN = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGTERM}
_STARTED: list[subprocess.Popen[bytes]] = []
_BOOT = "/proc/sys/kernel/random/boot_id"


def main(settings: dict[str, Any]) -> None:
    place = Path(settings["place"])
    signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
    _run("mount", "--make-rprivate", "/")
    if settings["namespaces"]:
        _run("mount", "-t", "proc", "proc", "/proc")
        _run("hostname", settings["name"])
        _boot(place)
        _run("mount", "--bind", str(place / "boot_id"), _BOOT)
        _network(settings["address"])
        _run("mount", "--bind", str(place / "sbin"), "/usr/local/sbin")
    if os.geteuid() == 0:
        # What sshd wants of a system that it is installed on: its directory, and its user.
        _run("mount", "-t", "tmpfs", "tmpfs", "/run")
        Path("/run/sshd").mkdir()
        users = Path("/etc/passwd").read_text()
        if "\nsshd:" not in users:
            (place / "passwd").write_text(f"{users.rstrip()}\nsshd:x:65534:65534::/run/sshd:/usr/sbin/nologin\n")
            _run("mount", "--bind", str(place / "passwd"), "/etc/passwd")
    _sshd(settings)
    (place / "ready").write_text("yes")
    while True:
        got = signal.sigwait(_TAKEN)
        if got == signal.SIGTERM:
            for sshd in _STARTED:
                sshd.kill()
            return
        if got == signal.SIGUSR1:
            os.kill(-1, signal.SIGKILL)
            _boot(place)
        if got == signal.SIGUSR2:
            _end_sshd()
        _reap()
        if got != signal.SIGCHLD:
            _sshd(settings)


def _boot(place: Path) -> None:
    with (place / "boot_id").open("r+" if (place / "boot_id").exists() else "w") as file:
        file.write(f"{uuid.uuid4()}\n")


def _network(address: str) -> None:
    _run("ip", "link", "set", "lo", "up")
    until = time.monotonic() + 30
    while not Path("/proc/net/dev").read_text().count("eth0"):
        if time.monotonic() > until:
            sys.exit("no eth0 came")
        time.sleep(0.01)
    _run("ip", "address", "add", f"{address}/24", "dev", "eth0")
    _run("ip", "link", "set", "eth0", "up")


def _sshd(settings: dict[str, Any]) -> None:
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": settings["libraries"]}
    with Path(settings["place"], "sshd.log").open("ab") as log:
        argv = (settings["sshd"], "-D", "-e", "-f", str(Path(settings["place"], "sshd_config")))
        _STARTED.append(subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))


def _end_sshd() -> None:
    """End the daemon and the processes of its connections, which are its own descendants by name."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.joinpath("comm").read_text().strip() == "sshd":
                os.kill(int(path.name), signal.SIGKILL)
        except OSError:
            continue


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
