"""The first minute of a stranger: the wheel in a clean environment, and four commands in any directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.jobs.built_wheel import build_wheel, install_wheel
from tests.kit.jobs.newcomer import AS_SOMEBODY, LOCALES, make_gbk
from tests.kit.shipped import SHIPPED

pytestmark = [pytest.mark.processes, pytest.mark.nightly]

Command = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the programs of a clean environment with the wheel."""
    place = tmp_path_factory.mktemp("stranger")
    return install_wheel(build_wheel(place / "build"), place / "environment")


@pytest.fixture(scope="session")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for the locale zh_CN.GBK, which few machines have."""
    return tmp_path_factory.mktemp("locales")


@pytest.fixture(params=LOCALES)
def chaos(request: pytest.FixtureRequest, programs: Path, locales: Path, tmp_path: Path) -> Command:
    """Calls the command as a user without root's rights, in a directory with blanks and Chinese letters."""
    locale = make_gbk(locales) if request.param == "gbk" else {}
    place = tmp_path / "我的 first test"
    home = tmp_path / "home"
    place.mkdir()
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("TMPDIR", "LD_LIBRARY_PATH")}
    environment = {**kept, **locale, **LOCALES[request.param], "PATH": f"{programs}:/usr/bin:/bin", "HOME": str(home)}

    def call(*arguments: str, name: str = "chaos") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*_not_as_root(), str(programs / name), *arguments], cwd=place, env=environment, capture_output=True
        )

    return call


def test_a_stranger_lists_plans_and_runs_what_the_wheel_holds(chaos: Command, tmp_path: Path) -> None:
    listed = chaos("list", "--json")
    assert listed.returncode == 0, listed.stderr.decode(errors="replace")
    scenarios = json.loads(listed.stdout)["scenarios"]
    assert len(scenarios) == len([path for path in SHIPPED.rglob("*.yaml") if path.name != "known-findings.yaml"])
    assert all("site-packages" in scenario["file"] for scenario in scenarios)

    planned = chaos("plan", "kill-rank", name="chaos-ascend")
    assert (planned.returncode, b"TTP" in planned.stdout) == (0, True), planned.stderr.decode(errors="replace")

    made = chaos("init", "--example")
    assert made.returncode == 0, made.stderr.decode(errors="replace")
    for scenario in ("plain-kill-rank", "chaos-example/plain.yaml"):
        ended = chaos("run", scenario)
        assert ended.returncode == 0, ended.stdout.decode(errors="replace") + ended.stderr.decode(errors="replace")
        assert b": pass" in ended.stdout
    (place,) = (path for path in tmp_path.iterdir() if path.name != "home")
    runs = [path for path in (place / "reports").iterdir() if not path.is_symlink()]
    assert sum((run / "result.json").is_file() for run in runs) == 2


def test_an_own_scenario_goes_before_one_of_the_same_name(chaos: Command, tmp_path: Path) -> None:
    (place,) = (path for path in tmp_path.iterdir() if path.name != "home")
    (place / "scenarios").mkdir()
    shutil.copy(SHIPPED / "mechanisms" / "ttp" / "plain-kill-rank.yaml", place / "scenarios" / "plain-kill-rank.yaml")
    files = [one["file"] for one in json.loads(chaos("list", "--json").stdout)["scenarios"]]
    named = [file for file in files if file.endswith("/plain-kill-rank.yaml")]
    assert len(named) == 1 and "site-packages" not in named[0]


@pytest.mark.parametrize("chaos", ["streams"], indirect=True)
def test_the_defects_in_files_are_tested_without_mindspore(chaos: Command) -> None:
    ended = chaos("selftest", "--layer", "files", "--json")
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")
    result = json.loads(ended.stdout)
    assert result["caught"] == result["total"] > 50
    assert len(result["left_out"]) > 100


def _not_as_root() -> list[str]:
    if os.geteuid() != 0:
        return []
    tried = subprocess.run([*AS_SOMEBODY, "true"], capture_output=True)
    return AS_SOMEBODY if tried.returncode == 0 else []
