"""Real sshds to test with: each on a loopback port, or each on a host of its own made of namespaces.

Nothing is installed: sshd is the machine's, or Debian's package unpacked into the test's directory. A host made of
namespaces has its own network address, processes, host name, boot ID and monotonic clock; its files are this machine's.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for

_PACKAGES = ("openssh-server", "libwrap0")
_DOWNLOAD_SECONDS = 120.0
_SCRIPT = Path(__file__).with_name("ssh_host.py")
_NETWORK = "10.213.77"
_Started = list[tuple[subprocess.Popen[bytes], signal.Signals]]
"""Processes, each with the signal that ends it."""
AHEAD_SECONDS = 50_000
"""The monotonic clock of the n-th host made of namespaces is ahead by n + 1 times as much."""


@dataclass(frozen=True)
class TestHost:
    """One sshd. ``process`` is the PID, here, of the host's first process; ``place`` has its files."""

    name: str
    address: str
    port: int
    place: Path
    process: int
    key: Path
    fingerprint: str

    __test__ = False

    @property
    def tools(self) -> Path:
        """What it has in /usr/local/sbin: programs of its own, where it is made of namespaces."""
        return self.place / "sbin"

    @property
    def work(self) -> Path:
        """Where runs make their directories on it."""
        return self.place / "work"

    def signal(self, number: int) -> None:
        """Send a signal to its first process: SIGUSR1 reboots it, SIGUSR2 ends its sshd, SIGKILL all of it."""
        os.kill(self.process, number)

    def entry(self) -> str:
        """Its lines of an inventory."""
        return f"""  - name: {self.name}
    address: {self.address}
    port: {self.port}
    key: {self.key}
    fingerprint: {self.fingerprint}
    directory: {self.work}
    reboot: [kill, -USR1, "1"]
    network: true
"""


@dataclass(frozen=True)
class TestHosts:
    """Several sshds, and what a command needs to reach them."""

    hosts: tuple[TestHost, ...]
    inventory: Path
    prefix: tuple[str, ...] = ()
    """Before the command line of whoever is to reach them."""

    __test__ = False


