"""Commands that are run to their ends, and told to end before."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chaos.base.wait import wait_for
from chaos.soak.stoppable import Finished, StoppableRuns

SECONDS = 30

WAITS = """
import pathlib, signal, sys
pathlib.Path(sys.argv[1]).touch()
signal.pause()
"""


def test_what_a_command_wrote_and_how_it_ended_is_told() -> None:
    speaks = [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"]
    runs = StoppableRuns()
    assert runs.finish(speaks) == Finished(3, "out\n", "")
    assert runs.finish(speaks, keep_errors=True) == Finished(3, "out\n", "err\n")


def test_a_command_that_writes_in_another_encoding_ends_as_any_other() -> None:
    speaks = [
        sys.executable,
        "-c",
        r"import sys; sys.stdout.buffer.write(b'\xa1\xfa\n'); sys.stderr.buffer.write(b'\xff')",
    ]
    ended = StoppableRuns().finish(speaks, keep_errors=True)
    assert (ended.code, ended.output.isascii(), len(ended.errors)) == (0, False, 1)


def test_all_that_run_are_told_to_end_and_later_ones_too(tmp_path: Path) -> None:
    runs = StoppableRuns()
    places = [tmp_path / name for name in ("one", "two")]
    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(runs.finish, [sys.executable, "-c", WAITS, str(place)]) for place in places]
        wait_for("both run", lambda: all(place.exists() for place in places) or None, seconds=SECONDS)
        assert not runs.stopped
        runs.stop()
        assert [future.result(SECONDS).code for future in ended] == [-15, -15]
    assert runs.stopped
    assert runs.finish([sys.executable, "-c", "import signal; signal.pause()"]).code == -15
