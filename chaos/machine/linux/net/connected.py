"""The number of the kernel's connections between a network namespace and some addresses, by net/tcp and net/tcp6."""

from __future__ import annotations

from collections.abc import Collection

from chaos.machine.linux.procfs import PROC, kernel_lines, read_text

_ESTABLISHED = "01"
_MAPPED = "0000000000000000FFFF0000"
"""The beginning of an IPv4 address at a socket of IPv6 (ipv6(7)), as the kernel prints it."""


def connections(
    pid: int | str, addresses: Collection[str], port: int | None = None, *, source: str | None = None
) -> int:
    """Return the number of connections between a process's namespace (``self`` for this one) and these IPv4 addresses.

    With ``port`` only connections of that TCP port of the namespace count, with ``source`` those of that address of it.
    """
    count = 0
    lines = [line for name in ("net/tcp", "net/tcp6") for line in kernel_lines(read_text(pid, name, PROC) or "")[1:]]
    for line in lines:
        fields = line.split()
        if len(fields) < 4:
            continue
        (here, at), (there, _) = (_end(address) for address in fields[1:3])
        matches = port in (None, at) and source in (None, here)
        count += fields[3] == _ESTABLISHED and there in addresses and matches
    return count


def _end(shown: str) -> tuple[str, int]:
    """Return address and port; an address that is none of IPv4 is empty."""
    address, port = shown.split(":")
    address = address.removeprefix(_MAPPED)
    if len(address) > 8:
        return "", int(port, 16)
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(address))), int(port, 16)
