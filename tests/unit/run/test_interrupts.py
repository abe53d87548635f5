"""Signals that ask a run to end are heeded once, never in the middle of putting back, and none is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PRESSED_TWICE = """
import os, signal, sys
from chaos.run.interrupts import interruptible, uninterrupted
order = []
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this test was started to ignore
signal.signal(signal.SIGHUP, signal.SIG_DFL)
handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
try:
    with interruptible():
        try:
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
            order.append("not interrupted")
        finally:
            with uninterrupted():
                for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                    os.kill(os.getpid(), getattr(signal, name))
                order.append("put back")
except KeyboardInterrupt:
    order.append("interrupted")
assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == handlers
print(*order, sep=", ")
"""


@pytest.mark.parametrize("first", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_second_press_does_not_cut_off_the_putting_back(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSED_TWICE, first], capture_output=True, text=True, env={"PATH": os.environ["PATH"]}
    )
    assert (done.stdout, done.stderr, done.returncode) == ("put back, interrupted\n", "", 0)


IGNORED = """
import os, signal, sys
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.run.interrupts import interruptible
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with ended_like_ctrl_c(), interruptible():
    os.kill(os.getpid(), signal.SIGHUP)
assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
print("went on")
"""


def test_under_nohup_a_run_outlives_its_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", IGNORED], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("went on\n", "")


IN_THREAD = """
import threading
from chaos.run.interrupts import interruptible, uninterrupted
def work():
    with interruptible(), uninterrupted():
        print("done")
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def test_a_run_in_another_thread_leaves_the_signals_alone() -> None:
    done = subprocess.run([sys.executable, "-c", IN_THREAD], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


HELD = """
import os, signal, sys
from chaos.run.interrupts import interruptible, uninterrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever this test was started to ignore
try:
    with interruptible():
        with uninterrupted():
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
            print("put back", end=", ")
        print("went on", end=", ")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_in_the_middle_of_putting_back_is_heeded_after_it(name: str) -> None:
    """The teardown of a first launch is followed by the resume: who has asked for the end would wait in vain."""
    done = subprocess.run([sys.executable, "-c", HELD, name], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("put back, interrupted\n", "")


ONCE = """
import os, signal
from chaos.run.interrupts import interruptible_once, uninterrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
with interruptible_once():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGTERM)  # before anybody could hold it back
        print("still there", end=", ")
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGHUP)
        print("put back")
assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
"""


def test_after_the_first_signal_nothing_cuts_off_the_end() -> None:
    done = subprocess.run([sys.executable, "-c", ONCE], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("still there, put back\n", "")
