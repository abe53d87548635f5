"""A Docker engine of the tests' own: its data, its socket and its network namespace go with it.

The programs are those of the PATH, else of Debian's packages, which are unpacked into a cache, never installed:
``CHAOS_DOCKER_DEBS`` names a directory that holds them, else apt fetches them. Where iptables is there too the engine
resolves the names of containers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from chaos.base.wait import DeadlineExpired, wait_for
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.docker.engine import connect

DEBS = "CHAOS_DOCKER_DEBS"
LACKING = "CHAOS_NO_NETFILTER"
PROGRAMS = ("dockerd", "containerd", "runc")
PACKAGES = ("docker.io", "containerd", "runc")
NETFILTER = (
    *("iptables", "libip4tc2", "libip6tc2", "libxtables12", "libnftnl11", "libnfnetlink0"),
    *("libnetfilter-conntrack3", "libmnl0"),
)
"""What the engine leads the look-ups of a container to its own resolver with."""
_FETCH_SECONDS = 120.0
_READY_SECONDS = 60.0


class NoEngine(RuntimeError):
    """No engine can be started here. The text says why."""


@contextlib.contextmanager
def docker_engine(directory: Path) -> Iterator[str]:
    """Start an engine in ``directory``; gives its address. Raises NoEngine. What it says is in ``dockerd.log``."""
    if os.geteuid() != 0:
        raise NoEngine("a Docker engine is started by root only")
    programs, more = _programs(), netfilter()
    address = f"unix://{directory / 'docker.sock'}"
    options = (
        *(f"--data-root={directory / 'data'}", f"--exec-root={directory / 'exec'}"),
        *(f"--pidfile={directory / 'docker.pid'}", f"--host={address}", "--storage-driver=vfs", "--bridge=none"),
        *("--iptables=false", "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false"),
    )
    log = directory / "dockerd.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["unshare", "--net", "--mount", "dockerd", *options],
            env={**os.environ, **more, "PATH": os.pathsep.join([*programs, more.get("PATH", _path())])},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _await(process, address, log)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_READY_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def netfilter() -> dict[str, str]:
    """The environment in which iptables is found, empty where it is on the PATH. Without it an engine resolves nothing.

    That is no reason to have no engine: then ``PATH`` is not in it, and ``LACKING`` says why.
    """
    if shutil.which("iptables") is not None:
        return {}
    cache = _cache()
    unpacked = cache / "netfilter"
    try:
        with FileLock(cache / ".lock"):
            if not unpacked.is_dir():
                _unpack(cache, unpacked, NETFILTER)
    except NoEngine as error:
        return {LACKING: str(error)}
    links = unpacked / "bin"
    links.mkdir(exist_ok=True)
    for name in ("iptables", "ip6tables"):
        with contextlib.suppress(FileExistsError):
            (links / name).symlink_to("../usr/sbin/xtables-nft-multi")
    libraries = next(unpacked.glob("usr/lib/*/xtables")).parent
    return {
        "PATH": os.pathsep.join([str(links), _path()]),
        "LD_LIBRARY_PATH": str(libraries),
        "XTABLES_LIBDIR": str(libraries / "xtables"),
    }


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


def _await(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    def answers() -> bool:
        if process.poll() is not None:
            words = log.read_text("utf-8", "replace").strip().rpartition("\n")[2]
            raise NoEngine(f"dockerd ended with {process.returncode}: {words[-300:]}")
        try:
            connect(address).close()
        except PlatformError:
            return False
        return True

    try:
        wait_for("docker engine", answers, seconds=_READY_SECONDS)
    except DeadlineExpired as expired:
        raise NoEngine(f"dockerd does not answer; {expired}") from expired


def _programs() -> list[str]:
    """Directories that hold the programs; none where the PATH has them all."""
    if all(shutil.which(name) for name in PROGRAMS):
        return []
    cache = _cache()
    unpacked = cache / "unpacked"
    with FileLock(cache / ".lock"):
        if not unpacked.is_dir():
            _unpack(cache, unpacked, PACKAGES)
    return [str(unpacked / "usr" / "sbin"), str(unpacked / "usr" / "bin")]


def _cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chaos-tests" / "docker-engine"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _unpack(cache: Path, unpacked: Path, packages: tuple[str, ...]) -> None:
    for tool in ("dpkg", "unshare"):
        if shutil.which(tool) is None:
            raise NoEngine(f"not on the PATH, and no {tool} to unpack it with")
    given = os.environ.get(DEBS)
    debs = Path(given) if given else cache
    if not given:
        _run(["apt-get", "download", *packages], cache)
    partly = unpacked.with_name(f"{unpacked.name}.{os.getpid()}")
    for package in packages:
        paths = sorted(debs.glob(f"{package}_*.deb"))
        if not paths:
            raise NoEngine(f"there is no package {package} in {debs}")
        _run(["dpkg", "-x", str(paths[-1]), str(partly)], cache)
    partly.rename(unpacked)


def _run(command: list[str], directory: Path) -> None:
    try:
        subprocess.run(
            command, cwd=directory, check=True, capture_output=True, timeout=_FETCH_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NoEngine(f"not on the PATH, and {command[0]} does not give it: {error}") from error
