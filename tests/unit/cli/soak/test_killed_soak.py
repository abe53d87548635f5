"""A soak of kills kills, heals, looks, counts, keeps what left something, and goes on where it was broken off."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from chaos.cli import codes
from chaos.cli.scenarios import load, pick_cells
from chaos.cli.soak import kill_soak
from chaos.cli.soak.kill_soak import stem_of
from chaos.live import current
from chaos.soak import left_by_harness
from chaos.soak.kill_soak import KillRecord, Moment

pytestmark = pytest.mark.processes

FAKE = """
import os, subprocess, sys, time
from pathlib import Path
reports = Path(sys.argv[sys.argv.index("--reports") + 1])
if sys.argv[1] == STARTS:
    null = subprocess.DEVNULL
    subprocess.Popen(["sleep", "SECONDS"], stdin=null, stdout=null, stderr=null, cwd="/")
if sys.argv[1] == "heal":
    if LEAVES:
        (reports / ".latest.00000000.new").write_text("")
    print('{"runs": []}')
    sys.exit()
made, run = reports / ".making", reports / "kill-rank-20260101-000000-00a0"
history = run / "history"
(made / "history").mkdir(parents=True)
(made / "written").write_text('{"run": "r", "token": "a-token-of-nobody"}')
(made / "written").rename(made / "run.json")  # whole from its beginning
made.rename(run)  # a kill finds all of it or none
for number in range(4):
    with (history / "harness.jsonl").open("a") as file:
        frame = f'"seq": {number}, "mono": {number}, "wall": 1'
        file.write(f'{{"event": "{"writer.start" if number == 0 else "tick"}", {frame}}}\\n')
    if number == 2 and OPENS:
        step = '"id": "x", "fault": null, "action": "odd", "arguments": {}, "note": ""'
        (run / "undo.jsonl").write_text(f'{{"record": "step", {step}}}\\n')
        if "whole" not in reports.name:
            time.sleep(60)  # until it is killed, however late that is
    time.sleep(0.02)
"""


def soak(
    reports: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    leaves: bool = False,
    times: int = 2,
    starts: str = "nothing",
    seconds: float = 1.0,
    opens: bool = False,
) -> int:
    fake = FAKE.replace("OPENS", str(opens))
    fake = fake.replace("LEAVES", str(leaves)).replace("STARTS", repr(starts)).replace("SECONDS", str(seconds))
    monkeypatch.setattr(kill_soak, "command_of", lambda _, arguments: [sys.executable, "-c", fake, *arguments])
    pairs = pick_cells([load("kill-rank.yaml", {})], ())
    return kill_soak.soak_kills(pairs, reports, times=times, jobs=1, settings={}, sdk="auto", seed=4, as_json=False)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    path = tmp_path / "reports"
    path.mkdir()
    return path


def test_kills_are_counted_and_what_was_clean_is_removed(
    reports: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert soak(reports, monkeypatch) == codes.PASS
    kills = [kill for kill in KillRecord(reports / "kills.jsonl").kills() if kill.killed]
    assert len(kills) == 2 and all(kill.left == [] for kill in kills)
    assert list((reports / "kills").iterdir()) == []
    assert "good    kill-rank: 2 of 2 killed, 0 with something to heal, 0 left something" in capsys.readouterr().out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_soak_of_kills_shows_its_clock_its_kills_and_the_runs(
    reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    places: list[Callable[[], Iterable[Path]]] = []
    monkeypatch.setattr(sys, "stderr", terminal)

    class Seen(current.CurrentRuns):
        def __init__(self, where: Callable[[], Iterable[Path]], mine: Callable[[int], bool]) -> None:
            places.append(where)
            super().__init__(where, mine)

    monkeypatch.setattr(current, "CurrentRuns", Seen)
    assert soak(reports, monkeypatch, times=1) == codes.PASS
    shown = terminal.getvalue()
    assert re.search(r"soak  \d+:\d\d  \d+ of 1 kills", shown)
    assert re.search(r"1 of 1 kills  1 clean", shown)
    assert re.search(r"clean +\d+  kill-rank: ", shown)
    (where,) = places
    (reports / "kills" / "kill-rank-0007").mkdir()
    assert [*where()] == [reports / "kills" / "kill-rank-0007"]


def test_a_soak_goes_on_where_it_was_broken_off(
    reports: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    soak(reports, monkeypatch, times=1)
    first = KillRecord(reports / "kills.jsonl").kills()
    (reports / "kills" / "kill-rank-0099").mkdir()  # it was killed itself in the middle of one
    soak(reports, monkeypatch, times=2)
    kills = KillRecord(reports / "kills.jsonl").kills()
    assert kills[: len(first)] == first and sum(kill.killed for kill in kills) == 2
    assert len({kill.number for kill in kills}) == len(kills), "no moment is drawn twice"
    assert "1 kills are recorded" in capsys.readouterr().err
    assert list((reports / "kills").iterdir()) == []


def test_a_kind_of_undo_that_no_kill_has_hit_is_waited_for(
    reports: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    soak(reports, monkeypatch, times=1, opens=True)
    first = KillRecord(reports / "kills.jsonl").kills()[0]
    assert (first.open, first.killed) == (["odd"], True)
    assert "after a step odd was open" in first.moment


def test_a_run_that_left_something_is_kept_and_fails_the_soak(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert soak(reports, monkeypatch, leaves=True, times=3) == codes.HARNESS
    bad = [kill for kill in KillRecord(reports / "kills.jsonl").kills() if kill.left]
    assert len(bad) >= 3 and all(kill.left == ["unfinished file .latest.00000000.new"] for kill in bad)
    assert {path.name for path in (reports / "kills").iterdir()} == {f"kill-rank-{kill.number:04d}" for kill in bad}


@pytest.mark.parametrize("command", ["run", "heal"])
def test_a_process_that_a_harness_or_a_heal_has_left_behind_is_found(
    command: str, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_by_harness, "_END_SECONDS", 0.0)
    monkeypatch.setattr(kill_soak, "draw", lambda *_: Moment(0.0, 1, None))  # when it was started
    assert soak(reports, monkeypatch, times=1, starts=command, seconds=60.25) == codes.HARNESS
    left = [text for kill in KillRecord(reports / "kills.jsonl").kills() for text in kill.left]
    for text in left:
        os.kill(int(text.split()[1].rstrip(":")), signal.SIGKILL)
    assert left and all(text.endswith(": sleep 60.25, which has to end with its harness") for text in left)


def test_two_cells_whose_values_differ_by_their_sign_have_directories_of_their_own() -> None:
    assert stem_of(("clock-skew", "offset=3600")) == "clock-skew-offset-3600"
    assert stem_of(("clock-skew", "offset=-3600")) == "clock-skew-offset-minus-3600"
