"""What a rank does to itself when the harness says so: ways to end, to hang and to fail.

The rank's own record of the act is written before it, so that what the kernel says afterwards can be told from another
end of the same kind. Nothing here returns where the act ends the process.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
from time import monotonic, sleep
from typing import Any, Callable

from chaos.agent.leaving import say
from chaos.agent.record import Record

Order = dict[str, Any]

_WITNESS_SECONDS = 0.05
_TICKS = 3
"""How often the witness of the interpreter's lock has written before the lock is taken: then it is known to write."""
_MOST_SECONDS = 2**31 - 1
_SETTLE_SECONDS = 0.02
"""Four times the interval after which a thread asks for the interpreter's lock, by default."""


class Slowness:
    """A rank that takes ``factor`` times as long for each of the next ``steps`` steps."""

    def __init__(self, order: Order, record: Record, **where: Any) -> None:
        self._factor = float(order["factor"])
        self._left = int(order["steps"])
        self._record = record
        self._fault = where["fault"]
        record.write("fault.acting", act="slow-rank", factor=self._factor, steps=self._left, **where)

    def drag(self, step: int, own: float) -> bool:
        """Wait after a step that took ``own`` seconds. Whether it is over with this step."""
        began = monotonic()
        sleep(own * (self._factor - 1))
        self._left -= 1
        waited = round(monotonic() - began, 6)
        self._record.write("fault.slowed", fault=self._fault, step=step, own=round(own, 6), waited=waited)
        return self._left < 1


def perform(order: Order, record: Record, **where: Any) -> None:
    """Do what ``order`` says: its ``act``, and what that needs. ``where`` is written into the record of it.

    Raises what the order says that is to be raised.
    """
    act = _ACTS[str(order["act"])]
    act(order, record, where)


def _segfault(order: Order, record: Record, where: Order) -> None:
    import ctypes

    _no_core()
    record.write("fault.acting", act="segfault", **where)
    ctypes.string_at(0)


def _abort(order: Order, record: Record, where: Order) -> None:
    _no_core()
    record.write("fault.acting", act="abort", **where)
    os.abort()


def _exit(order: Order, record: Record, where: Order) -> None:
    code = int(order["code"])
    record.write("fault.acting", act="exit", code=code, **where)
    # What the job has printed and not flushed is lost, as with any library that gives up like this.
    say(f"chaos: fault {where.get('fault')} ends this process with code {code}, by os._exit")
    os._exit(code)


def _take_memory(order: Order, record: Record, where: Order) -> None:
    """Take memory until the kernel ends this process; at most as much as ``most`` says, in bytes."""
    most = int(order["most"])
    record.write("fault.acting", act="oom", most=most, **where)
    taken: list[bytes] = []
    while len(taken) << 20 < most:
        taken.append(b"\1" * (1 << 20))  # written, or the kernel would only promise it
    record.write("fault.refused", reason=f"{most} bytes were taken, and nobody has ended the process", **where)


def _throw(order: Order, record: Record, where: Order) -> None:
    name, text = str(order["type"]), str(order["text"])
    record.write("fault.raised", text=text, type=name, **where)
    raise getattr(builtins, name)(text)


def _hang(order: Order, record: Record, where: Order) -> None:
    seconds = order.get("seconds")
    record.write("fault.acting", act=order["act"], seconds=seconds, thread=threading.get_native_id(), **where)
    began = monotonic()
    threading.Event().wait(None if seconds is None else float(seconds))
    _record_end(record, str(order["act"]), began, where)


def _hold_lock(order: Order, record: Record, where: Order) -> None:
    """Wait in C with the interpreter's lock held, so that no other thread of this process runs Python meanwhile."""
    import ctypes

    seconds = order.get("seconds")
    hold = ctypes.PyDLL(None).usleep  # of PyDLL: called without giving the lock up
    witness, enough, done = [0], threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(_WITNESS_SECONDS):
            witness[0] += 1
            record.write("fault.witness", fault=where["fault"], count=witness[0])
            if witness[0] >= _TICKS:
                enough.set()

    threading.Thread(target=watch, name="chaos-witness", daemon=True).start()
    enough.wait()
    # Nobody may ask for the lock between the record and the wait. A thread asks for it after the interval that was set
    # when it began to wait, so those that wait already have their turn first.
    before = sys.getswitchinterval()
    sys.setswitchinterval(_MOST_SECONDS / 1e6)
    sleep(_SETTLE_SECONDS)
    record.write("fault.acting", act="hold-gil", seconds=seconds, thread=threading.get_native_id(), **where)
    began = monotonic()
    while (left := (_MOST_SECONDS if seconds is None else float(seconds)) - (monotonic() - began)) > 0:
        hold(int(min(left, 1000.0) * 1e6))
    sys.setswitchinterval(before)
    done.set()
    _record_end(record, "hold-gil", began, where)


def _skew(order: Order, record: Record, where: Order) -> None:
    """Python's wall clock is off from now on. This process's own history took the right one when it was loaded."""
    import time

    offset, right, right_ns = float(order["offset"]), time.time, time.time_ns
    ahead = int(offset * 1e9)
    time.time = lambda: right() + offset
    time.time_ns = lambda: right_ns() + ahead
    record.write("fault.acting", act="clock-skew", seen=round(time.time() - right(), 3), **where)


def _record_end(record: Record, act: str, began: float, where: Order) -> None:
    record.write("fault.ended", act=act, lasted=round(monotonic() - began, 3), **where)


def _no_core() -> None:
    """A rank that is made to crash leaves no image of its memory."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


_ACTS: dict[str, Callable[[Order, Record, Order], None]] = {
    "segfault": _segfault,
    "abort": _abort,
    "exit": _exit,
    "oom": _take_memory,
    "exception": _throw,
    "hang": _hang,
    "data-stall": _hang,
    "hold-gil": _hold_lock,
    "clock-skew": _skew,
}
