"""The exception that ended a process stands at the end of its log, with the first one of its chain."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.observe.logs.traceback_end import MOST_BEHIND, MOST_BYTES, LoggedError, error_at_end

OWN = """Traceback (most recent call last):
  File "/job/train.py", line 7, in save
    shape = state.shape
            ^^^^^^^^^^^
AttributeError: 'NoneType' object has no attribute 'shape'
"""
LOST = """Traceback (most recent call last):
  File "/job/train.py", line 3, in step
    reduce(gradients)
mindspore.errors.CommunicationError: a collective was ended
----------------------------------------------------
- C++ Call Stack
"""
HANDLING = "\nDuring handling of the above exception, another exception occurred:\n\n"
CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
BEHIND = "[WARNING] closing\n"
AN_OWN = LoggedError("AttributeError", "'NoneType' object has no attribute 'shape'")
A_LOST = LoggedError("CommunicationError", "a collective was ended")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (OWN, AN_OWN),
        (f"{LOST}step 3\n{OWN}{BEHIND * 3}", AN_OWN),
        (f"{LOST}{HANDLING}{OWN}", LoggedError(AN_OWN.name, AN_OWN.text, A_LOST, wrapped=False)),
        (f"{LOST}{CAUSE}{OWN}", LoggedError(AN_OWN.name, AN_OWN.text, A_LOST)),
        (f"{OWN}{HANDLING}{LOST}{CAUSE}{OWN}", LoggedError(AN_OWN.name, AN_OWN.text, AN_OWN, wrapped=False)),
        ("".join(f"[rank3]: {line}\n" for line in OWN.splitlines()), AN_OWN),
        ("Traceback (most recent call last):\n  File\nKeyboardInterrupt\n", LoggedError("KeyboardInterrupt", "")),
        (f"{OWN}{BEHIND * (MOST_BEHIND + 1)}", None),
        (f"help: {OWN}", None),
        ("".join(f"  {line}\n" for line in OWN.splitlines()), None),
        ("Traceback (most recent call last):\n  File", None),
        ("", None),
    ],
)
def test_the_last_traceback_of_a_log_is_told(tmp_path: Path, text: str, found: LoggedError | None) -> None:
    (tmp_path / "worker_0.log").write_text(f"epoch: 1 step: 1, loss is 2.3\n{text}")
    assert error_at_end(tmp_path / "worker_0.log") == found


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    path.write_text("x" * 99 + "\n" + "a line\n" * MOST_BYTES + OWN)
    assert error_at_end(path) == AN_OWN
