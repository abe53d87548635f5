"""A whole run with a fault of a device: real processes, and tools that answer with the vendor's documented words."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.base.refusal import Refused
from chaos.base.registry import NOUNS, Registry
from chaos.doctor import PROBES, Machine, Probe
from chaos.heal.heal import heal_run
from chaos.history.reader import History, read_history
from chaos.report.analyze import analyze
from chaos.run.driver import run_cell
from chaos.run.options import RunOptions
from chaos.run.prepare.prepare import known_names, prepare
from chaos.scenario.load import load_scenario
from tests.kit.hosts.played_tools import write_tool, write_tools
from tests.kit.runs.recorded import SEEDS
from tests.unit.fake_job import kind
from tests.unit.run.fakes import Watcher
from tests.unit.run.own_cores import OwnCores

pytestmark = pytest.mark.processes

SCENARIO = """\
chaos: 1
name: device
cluster: {ranks: 2}
job: {kind: fake, device: Ascend, steps: 8}
allow: [npu-link-down]
faults: [{id: down, kind: npu-link-down, target: {rank: 1}, trigger: {step: 4}}]
deadlines: {start: 60s, fault: 60s, land: 20s, end: 60s, stop: 5s}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose tools are the machine's, and the fake job, on a device."""
    tools = tmp_path / "tools"
    tools.mkdir()
    write_tools(tools, tmp_path)
    write_tool(tools / "kubectl", "raise SystemExit('refused')")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(kind.FakeJobKind, "traits", replace(kind.KIND.traits, devices=frozenset({"Ascend"})))
    monkeypatch.setitem(PROBES, "root", lambda machine: Probe("root", True, "as if"))
    known = {
        "chaos.jobs": [EntryPoint("fake", f"{kind.__name__}:KIND", "chaos.jobs")],
        "chaos.faults": [
            EntryPoint(name, f"chaos.faults.ascend.{name.replace('-', '_')}:KIND", "chaos.faults")
            for name in ("npu-link-down", "device-reset")
        ],
        "chaos.platforms": [EntryPoint("local", "chaos.platforms.local.kind:KIND", "chaos.platforms")],
    }

    def registry(group: str) -> Registry:
        return Registry(f"chaos.{group}", NOUNS[f"chaos.{group}"], source=lambda name: known.get(name, ()))

    monkeypatch.setattr("chaos.run.prepare.prepare.registry", registry)
    monkeypatch.setattr("chaos.jobs.kind.registries", SimpleNamespace(registry=registry))
    monkeypatch.setattr("chaos.run.driver.Leases", lambda: OwnCores(tmp_path / "leases"))
    return tmp_path


def run(machine: Path, text: str = SCENARIO) -> Path:
    path = machine / "device.yaml"
    path.write_text(text)
    loaded = load_scenario(path, settings={}, names=known_names())
    prepared = prepare(loaded, loaded.cells[0], "standin", draw_seed=1)
    return run_cell(prepared, RunOptions(machine / "reports", "none"), Watcher()).run_dir


def history_of(run_dir: Path) -> History:
    return read_history(run_dir / "history")


def verdict(run_dir: Path, check: str) -> str:
    said = {result.verdict for result in analyze(run_dir).checks if result.name == check}
    return next(worst for worst in ("fail", "unknown", "pass") if worst in said)


def test_the_link_goes_down_under_the_job_and_is_up_again_afterwards(machine: Path) -> None:
    run_dir = run(machine)
    history = history_of(run_dir)
    (landed,) = history.select("fault.landed")
    (evidence,) = landed.data["evidence"]
    assert evidence["net_health"] == {"before": "Success", "after": "Fault"}
    assert evidence["device"]["card"] == 1
    (healed,) = history.select("fault.healed")
    assert healed.data["how"] == "recovered the network of card 1: net health Success"
    assert not (machine / "down").exists()
    assert verdict(run_dir, "injection") == "pass"
    (quarantine,) = history.select("quarantine")
    assert quarantine.data["known"] is False and "'refused'" in quarantine.data["how"]
    assert verdict(run_dir, "hygiene") == "unknown"


def test_a_link_that_cannot_be_recovered_is_a_failure_that_heal_mends_later(machine: Path) -> None:
    from chaos.faults.ascend import undo as undo_device

    (machine / "broken").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(undo_device, "LINK_SECONDS", 1.0)
        run_dir = run(machine)
        failed = history_of(run_dir).select("undo.failed")
    assert failed and "by hand, as root: hccn_tool -i 1 -cfg recovery" in failed[-1].data["why"]
    assert verdict(run_dir, "hygiene") == "fail"
    (machine / "broken").unlink()
    report = heal_run(run_dir)
    assert any("recovered the network of card 1" in done for done in report.done)
    assert not (machine / "down").exists()


def test_a_chip_is_reset_under_its_rank_and_seen_to_be_well_again(machine: Path) -> None:
    scenario = SCENARIO.replace("npu-link-down", "device-reset")
    run_dir = run(machine, scenario.replace("steps: 8", f"steps: 8, arguments: [--device={machine}]"))
    history = history_of(run_dir)
    (landed,) = history.select("fault.landed")
    (evidence,) = landed.data["evidence"]
    assert (evidence["command"], evidence["exit"]) == ("npu-smi set -t reset -i 1 -c 0", "exit code 1")
    assert (evidence["answer"]["status"], evidence["barrier"]["step"]) == ("OK", 4)
    (healed,) = history.select("fault.healed")
    assert healed.data["how"] == "NPU 1 chip 0 is OK"
    assert verdict(run_dir, "injection") == "pass"


def test_without_the_tool_the_run_is_refused_before_it_starts(machine: Path) -> None:
    (machine / "tools" / "hccn_tool").unlink()
    with pytest.raises(Refused, match="hccn_tool: neither on the PATH"):
        run(machine)
    assert not (machine / "reports").exists()


def test_a_card_that_the_cluster_quarantines_meanwhile_is_told(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "worker-1")
    write_tool(
        machine / "tools" / "kubectl",
        f"import sys\nfrom pathlib import Path\n"
        f"name = 'manual' if 'clusterd-manual-info-cm' in sys.argv else 'plugin'\n"
        f"text = Path({str(SEEDS)!r}, 'quarantine', name + '.json').read_text()\n"
        f"asked = Path({str(machine)!r}, 'asked-' + name)\n"
        "print(text if asked.exists() else text.replace('worker-1', 'other').replace('Ascend910-0', ''))\n"
        "asked.touch()\n",
    )
    run_dir = run(machine)
    assert verdict(run_dir, "hygiene") == "fail"
    (quarantine,) = history_of(run_dir).select("quarantine")
    assert quarantine.data["after"] == ["Ascend910-0", "Ascend910-2"]
    assert (quarantine.data["known"], quarantine.data["before"]) == (True, [])


def test_the_probe_finds_the_tools_where_the_path_has_them(machine: Path) -> None:
    assert PROBES["hccn_tool"](Machine()).ok and PROBES["npu"](Machine()).ok
