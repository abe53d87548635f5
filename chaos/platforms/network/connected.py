"""Which connections the kernel has between a network namespace and some addresses (proc(5), net/tcp)."""

from __future__ import annotations

from collections.abc import Collection

from chaos.platforms.procfs import PROC, read_text

_ESTABLISHED = "01"


def connections(pid: int | str, addresses: Collection[str], port: int | None = None) -> int:
    """How many there are between the namespace of a process (``self`` for this one), or one TCP port of it, and these
    IPv4 addresses.
    """
    found = 0
    for line in (read_text(pid, "net/tcp", PROC) or "").splitlines()[1:]:
        fields = line.split()
        raw, state = fields[2].split(":")[0], fields[3]
        remote = ".".join(str(one) for one in reversed(bytes.fromhex(raw)))
        at_port = port is None or int(fields[1].split(":")[1], 16) == port
        found += state == _ESTABLISHED and remote in addresses and at_port
    return found
