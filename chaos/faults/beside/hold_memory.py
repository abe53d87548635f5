"""A program that takes memory beside a job.

``python -m chaos.faults.beside.hold_memory SWITCH HARNESS MEBIBYTES``
"""

from __future__ import annotations

import mmap
import time

from chaos.faults.beside.switch import LOOK_SECONDS, Switch

_MEBIBYTE = 1 << 20
_PAGE = 4096


def main() -> None:
    """Hold the memory, every page of it written, until switched off."""
    switch = Switch()
    size = int(switch.arguments[0]) * _MEBIBYTE
    held = mmap.mmap(-1, size)
    # The first to be ended where the kernel has to choose a process for want of memory.
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("1000")
    for page in range(0, size, _PAGE):
        held[page] = 1
        if page % _MEBIBYTE == 0 and not switch.is_on():
            return
    switch.say(held=size)
    while switch.is_on():
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
