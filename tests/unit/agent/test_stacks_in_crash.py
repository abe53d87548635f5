"""The stacks of a crash after the training name the thread that crashed, and the job's own choice of handlers holds."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from chaos.agent.stacks import write_in_crash
from chaos.base.clock import SYSTEM_CLOCK
from chaos.observe.stacks import crash_of
from chaos.run.launch.stacks import Stacks

pytestmark = pytest.mark.processes

SETUP = """
import atexit, ctypes, faulthandler, os, resource, signal, sys, threading, time
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.path.insert(0, {root!r})
from chaos.agent.stacks import offer_stacks, write_in_crash
libc = ctypes.CDLL(None)
libc.strlen.argtypes = [ctypes.c_void_p]
started, go_on = threading.Event(), threading.Event()
def in_cluster():
    libc.prctl(15, b"RECV_EVENT_LOOP", 0, 0, 0)
    started.set()
    go_on.wait()
threading.Thread(target=in_cluster, daemon=True).start()
started.wait()
offer = offer_stacks({logs!r}, 3)
print(offer.fields["stacks"]["main"], flush=True)
"""
NATIVE = """
thread = ctypes.c_ulong()
crash = (libc.pthread_create, ctypes.byref(thread), None, libc.strlen, None)
"""
ENDS = {
    # atexit calls the last one first: the crash is under way in a thread of its own while the main thread sleeps.
    "native": NATIVE + "atexit.register(libc.sleep, 600)\natexit.register(*crash)",
    "native, in the job": NATIVE + "crash[0](*crash[1:])\ntime.sleep(600)",
    "main": "atexit.register(libc.strlen, None)",
    "python": "threading.Thread(target=libc.strlen, args=[None]).start()\natexit.register(libc.sleep, 600)",
}


class Ended(NamedTuple):
    code: int
    main: int
    said: str
    errors: str
    written: bytes


def ended(tmp_path: Path, text: str, setup: str = SETUP) -> Ended:
    root = str(Path(__file__).parents[3])
    logs = tmp_path / "logs"
    logs.mkdir()
    script = setup.format(root=root, logs=str(logs)) + text
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout, done.stderr
    content = b"".join(path.read_bytes() for path in logs.iterdir())
    return Ended(done.returncode, int(done.stdout.split()[0]), done.stdout, done.stderr, content)


@pytest.mark.parametrize(
    ("end", "crashed", "idle"),
    [("native", None, True), ("native, in the job", None, False), ("main", "main", True), ("python", "other", None)],
)
def test_the_stacks_name_the_thread_that_crashed(
    tmp_path: Path, end: str, crashed: str | None, idle: bool | None
) -> None:
    done = ended(tmp_path, "assert write_in_crash(offer.file)\n" + ENDS[end])
    assert done.code == -signal.SIGSEGV, done.errors
    crash = crash_of(done.written)
    assert crash is not None and crash.error == "Segmentation fault", done.written
    who = None if crash.crashed is None else "main" if crash.crashed == done.main else "other"
    assert who == crashed
    assert idle is None or (done.main in crash.idle) is idle


@pytest.mark.parametrize(
    ("before", "after", "written", "said"),
    [
        ("faulthandler.enable()", "", False, True),
        ("signal.signal(signal.SIGSEGV, signal.SIG_IGN)", "", True, False),
        ("signal.signal(signal.SIGSEGV, lambda *_: os._exit(9))", "", False, False),
        ("", "faulthandler.enable()", False, True),
        ("", "faulthandler.disable()", False, False),
        ("", "", True, False),
    ],
)
def test_the_choice_of_the_job_holds(tmp_path: Path, before: str, after: str, written: bool, said: bool) -> None:
    end = "os.kill(os.getpid(), signal.SIGSEGV)"
    done = ended(tmp_path, f"{before}\nwrite_in_crash(offer.file)\n{after}\n{end}\n")
    assert bool(done.written) is written, done.written
    assert ("Fatal Python error" in done.errors) is said, done.errors


def test_an_earlier_handler_of_another_fatal_signal_is_called_as_before(tmp_path: Path) -> None:
    text = "signal.signal(signal.SIGBUS, lambda *_: os._exit(9))\nassert write_in_crash(offer.file)\n"
    done = ended(tmp_path, text + "os.kill(os.getpid(), signal.SIGBUS)\ntime.sleep(600)\n")
    assert done.code == 9, done


@pytest.mark.parametrize("enabled", [True, False])
def test_the_file_lasts_until_the_crash_and_the_harness_removes_an_empty_one(tmp_path: Path, enabled: bool) -> None:
    """A job that imports MindSpore before the agent leaves the cluster after all that the agent does at exit."""
    setup = SETUP.replace("offer =", "atexit.register(lambda: print(os.listdir({logs!r}), flush=True))\noffer =")
    done = ended(tmp_path, "assert write_in_crash(offer.file)\n" if enabled else "", setup)
    assert (done.code, done.written) == (0, b"")
    assert ("stacks-rank_3" in done.said) is enabled
    Stacks(tmp_path / "logs", SYSTEM_CLOCK).remove_empty_files()
    assert list((tmp_path / "logs").iterdir()) == []


@pytest.mark.parametrize("status", [None, "SigCgt:\t0000000000000400\n", "SigCgt:\tmany\n", "Name:\tpython\n"])
def test_without_a_cluster_or_a_view_of_the_handlers_nothing_is_written(tmp_path: Path, status: str | None) -> None:
    thread = tmp_path / "task" / "7"
    thread.mkdir(parents=True)
    (thread / "comm").write_text("python\n" if status is None else "RECV_EVENT_LOOP\n")
    (tmp_path / "status").write_text(status or "SigCgt:\t0000000000000000\n")
    assert write_in_crash(2, str(tmp_path)) is False
    assert write_in_crash(None) is write_in_crash(2, str(tmp_path / "nowhere")) is False
