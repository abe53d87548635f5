"""Relays for packets to a node: programs of the run's own in its router's namespace."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from chaos.base.strict_json import parse
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.net.namespace import Namespace
from chaos.platforms.network import relay
from chaos.platforms.network.impairment import Impairment

_OWN_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {}
_FIRST = 31_000
"""Preferences from here on: a rule that drops packets goes before."""


def netem(what: Impairment) -> tuple[str, ...]:
    """Return the impairment as options of the kernel's netem (tc-netem(8))."""
    delay = ("delay", f"{what.delay}ms", f"{what.jitter}ms") if what.delay else ()
    return ("netem", "limit", str(relay.MOST), *delay, *(("loss", f"{what.loss}%") if what.loss else ()))


class Relays:
    """The relays of one run's router, each by the node that it leads to. All methods raise PlatformError."""

    def __init__(self, router: Namespace) -> None:
        self._router = router
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, fault: str, node: int, address: str, sources: list[str], what: Impairment) -> None:
        """Send packets that come in at the links ``sources`` and go to a node through a relay."""
        device, table = _device(node), str(_FIRST + node)
        program = (sys.executable, "-I", str(Path(relay.__file__)))
        numbers = (str(what.delay), str(what.jitter), str(what.loss))
        with self._router.entering() as prefix:
            try:
                process = subprocess.Popen(
                    (*prefix, *program, device, *numbers, fault),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    **_OWN_GROUP,
                )
            except OSError as error:
                raise PlatformError(f"no relay can be started: {error}") from error
            self._started.append(process)
            assert process.stdout is not None and process.stderr is not None
            if process.stdout.readline() != b"ready\n":
                words = process.stderr.read().decode("utf-8", "replace").strip()
                raise PlatformError(f"the relay to node {node} has ended: {words}")
        self._router.do("ip", "link", "set", device, "alias", fault, "up")
        self._router.do("ip", "route", "add", "default", "dev", device, "table", table)
        for source in sources:
            selector = ("iif", source, "to", f"{address}/32", "lookup", table)
            self._router.do("ip", "rule", "add", "pref", _preference(fault, node), *selector)

    def shown(self, fault: str, node: int) -> dict[str, int] | None:
        """Return how many packets the kernel has given to a fault's relay and got back; None without a relay."""
        looked = self._router("ip", "-s", "-j", "link", "show", _device(node))
        listed = parse(looked.output) if looked.code == 0 else []
        for link in listed if isinstance(listed, list) else []:
            if isinstance(link, dict) and link.get("ifalias") == fault:
                counted = link["stats64"]
                return {"into": int(counted["tx"]["packets"]), "passed": int(counted["rx"]["packets"])}
        return None

    def is_there(self, node: int) -> bool:
        """Return whether packets to a node pass a relay, of whatever fault."""
        return self._router("ip", "link", "show", _device(node)).code == 0

    def end(self, fault: str, node: int) -> bool:
        """Send packets past the relay again; it ends with its device. Returns False where this fault has none."""
        if self.shown(fault, node) is None:
            return False
        while self._router("ip", "rule", "del", "pref", _preference(fault, node)).code == 0:
            pass
        self._router.do("ip", "link", "del", _device(node))
        return True

    def close(self) -> None:
        """Wait for the end of the relays that were started here."""
        for process in self._started:
            process.communicate()  # which ends its input
        self._started = []


def _device(node: int) -> str:
    return f"relay{node}"


def _preference(fault: str, node: int) -> str:
    return str(_FIRST + zlib.crc32(f"{fault} {node}".encode()) % 1500)
