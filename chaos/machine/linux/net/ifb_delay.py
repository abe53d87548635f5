"""A device in which packets wait before they go on: an intermediate functional block with netem (tc-netem(8)).

Packets redirected to it come back as if they had just come in where they did. Each fault has a device of its own; no
device of the host, and none of its queues, is changed. All through the kernel's own interface (rtnetlink(7));
constants: linux/rtnetlink.h, linux/if_link.h, linux/pkt_sched.h.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.machine.linux.net.attributes import attribute, attributes, nested, string, text
from chaos.machine.linux.net.netlink import ACKNOWLEDGE, DUMP, REQUEST, answers, message, send_request

_ROUTE = 0
_NEW_LINK, _DELETE_LINK, _GET_LINK, _GET_ADDRESS, _NEW_QUEUE, _GET_QUEUE = 16, 17, 18, 22, 36, 38
_EXCLUSIVE, _CREATE = 0x200, 0x400
_LINK = struct.Struct("=BxHiII")
_QUEUE = struct.Struct("=BxxxiIII")
_ADDRESS = struct.Struct("=BBBBi")
_NETEM = struct.Struct("=6I")
"""netem's options: latency, limit, loss, gap, duplicates, jitter (struct tc_netem_qopt)."""
_TICK_NS = 64
"""The kernel's unit of such times (PSCHED_SHIFT)."""
_UP = 1
_ROOT = 0xFFFFFFFF
_KIND, _DEVICE = "ifb", "device in which packets can wait (ifb)"
_MODULE = Path("/sys/module/ifb")
_IPV6 = Path("/proc/sys/net/ipv6/conf")
"""The setting that keeps a device from sending packets of its own, which would count as packets that have waited."""
MOST = 10_000
"""Packets that may wait; packets that arrive when it is full are lost, as in any queue."""
_SECONDS = 10.0
_OLDEST = (5, 7)
"""The first version of Linux whose packet filter can redirect packets to such a device."""


@dataclass(frozen=True)
class DeviceDelay:
    """How long packets wait in a device, in milliseconds, more or less by up to ``jitter``.

    ``passed`` is the number of packets that have waited and gone on, ``index`` the device's number.
    """

    index: int
    delay: float
    jitter: float
    passed: int


def hold(name: str, delay: float, jitter: float) -> int:
    """Make a device in which each packet waits so many milliseconds, and return its index.

    Nothing is redirected to it yet. Raises OSError: FileExistsError where a device of that name exists.
    """
    if not _MODULE.exists():  # by default it makes two devices that nobody uses
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(["modprobe", _KIND, "numifbs=0"], capture_output=True, timeout=_SECONDS, check=False)
    anew = REQUEST | ACKNOWLEDGE | _CREATE | _EXCLUSIVE
    with _channel() as channel:
        link = _LINK.pack(0, 0, 0, 0, 0) + text(3, name) + nested(18, attribute(1, _KIND.encode()))
        _done(send_request(channel, _NEW_LINK, anew, link), _DEVICE)
        try:
            index = socket.if_nametoindex(name)
            if (setting := _IPV6 / name / "disable_ipv6").exists():
                setting.write_text("1", "ascii")
            queue = _QUEUE.pack(0, index, 0, _ROOT, 0) + text(1, "netem") + _options(delay, jitter)
            _done(send_request(channel, _NEW_QUEUE, anew, queue), "netem (sch_netem)")
            up = _LINK.pack(0, 0, index, _UP, _UP)
            _done(send_request(channel, _NEW_LINK, REQUEST | ACKNOWLEDGE, up), _DEVICE)
        except BaseException:
            release(name)
            raise
    return index


