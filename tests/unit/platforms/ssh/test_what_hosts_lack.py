"""What the ranks of a job need is looked for on their hosts, and not on the machine of the harness."""

from __future__ import annotations

import getpass
import os
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from chaos.history.clock import SYSTEM_CLOCK
from chaos.history.ledger import Ledger
from chaos.platforms.base import PlatformError
from chaos.platforms.hand.client import Visitors
from chaos.platforms.local import LocalPlatform
from chaos.platforms.nodes import Site
from chaos.platforms.ssh.inventory import Host
from chaos.platforms.ssh.platform import SshNode, SshPlatform
from chaos.run.on_platform import on_platform
from chaos.run.prepare import known_names, needs_of_job, needs_of_scenario, unknown_releases
from chaos.scenario.job import Job
from chaos.scenario.load import load_scenario
from chaos.scenario.ssh import Ssh

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


def on(host: Host, tmp_path: Path, python: Path, **job: object) -> SshNode:
    ledger, own = Ledger(tmp_path / "undo.jsonl"), replace(host, user=getpass.getuser(), python=str(python))
    settings, nobody = Ssh(inventory="hosts.yaml"), cast("Visitors", None)
    site = Site("token", 1, tmp_path, tmp_path, (), (tmp_path,), settings, ledger, python, nobody, SYSTEM_CLOCK)
    return SshNode(0, own, replace(site, job=Job.model_validate({"steps": 3, **job})), {})


def test_what_a_host_lacks_is_told_and_nothing_is_imported(host: Host, tmp_path: Path, python: Path) -> None:
    node = on(host, tmp_path, python)
    assert node.lacking(NEEDS) == ["mindspore", "numpy", "msrun"]
    (tmp_path / "modules" / "mindspore").mkdir(parents=True)
    assert node.lacking(NEEDS) == ["mindspore", "numpy", "msrun"], "a directory is no module"
    (tmp_path / "modules" / "mindspore" / "__init__.py").write_text("raise SystemExit('imported')")
    assert node.lacking(NEEDS) == ["numpy", "msrun"]
    (python.parent / "msrun").write_text("")
    assert node.lacking(NEEDS) == ["numpy"]


def test_the_jobs_own_path_counts_and_what_it_brings_along_is_not_asked_for(
    host: Host, tmp_path: Path, python: Path
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "numpy.py").write_text("")
    path = f"/nowhere{os.pathsep}{tmp_path / 'own'}"
    assert on(host, tmp_path, python, environment={"PYTHONPATH": path}).lacking(("numpy", "msrun")) == ["msrun"]
    nothing = on(host, tmp_path, tmp_path / "none", environment={"PYTHONPATH": path})
    assert nothing.lacking(("numpy",)) == []


def test_what_python_prints_besides_is_no_module(host: Host, tmp_path: Path, python: Path) -> None:
    python.write_text(python.read_text().replace("exec ", "").rstrip() + "\necho and a last word\n")
    assert on(host, tmp_path, python).lacking(("msrun",)) == ["msrun"]


def test_a_python_that_is_not_there_is_told(host: Host, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match=r"none/python ended with 127: .*No such file"):
        on(host, tmp_path, tmp_path / "none" / "python").lacking(NEEDS)


def test_a_job_that_needs_nothing_asks_no_host(host: Host, tmp_path: Path) -> None:
    assert on(host, tmp_path, tmp_path / "none").lacking(()) == []


def test_the_machine_of_the_harness_needs_neither_the_framework_nor_devices(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "x.yaml").write_text(JOB)
    loaded = load_scenario(tmp_path / "x.yaml", settings={}, names=known_names())
    here = needs_of_scenario(loaded.cells[0].scenario)
    assert {"mindspore", "msrun", "npu", "mindio_ttp"} <= set(here)
    for platform in ("ssh", "kubernetes"):
        moved = on_platform(loaded, platform).cells[0].scenario
        there = needs_of_scenario(moved)
        assert platform in there
        assert not {"mindspore", "msrun", "npu", "mindio_ttp"} & set(there)
        assert needs_of_job(moved) == ("mindspore", "numpy", "msrun", "mindio_ttp")


def test_without_the_releases_of_the_hosts_a_baseline_is_nobody_elses(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "x.yaml").write_text(JOB)
    scenario = load_scenario(tmp_path / "x.yaml", settings={}, names=known_names()).cells[0].scenario
    known = {"mindspore": "2.10.0", "numpy": "1.26.4"}
    assert unknown_releases(scenario, SshPlatform(), known) == ["mindio_ttp"]
    assert unknown_releases(scenario, SshPlatform(), {**known, "mindio_ttp": "7.3"}) == []
    assert unknown_releases(scenario, LocalPlatform(), {}) == [], "the machine's own are looked at by the probes"
