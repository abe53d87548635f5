"""A directory of a fuzzed process is gone after each of its endings, and not before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

MAKE = """
import os, signal, sys
from pathlib import Path
from tests.fuzz.swept import swept_directory
directory = swept_directory("fuzz-", Path(sys.argv[1]))
(directory / "below").mkdir()
(directory / "below" / "file").write_bytes(b"1")
print(directory, flush=True)
sys.stdin.readline()
"""

ENDINGS = {
    "return": "",
    "exception": "raise RuntimeError('bad input')",
    "engine": "os._exit(0)",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)",
    "SIGINT": "os.killpg(os.getpid(), signal.SIGINT)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_is_gone_after_every_ending(ending: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKE + ENDINGS[ending], str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, start_new_session=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        assert directory.parent == tmp_path and (directory / "below" / "file").exists()
        process.communicate("\n")  # returns when the last one who holds the pipes has ended, which is the sweeper
    assert list(tmp_path.iterdir()) == []
