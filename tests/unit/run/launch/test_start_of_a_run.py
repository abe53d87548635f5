"""The job starts before what judges it is loaded."""

from __future__ import annotations

import json
import subprocess
import sys

LATE = ("numpy", "chaos.checks.judge", "chaos.report.analyze", "chaos.observe.checkpoints.checkpoint")
"""Modules that nothing needs before there is something to read or to judge."""


def test_the_driver_loads_nothing_that_judges() -> None:
    code = f"import json, sys, chaos.run.driver; print(json.dumps([name for name in {LATE} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
