"""A relay on the way to one node, for a kernel without netem: packets wait in it, or vanish.

A program, run in the namespace of a run's router: ``relay.py DEVICE DELAY JITTER LOSS SEED``, in milliseconds and
percent. The router sends the packets to its device, and it gives each packet back after its time, in order. It ends
with its input, or with its device.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque

_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_READ = 1 << 16
MOST = 10_000
"""Packets that may wait; when the queue is full further packets are lost, as in any queue."""


def main(device: str, delay: float, jitter: float, loss: float, seed: str) -> None:
    """Relay until the input ends. Delay and jitter in milliseconds, loss in percent."""
    drawn = random.Random(seed)
    tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tunnel, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TUN | _IFF_NO_PI))
    print("ready", flush=True)
    waiting: deque[tuple[float, bytes]] = deque()
    while True:
        left = None if not waiting else max(0.0, waiting[0][0] - time.monotonic())
        ready = select.select([tunnel, sys.stdin], [], [], left)[0]
        if sys.stdin in ready and not os.read(sys.stdin.fileno(), 1):
            return
        while tunnel in ready:
            try:
                packet = os.read(tunnel, _READ)
            except BlockingIOError:
                break
            if len(waiting) < MOST and drawn.random() * 100 >= loss:
                due = time.monotonic() + (delay + drawn.uniform(-jitter, jitter)) / 1000
                waiting.append((max(due, waiting[-1][0]) if waiting else due, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(tunnel, waiting.popleft()[1])


if __name__ == "__main__":
    try:
        main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
    except OSError as error:  # its device was removed, which undoes the fault
        sys.exit(str(error))
