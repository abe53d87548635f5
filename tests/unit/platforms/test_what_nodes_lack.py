"""What the ranks of a job need is looked for on their nodes, and not on the machine of the harness."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.refusal import Refused
from chaos.doctor import has_module
from chaos.history.ledger import Ledger
from chaos.machine.job.protocol import PlatformError
from chaos.machine.remote.client import HelperClient, Visitors
from chaos.platforms.nodes import Site
from chaos.platforms.remote_requirements import Asked, refuse_lacking
from chaos.run.prepare.needs import chosen_sdk, needs_of_job, needs_of_scenario, unknown_releases
from chaos.run.prepare.on_platform import on_platform
from chaos.run.prepare.prepare import known_names
from chaos.scenario.load import load_scenario
from chaos.scenario.models.job import Job
from chaos.scenario.models.scenario import Scenario
from tests.unit.machine.conftest import StartHelper

NEEDS = ("mindspore", "numpy", "msrun", "npu")
JOB = """\
chaos: 1
name: x
cluster: {ranks: 2}
job: {kind: mindspore, device: Ascend, script: train.py, steps: 9, protection: [TTP]}
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python that finds what lies in the directory ``modules``."""
    made = tmp_path / "bin" / "python"
    made.parent.mkdir()
    made.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path / "modules"}:$PYTHONPATH" exec /usr/bin/python3 -S "$@"\n')
    made.chmod(0o755)
    return made


def site(tmp_path: Path, *needs: str, **job: object) -> Site:
    nobody, given = cast("Visitors", None), Job.model_validate({"steps": 3, **job})
    where = ("token", 1, tmp_path, tmp_path, (), (tmp_path,), None)
    return Site(*where, Ledger(tmp_path / "undo.jsonl"), tmp_path, nobody, SYSTEM_CLOCK, given, needs=needs)


def lacking(tmp_path: Path, helper: HelperClient, python: Path, *needs: str, **job: object) -> str:
    """What is said of a node that lacks something; nothing where it has all."""
    try:
        refuse_lacking(site(tmp_path, *needs, **job), [Asked("node 0", str(python), helper)], "install it")
    except PlatformError as error:
        return str(error)
    return ""


def test_what_a_node_lacks_is_told_and_nothing_is_imported(
    start_helper: StartHelper, tmp_path: Path, python: Path
) -> None:
    helper, told = start_helper(), f"node 0: its Python, {python}, lacks what the job needs"
    assert lacking(tmp_path, helper, python, *NEEDS) == f"{told}: mindspore, numpy, msrun; install it"
    (tmp_path / "modules" / "mindspore").mkdir(parents=True)
    assert "mindspore" in lacking(tmp_path, helper, python, *NEEDS), "a directory is no module"
    (tmp_path / "modules" / "mindspore" / "__init__.py").write_text("raise SystemExit('imported')")
    assert lacking(tmp_path, helper, python, *NEEDS) == f"{told}: numpy, msrun; install it"
    (python.parent / "msrun").write_text("")
    assert lacking(tmp_path, helper, python, *NEEDS) == f"{told}: numpy; install it"
    assert lacking(tmp_path, helper, python, "mindspore", "msrun", "npu") == ""


def test_the_jobs_own_path_counts_and_what_it_brings_along_is_not_asked_for(
    start_helper: StartHelper, tmp_path: Path, python: Path
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "numpy.py").write_text("")
    helper, path = start_helper(), f"/nowhere{os.pathsep}{tmp_path / 'own'}"
    job = {"environment": {"PYTHONPATH": path}}
    assert "needs: msrun;" in lacking(tmp_path, helper, python, "numpy", "msrun", **job)
    assert helper.lacking(str(python), ["numpy"], path) == [], "what is found there is there"
    assert lacking(tmp_path, helper, tmp_path / "none", "numpy", **job) == ""


def test_the_nodes_own_path_counts_where_the_job_has_none(
    start_helper: StartHelper, tmp_path: Path, python: Path
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mindio_ttp.py").write_text("")
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "there")}
    assert "mindio_ttp" in lacking(tmp_path, start_helper(), python, "mindio_ttp")
    assert lacking(tmp_path, start_helper(own=own), python, "mindio_ttp") == ""


def test_what_python_prints_besides_is_no_module(start_helper: StartHelper, tmp_path: Path, python: Path) -> None:
    python.write_text(python.read_text().replace("exec ", "").rstrip() + "\necho and a last word\n")
    assert "needs: msrun;" in lacking(tmp_path, start_helper(), python, "msrun")


def test_a_python_that_does_not_say_it_is_no_node_that_has_it(start_helper: StartHelper, tmp_path: Path) -> None:
    helper, mute = start_helper(), tmp_path / "mute"
    said = lacking(tmp_path, helper, tmp_path / "none", *NEEDS)
    assert "node 0: it does not say what it has" in said and f"{tmp_path}/none cannot be run: No such file" in said
    for script, why in (("exit 0", "ended with 0: "), ("echo lacking:; exit 7", "ended with 7: lacking:")):
        mute.write_text(f"#!/bin/sh\n{script}\n")
        mute.chmod(0o755)
        assert f"{mute} {why}" in lacking(tmp_path, helper, mute, *NEEDS)


def test_a_job_that_needs_nothing_asks_no_node(tmp_path: Path) -> None:
    refuse_lacking(site(tmp_path, "npu"), [Asked("node 0", "python", cast("HelperClient", None))], "")


def scenario(tmp_path: Path, text: str = JOB, platform: str | None = None) -> Scenario:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "x.yaml").write_text(text)
    loaded = load_scenario(tmp_path / "x.yaml", settings={}, names=known_names())
    return on_platform(loaded, platform).cells[0].scenario


@pytest.mark.parametrize("platform", ["ssh", "kubernetes"])
def test_the_machine_of_the_harness_needs_neither_the_framework_nor_devices(tmp_path: Path, platform: str) -> None:
    met = {"mindspore", "msrun", "npu", "mindio_ttp"}
    assert met <= set(needs_of_scenario(scenario(tmp_path)))
    moved = scenario(tmp_path, platform=platform)
    assert platform in needs_of_scenario(moved) and not met & set(needs_of_scenario(moved))
    assert needs_of_job(moved) == ("mindspore", "numpy", "msrun", "mindio_ttp")


def test_of_an_image_with_a_python_of_its_own_the_harness_needs_nothing_either(tmp_path: Path) -> None:
    borrowing = JOB.replace("{ranks: 2}", "{ranks: 2, platform: docker}").replace(", device: Ascend", "")
    own = borrowing.replace("docker}", "docker, docker: {image: mine, python: /usr/bin/python3}}")
    assert "mindspore" in needs_of_scenario(scenario(tmp_path, borrowing))
    assert "mindspore" not in needs_of_scenario(scenario(tmp_path, own))
    assert "mindspore" in needs_of_job(scenario(tmp_path, own))


REHEARSED = """\
chaos: 1
name: x
cluster: {ranks: 2}
job: {kind: plain, steps: 9, protection: [TTP]}
"""


@pytest.mark.skipif(has_module("mindio_ttp"), reason="the vendor's package is installed here")
def test_the_vendors_sdk_is_looked_for_where_the_ranks_run(tmp_path: Path) -> None:
    here, there = scenario(tmp_path, REHEARSED), scenario(tmp_path, REHEARSED, "ssh")
    with pytest.raises(Refused, match="mindio_ttp is not installed for this Python"):
        chosen_sdk("vendor", here)
    assert chosen_sdk("vendor", there) == "vendor"
    assert "mindio_ttp" in needs_of_job(there, "vendor")
    assert chosen_sdk("auto", there) == chosen_sdk("standin", there) == "standin"
    assert "mindio_ttp" not in needs_of_job(there, "standin")
    without = scenario(tmp_path, REHEARSED.replace(", protection: [TTP]", ""), "ssh")
    assert "mindio_ttp" not in needs_of_job(without, "vendor")


def test_without_the_releases_of_the_nodes_a_baseline_is_nobody_elses(tmp_path: Path) -> None:
    known = {"mindspore": "2.10.0", "numpy": "1.26.4"}
    there = scenario(tmp_path, platform="ssh")
    assert unknown_releases(there, known) == ["mindio_ttp"]
    assert unknown_releases(there, {**known, "mindio_ttp": "7.3"}) == []
    assert unknown_releases(scenario(tmp_path), {}) == [], "the machine's own are looked at by the probes"
    rehearsed = scenario(tmp_path, REHEARSED, "ssh")
    assert (unknown_releases(rehearsed, known), unknown_releases(rehearsed, known, "vendor")) == ([], ["mindio_ttp"])