def delay_of(name: str) -> DeviceDelay | None:
    """Return the delay of a device; None where there is none of that name. Raises OSError."""
    try:
        index = socket.if_nametoindex(name)
    except OSError:
        return None
    for body in _listed(_GET_QUEUE, _QUEUE.pack(0, index, 0, 0, 0)):
        _, of, _, parent, _ = _QUEUE.unpack_from(body)
        options = attributes(body[_QUEUE.size :])
        if (of, parent) != (index, _ROOT) or string(options[1]) != "netem":
            continue
        wait, _, _, _, _, around = _NETEM.unpack_from(options[2])
        long = attributes(options[2][_NETEM.size :])
        delay, jitter = (
            struct.unpack("=q", long[kind])[0] if kind in long else ticks * _TICK_NS
            for kind, ticks in ((10, wait), (11, around))
        )
        return DeviceDelay(index, delay / 1e6, jitter / 1e6, _passed(attributes(options.get(7, b""))))
    return DeviceDelay(index, 0.0, 0.0, 0)


def release(name: str) -> bool:
    """Remove a device, with the packets that wait in it; return False where there is none. Raises OSError."""
    with _channel() as channel:
        refused = send_request(channel, _DELETE_LINK, REQUEST | ACKNOWLEDGE, _LINK.pack(0, 0, 0, 0, 0) + text(3, name))
    if refused == errno.ENODEV:
        return False
    _done(refused, _DEVICE)
    return True


def devices(beginning: str) -> list[str]:
    """Return the devices of this kind whose names begin so. Raises OSError."""
    names = []
    for body in _listed(_GET_LINK, _LINK.pack(0, 0, 0, 0, 0)):
        link = attributes(body[_LINK.size :])
        kind = attributes(link.get(18, b"")).get(1, b"")
        if string(kind) == _KIND and string(link[3]).startswith(beginning):
            names.append(string(link[3]))
    return sorted(names)


def device_of(address: str) -> str | None:
    """Return the device that has an IPv4 number of this host; None where none has. Raises OSError."""
    for body in _listed(_GET_ADDRESS, _ADDRESS.pack(socket.AF_INET, 0, 0, 0, 0)):
        index, fields = _ADDRESS.unpack_from(body)[-1], attributes(body[_ADDRESS.size :])
        if fields.get(2, fields.get(1)) == socket.inet_aton(address):
            return socket.if_indextoname(index)
    return None


def too_old(running: str) -> str | None:
    """Return why the packet filter of a kernel of this release cannot redirect packets to a device.

    None where it can.
    """
    parts = [int(number) for number in running.split("-")[0].split(".")[:2] if number.isdigit()]
    if tuple(parts) >= _OLDEST:
        return None
    return f"its kernel is {running}: packets can be turned over to a device from Linux {_OLDEST[0]}.{_OLDEST[1]} on"


def _options(delay: float, jitter: float) -> bytes:
    """Return netem's options. Times are given twice: older kernels know the shorter form alone."""
    wait, around = (round(milliseconds * 1e6) for milliseconds in (delay, jitter))
    short = _NETEM.pack(wait // _TICK_NS, MOST, 0, 0, 0, around // _TICK_NS)
    return attribute(2, short + attribute(10, struct.pack("=q", wait)) + attribute(11, struct.pack("=q", around)))


def _passed(counted: dict[int, bytes]) -> int:
    """Return the number of packets that have gone on (linux/gen_stats.h): in 64 bits where 32 are too few."""
    if 8 in counted:
        return int(struct.unpack_from("=Q", counted[8])[0])
    return int(struct.unpack_from("=QI", counted[1])[1]) if 1 in counted else 0


def _listed(kind: int, body: bytes) -> Iterator[bytes]:
    with _channel() as channel:
        channel.send(message(kind, REQUEST | DUMP, body))
        for answer, content in answers(channel):
            if answer == 2:
                _done(-struct.unpack_from("=i", content)[0], "list of them")
            yield content


def _channel() -> socket.socket:
    channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _ROUTE)
    channel.settimeout(_SECONDS)
    return channel


def _done(refused: int, what: str) -> None:
    if refused in (errno.ENOENT, errno.EOPNOTSUPP):
        raise OSError(refused, f"the kernel has no {what}")
    if refused:
        raise OSError(refused, f"the kernel's {what}: {os.strerror(refused)}")
