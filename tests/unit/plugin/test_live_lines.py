"""With ``-s`` a run prints its lines while it goes on; a wait for cores is told in any case, and so is its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.progress import PlainProgress, is_wait_for_cores
from tests.unit.plugin.project import Project

pytestmark = pytest.mark.processes

WAIT = "all cores are leased: 0, 1 by process 815; it waits 4 h at most"
ERRORS = f"    0.1 s  the run begins\n{WAIT}\n"


def test_with_s_the_lines_of_a_run_are_shown_and_without_it_only_its_wait(project: Project) -> None:
    project.answer("pass", 0, errors=ERRORS)
    shown = project.run_apart("-s")
    shown.stdout.fnmatch_lines(["*0.1 s  the run begins", WAIT])
    quiet = project.run_apart()
    quiet.stdout.fnmatch_lines([f"kill-rank: {WAIT}"])
    quiet.stdout.no_fnmatch_line("*the run begins*")


def test_a_worker_tells_of_its_wait(project: Project) -> None:
    project.answer("pass", 0, errors=ERRORS)
    project.run_apart("-n", "1").stderr.fnmatch_lines([f"[[]gw0] kill-rank: {WAIT}"])


def test_a_wait_is_known_by_the_line_that_chaos_run_prints(tmp_path: Path) -> None:
    with (tmp_path / "lines").open("w") as stream:
        progress = PlainProgress(stream)
        progress.wait_for_cores("all cores are leased", 14_400)
        progress.note("the run waits for its ranks")
    lines = (tmp_path / "lines").read_text().splitlines()
    assert [is_wait_for_cores(line) for line in lines] == [True, False]


@pytest.mark.parametrize("configured", [True, False])
def test_the_runs_of_a_project_are_in_one_place_and_it_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch, configured: bool
) -> None:
    project.answer("pass", 0)
    root = project.pytester.path
    if configured:
        ini = root / "tox.ini"
        ini.write_text(f"{ini.read_text()}\nchaos_reports = runs\n")
        monkeypatch.chdir(root / "scenarios")
        result = project.pytester.runpytest_subprocess("kill-rank.yaml", "-p", "no:cacheprovider")
        place = root / "runs"
    else:
        command = (root / "tox.ini").read_text().partition("chaos_command = ")[2].strip()
        (root / "tox.ini").unlink()
        (root / "conftest.py").rename(root / "scenarios" / "conftest.py")
        result = project.run_apart("-o", f"chaos_command={command}")
        place = root / "reports"
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"chaos: 1 run in {place}"])
    (call,) = project.calls()
    assert call[call.index("--reports") + 1] == str(place)
