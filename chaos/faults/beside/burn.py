"""A program that takes processor time beside a job.

``python -m chaos.faults.beside.burn SWITCH HARNESS CORES PROCESSES``
"""

from __future__ import annotations

import os
import signal
import time

from chaos.faults.beside.switch import LOOK_SECONDS, Switch


def main() -> None:
    """Burn on the cores (numbers with commas) with so many processes, until switched off."""
    switch = Switch()
    os.sched_setaffinity(0, [int(core) for core in switch.arguments[0].split(",")])
    children = [_burn(os.getpid()) for _ in range(int(switch.arguments[1]))]
    switch.say(children=children)
    try:
        while switch.is_on():
            time.sleep(LOOK_SECONDS)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _burn(parent: int) -> int:
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    if child := os.fork():
        return child
    prctl(1, signal.SIGKILL, 0, 0, 0)
    while os.getppid() == parent:
        for _ in range(1 << 20):
            continue
    os.write(2, b"its parent has gone, so nobody needs the load any more\n")
    os._exit(0)


if __name__ == "__main__":
    main()
