"""The number of the kernel's connections between a network namespace and some addresses (proc(5), net/tcp)."""

from __future__ import annotations

from collections.abc import Collection

from chaos.machine.linux.procfs import PROC, kernel_lines, read_text

_ESTABLISHED = "01"


def connections(
    pid: int | str, addresses: Collection[str], port: int | None = None, *, source: str | None = None
) -> int:
    """Return the number of connections between a process's namespace (``self`` for this one) and these IPv4 addresses.

    With ``port`` only connections of that TCP port of the namespace count, with ``source`` those of that address of it.
    """
    count = 0
    for line in kernel_lines(read_text(pid, "net/tcp", PROC) or "")[1:]:
        fields = line.split()
        if len(fields) < 4:
            continue
        (here, at), (there, _) = (_end(address) for address in fields[1:3])
        matches = port in (None, at) and source in (None, here)
        count += fields[3] == _ESTABLISHED and there in addresses and matches
    return count


def _end(shown: str) -> tuple[str, int]:
    address, port = shown.split(":")
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(address))), int(port, 16)
