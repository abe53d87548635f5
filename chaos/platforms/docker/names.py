"""Cutting one container off from its resolvers: routes of its own network namespace that lead to them nowhere.

The engine's own resolver (127.0.0.11) answers for the names of containers; it and every other nameserver in the
container's resolv.conf are made unreachable. Each program there is refused at once, also a program that has read the
file long ago. All other addresses are reached as before. With the container the routes are gone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.mount_namespace import do_in
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.linux.process import identify
from chaos.platforms.docker.engine import engine_errors
from chaos.platforms.docker.processes import first_process

if TYPE_CHECKING:
    from docker.models.containers import Container

_FILE = Path("/etc/resolv.conf")
_PROTOCOL = "197"
"""The protocol number that marks these routes; nobody has given it a name (ip-route(8))."""
_TABLE = ("table", "local", "proto", _PROTOCOL)
"""The table that is looked at before any other, as it has the addresses below 127.0.0.0/8."""

_ASK = """
import json, socket, sys
name, address = sys.argv[1:]
answer = {"found": [], "error": None, "reached": None}
try:
    answer["found"] = sorted({entry[4][0] for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})
except OSError as error:
    answer["error"] = str(error)
if address or answer["found"]:
    with socket.socket(socket.AF_INET6 if ":" in (address or answer["found"][0]) else socket.AF_INET) as client:
        client.settimeout(5)
        try:
            client.connect((address or answer["found"][0], 9))
            answer["reached"] = "connected"
        except ConnectionRefusedError:
            answer["reached"] = "refused"
        except OSError:
            pass
print(json.dumps(answer))
"""
"""A look-up by the C library, as any program does it, and a connection to an unused port: it is refused."""


def ask(container: Container, python: str, name: str, address: str = "") -> dict[str, Any]:
    """Look a name up from a new program in the container. Raises PlatformError.

    Returns the ``found`` addresses of the name, else the ``error`` of the look-up; and how ``address``, or the address
    found, is ``reached``: None where it is not.
    """
    with engine_errors(f"nothing can be looked up in {container.name}"):
        done = container.exec_run([python, "-I", "-c", _ASK, name, address], stderr=True)
    output = done.output if isinstance(done.output, bytes) else b""
    if done.exit_code != 0:
        raise PlatformError(f"{container.name}: the look-up of {name} ended with {done.exit_code}: {output[-300:]!r}")
    answer: dict[str, Any] = json.loads(output)
    return answer


def cut(container: Container) -> list[str]:
    """Make the container's resolvers unreachable, and return their addresses. Raises PlatformError."""
    resolvers = _resolvers(container)
    if not resolvers:
        raise PlatformError(f"{container.name} has no nameserver in {_FILE}")
    network = _network(container)
    for address in resolvers:
        network.do("ip", _family(address), "route", "add", "unreachable", address, *_TABLE)
    return resolvers


def blocked(container: Container) -> list[str]:
    """Return the addresses that are made unreachable there. Raises PlatformError."""
    network = _network(container)
    listings = [network.do("ip", family, "route", "show", "type", "unreachable", *_TABLE) for family in ("-4", "-6")]
    return sorted(line.split()[1] for line in "\n".join(listings).splitlines() if line.startswith("unreachable "))


def mend(container: Container) -> list[str]:
    """Remove these routes, and no others; return the addresses they led to. May be called twice.

    Raises PlatformError.
    """
    addresses = blocked(container)
    network = _network(container)
    for address in addresses:
        network.do("ip", _family(address), "route", "del", "unreachable", address, *_TABLE)
    return addresses


def _resolvers(container: Container) -> list[str]:
    """Return the nameservers of the container's resolv.conf (resolv.conf(5)), as its processes read it."""
    try:
        text = do_in(first_process(container), lambda: _FILE.read_text("utf-8", "replace"))
    except OSError as error:
        raise PlatformError(f"{container.name}: {_FILE} cannot be read: {error}") from error
    lines = (line.split() for line in text.splitlines())
    return list(dict.fromkeys(words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"))


def _network(container: Container) -> Namespace:
    try:
        return Namespace(identify(first_process(container)))
    except LookupError as error:
        raise PlatformError(f"{container.name} has ended: {error}") from error


def _family(address: str) -> str:
    return "-6" if ":" in address else "-4"
