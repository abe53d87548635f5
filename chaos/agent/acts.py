"""Acts that the harness orders and a rank does to itself: ways to end, to hang and to fail.

The rank writes its own record before the act. The record sets the act apart from another end of the same kind, for
which the kernel's words are the same. No function here returns where its act ends the process.
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
"""Lines of the witness of the interpreter's lock before the lock is taken: the witness is then known to write."""
_MOST_SECONDS = 2**31 - 1
_SETTLE_SECONDS = 0.02
"""Seconds; four times the interval after which a thread asks for the interpreter's lock, by default."""


class Slowness:
    """A rank that takes ``factor`` times as long for each of the next ``steps`` steps."""

    def __init__(self, order: Order, record: Record, **where: Any) -> None:
        self._factor = float(order["factor"])
        self._steps_left = int(order["steps"])
        self._record = record
        self._fault = where["fault"]
        record.write("fault.acting", act="slow-rank", factor=self._factor, steps=self._steps_left, **where)

    def drag(self, step: int, taken: float) -> bool:
        """Wait after a step that took ``own`` seconds; return whether the slowness is over with this step."""
        began = monotonic()
        sleep(taken * (self._factor - 1))
        self._steps_left -= 1
        waited = round(monotonic() - began, 6)
        self._record.write("fault.slowed", fault=self._fault, step=step, own=round(taken, 6), waited=waited)
        return self._steps_left < 1


def perform(order: Order, record: Record, **where: Any) -> None:
    """Do what ``order`` says: its ``act``, with the act's arguments. ``where`` is written into the record of the act.

    Raises the error that the order names, where its act is to raise one.
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
    # Output that the job has not flushed is lost, as with any library that gives up like this.
    say(f"chaos: fault {where.get('fault')} ends this process with code {code}, by os._exit")
    os._exit(code)


def _take_memory(order: Order, record: Record, where: Order) -> None:
    """Take memory until the kernel ends this process; at most ``most`` bytes, a field of the order."""
    most = int(order["most"])
    record.write("fault.acting", act="oom", most=most, **where)
    taken: list[bytes] = []
    while len(taken) << 20 < most:
        taken.append(b"\1" * (1 << 20))  # written, or the kernel would only promise the memory
    record.write("fault.refused", reason=f"{most} bytes were taken, but nothing has ended the process", **where)


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
    # No thread may ask for the lock between the record and the wait. A thread asks for the lock after the interval that
    # was set when the thread began to wait, so the threads that wait already get their turn first.
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
    """Set Python's wall clock wrong from now on. This process's own history took the right clock when it was loaded."""
    import time

    offset, right, right_ns = float(order["offset"]), time.time, time.time_ns
    ahead = int(offset * 1e9)
    time.time = lambda: right() + offset
    time.time_ns = lambda: right_ns() + ahead
    record.write("fault.acting", act="clock-skew", seen=round(time.time() - right(), 3), **where)


def _record_end(record: Record, act: str, began: float, where: Order) -> None:
    record.write("fault.ended", act=act, lasted=round(monotonic() - began, 3), **where)


def _no_core() -> None:
    """Keep a rank that is made to crash from leaving an image of its memory."""
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
