"""The last words of a process, as an error quotes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.run.launch.cause import last_error, newest_log

TRACEBACK = """\
[WARNING] ME(1:2,MainProcess): some warning
Traceback (most recent call last):
  File "train.py", line 1, in <module>
    import nobody_has_this
ModuleNotFoundError: No module named 'nobody_has_this'
[mindspore] Exiting.
"""
BORDER = "-" * 74
MPIRUN = f"""\
epoch: 1 step: 1, loss is 2.3
{BORDER}
There are not enough slots available in the system to satisfy the 3
slots that were requested by the application:

  python

Either request fewer slots for your application, or make more slots
available for use.
{BORDER}
"""
TORCHRUN = """\
ImportError: no such module
Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
============================================================
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            MPIRUN,
            "There are not enough slots available in the system to satisfy the 3 slots that were requested by the "
            "application:",
        ),
        (TORCHRUN, "ImportError: no such module"),
        (TORCHRUN.partition("\n")[2], "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"),
        (f"{BORDER}\n", BORDER),
        (TRACEBACK, "ModuleNotFoundError: No module named 'nobody_has_this'"),
        ("a.b.CommunicationTimeout: rank 0 waited\nbye\n", "a.b.CommunicationTimeout: rank 0 waited"),
        ("train.py: error: unrecognized arguments: --x\n", "train.py: error: unrecognized arguments: --x"),
        ("mindio_ttp: the controller cannot listen\n\n", "mindio_ttp: the controller cannot listen"),
        ("step 1\nstep 2 \n\n", "step 2"),
        ("RuntimeError: first\nRuntimeError: second\n", "RuntimeError: second"),
        ("x" * 1000, "x" * 300),
        ("\n \n", None),
        ("", None),
    ],
)
def test_the_line_that_names_the_error_is_quoted(text: str, said: str | None, tmp_path: Path) -> None:
    log = tmp_path / "worker_0.log"
    log.write_text(text)
    assert last_error(log) == said


def test_of_a_long_log_only_the_end_is_read_and_an_absent_one_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "worker_0.log"
    log.write_bytes(b"ValueError: long ago\n" + b"\xff\n" * 100_000 + b"KeyError: 'now'\n")
    assert last_error(log) == "KeyError: 'now'"
    assert last_error(tmp_path / "absent") is None


def test_the_log_of_the_latest_process_of_a_rank_counts(tmp_path: Path) -> None:
    assert newest_log(tmp_path, 2) == tmp_path / "worker_2.log"
    for second, name in enumerate(("worker_2.before-1.log", "worker_2.log", "worker_22.log")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (second, second))
    assert newest_log(tmp_path, 2) == tmp_path / "worker_2.log"
