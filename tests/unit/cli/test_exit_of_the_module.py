"""``python -m chaos`` ends with the exit code of the command, also after an interrupt that the command has handled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

INTERRUPTED = """
import chaos.cli.main

def entry():
    try:
        exec("raise KeyboardInterrupt")  # a signal may come while a dataclass is made, which executes a string
    except KeyboardInterrupt:
        return 0

chaos.cli.main.entry = entry
"""


def test_a_handled_interrupt_leaves_the_exit_code_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-m", "chaos"], env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
