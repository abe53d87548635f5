"""The wheel holds what a stranger needs, and nothing that is the repository's own."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT
from tests.kit.jobs.built_wheel import build_wheel
from tests.kit.shipped import SHIPPED

pytestmark = [pytest.mark.processes, pytest.mark.nightly]


def test_the_wheel_holds_scenarios_with_their_jobs_and_pages(tmp_path: Path) -> None:
    wheel = zipfile.ZipFile(build_wheel(tmp_path))
    names = set(wheel.namelist())

    tracked = {path for path in SHIPPED.rglob("*") if path.suffix in (".yaml", ".py", ".sh", ".json")}
    wanted = {f"chaos/{path.relative_to(ROOT).as_posix()}" for path in tracked if path.name != "conftest.py"}
    assert {name for name in names if name.startswith("chaos/scenarios/")} == wanted

    packages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "chaos").rglob("*") if path.is_file()}
    assert {name for name in packages if "__pycache__" not in name} <= names

    man = {name.partition(".data/data/")[2] for name in names if ".data/" in name}
    assert man == {"share/man/man1/chaos.1", "share/man/man1/chaos-ascend.1"}

    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"chaos", "chaos_ascend"}
    program = "chaos/scenarios/mindformers/jobs/checkout/scripts/msrun_launcher.sh"
    assert wheel.getinfo(program).external_attr >> 16 & 0o111, "a program stays one"