@cache
def find_sshd() -> tuple[str, str]:
    """An sshd, and the directory of libraries that it needs besides. Skips the test, with the reason, without one."""
    found = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin")
    if found:
        return found, ""
    place = Path(tempfile.mkdtemp(prefix="openssh-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    root, packages = place / "root", place / "packages"
    packages.mkdir()
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        pytest.skip("there is no sshd on this machine, and no apt-get and dpkg to unpack Debian's with")
    command = ["apt-get", "download", *_PACKAGES]
    try:
        got = subprocess.run(command, cwd=packages, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired as error:
        pytest.skip(f"there is no sshd on this machine, and Debian's package does not come: {error}")
    if got.returncode:
        pytest.skip(f"there is no sshd on this machine, and Debian's package cannot be had: {got.stderr.strip()}")
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    libraries = ":".join(sorted({str(path.parent) for path in root.rglob("libwrap.so*")}))
    return str(root / "usr/sbin/sshd"), libraries


def why_no_namespaces() -> str | None:
    """Why hosts cannot be made of namespaces here; None where they can."""
    if os.geteuid() != 0:
        return "hosts made of namespaces need root"
    tried = subprocess.run(
        [
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--uts",
            "--time",
            "--fork",
            "ip",
            "link",
            "add",
            "br0",
            "type",
            "bridge",
        ],
        capture_output=True,
        text=True,
    )
    return None if tried.returncode == 0 else f"namespaces cannot be made here: {tried.stderr.strip()}"


@contextmanager
def loopback_hosts(place: Path, names: tuple[str, ...]) -> Iterator[TestHosts]:
    """sshds on ports of the loopback: one machine with several names."""
    with _stopping() as started:
        hosts = tuple(_host(place / name, name, "127.0.0.1", _free_port(), (), started) for name in names)
        yield TestHosts(hosts, _inventory(place, hosts))


@contextmanager
def namespace_hosts(place: Path, names: tuple[str, ...]) -> Iterator[TestHosts]:
    """Hosts with addresses, processes, names, boots and clocks of their own, on one network."""
    if (reason := why_no_namespaces()) is not None:
        pytest.skip(reason)
    with _stopping() as started:
        made = "ip link set lo up; ip link add br0 type bridge; ip link set br0 up; "
        made += f"ip address add {_NETWORK}.254/24 dev br0; echo made; exec sleep infinity"
        network = subprocess.Popen(
            ["unshare", "--net", "--", "sh", "-ec", made], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        started.append((network, signal.SIGTERM))
        assert network.stdout is not None
        assert network.stdout.readline() == b"made\n"
        inside = ("nsenter", f"--net=/proc/{network.pid}/ns/net", "--")
        hosts = []
        for number, name in enumerate(names):
            ahead = str(AHEAD_SECONDS * (number + 1))
            own = ("unshare", "--net", "--mount", "--pid", "--uts", "--time", "--monotonic", ahead, "--boottime", ahead)
            prefix = (*inside, *own, "--fork", "--kill-child", "--")
            hosts.append(_host(place / name, name, f"{_NETWORK}.{number + 1}", 22, prefix, started, inside))
        yield TestHosts(tuple(hosts), _inventory(place, tuple(hosts)), inside)


@contextmanager
def _stopping() -> Iterator[_Started]:
    started: _Started = []
    try:
        yield started
    finally:
        for process, signum in reversed(started):
            process.send_signal(signum)
            process.wait(30)


def _host(
    place: Path,
    name: str,
    address: str,
    port: int,
    prefix: tuple[str, ...],
    started: _Started,
    network: tuple[str, ...] = (),
) -> TestHost:
    sshd, libraries = find_sshd()
    (place / "work").mkdir(parents=True)
    (place / "sbin").mkdir()
    for key in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / key)], check=True)
    (place / "authorized_keys").write_bytes((place / "user_key.pub").read_bytes())
    (place / "sshd_config").write_text(
        f"""ListenAddress {address}:{port}
HostKey {place / "host_key"}
AuthorizedKeysFile {place / "authorized_keys"}
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
Subsystem sftp internal-sftp
"""
    )
    settings = {"name": name, "address": address, "place": str(place), "sshd": sshd, "libraries": libraries}
    (place / "host.json").write_text(json.dumps({**settings, "namespaces": bool(prefix)}))
    alone = ("unshare", "--mount", "--") if os.geteuid() == 0 else ()
    argv = (*(prefix or alone), sys.executable, str(_SCRIPT), str(place / "host.json"))
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    # A host of namespaces dies with unshare, which holds SIGTERM off; one on the loopback has an sshd to end.
    started.append((process, signal.SIGKILL if prefix else signal.SIGTERM))
    first = process.pid
    if prefix:
        first = wait_for("host", lambda: _child_of(process.pid), seconds=30, clock=SYSTEM_CLOCK)
        link = f"to-{name}"[:15]
        for command in (
            ("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(first)),
            ("ip", "link", "set", link, "master", "br0", "up"),
        ):
            subprocess.run([*network, *command], check=True)
    wait_for(
        "sshd", lambda: (place / "ready").exists() and _listens(address, port, place), seconds=30, clock=SYSTEM_CLOCK
    )
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(place / "host_key.pub")], capture_output=True, text=True, check=True
    )
    return TestHost(name, address, port, place, first, place / "user_key", shown.stdout.split()[1])


def _child_of(pid: int) -> int:
    """The only child of a process; 0 while it has none."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return int(text.split()[0]) if text.split() else 0


def _listens(address: str, port: int, place: Path) -> bool:
    return f"Server listening on {address} port {port}" in (place / "sshd.log").read_text()


def _inventory(place: Path, hosts: tuple[TestHost, ...]) -> Path:
    path = place / "inventory.yaml"
    deadlines = "deadlines: {connect: 20s, keepalive: 1s, lost: 3s, vanished: 3s, boot: 60s}"
    path.write_text(f"inventory: 1\n{deadlines}\nhosts:\n{''.join(host.entry() for host in hosts)}")
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
