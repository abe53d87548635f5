"""The kernels that a rehearsal of MindFormers puts in compute what the operators of Ascend are documented to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "mindformers_kernels.py"


def test_each_kernel_gives_what_numpy_gives(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in ("norm", "outer", "embedding's gradient", "overflow", "no overflow"):
        assert f"{name}\n" in done.stdout
    masked = [line for line in done.stdout.splitlines() if line.startswith("attention ")]
    assert len(masked) == 14
    for cause in ("has no dropout", "knows the sparse modes 0 to 3, not 4", "knows no bands: pre_tokens 3"):
        assert f"refused: the rehearsal's attention {cause}" in done.stdout
    for name in ("shift", "dropped", "padding", "prefix", "actual queries", "actual keys"):
        assert f"refused: {name}\n" in done.stdout
    assert "taken: mask\n" in done.stdout
