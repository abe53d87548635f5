"""The kernels that a rehearsal of MindFormers puts in compute what the operators of Ascend are documented to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "mindformers_kernels.py"


def test_each_kernel_gives_what_numpy_gives(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in ("norm", "outer", "embedding's gradient", "attention", "attention, flat", "overflow", "no overflow"):
        assert f"{name}\n" in done.stdout
    assert "refused: the rehearsal's attention has no dropout" in done.stdout
