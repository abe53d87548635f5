"""Probes say what a machine lacks, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.doctor import BASE, Machine, Probe, all_probes, import_mindspore, needs_of, probe
from chaos.machine.probe import owners_of


def machine(tmp_path: Path, **changes: object) -> Machine:
    """A machine with nothing installed."""
    bare: dict[str, object] = {
        "executable": tmp_path / "bin" / "python",
        "reports": tmp_path / "reports",
        "version": lambda name: None,
        "has_module": lambda name: False,
        "which": lambda name, path=None: None,
        "cores": lambda: 4,
        "memory": lambda: 8 * 1024**3,
        "shared_memory": tmp_path,
    }
    return Machine(**{**bare, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "ok"), [("2.6.0", False), ("2.7.0", True), ("2.10.0", True), ("2.11.0", False), ("2.7.1rc1", True)]
)
def test_mindspore_is_wanted_from_2_7_to_2_10(tmp_path: Path, version: str, ok: bool) -> None:
    (found,) = probe(["mindspore"], machine(tmp_path, version=lambda name: version))
    assert (found.ok, found.seen, bool(found.advice)) == (ok, version, not ok)


@pytest.mark.parametrize(("version", "ok"), [("1.26.4", True), ("2.1.0", False)])
def test_numpy_2_is_refused(tmp_path: Path, version: str, ok: bool) -> None:
    (found,) = probe(["numpy"], machine(tmp_path, version=lambda name: version))
    assert found.ok is ok


def test_numpy_2_breaks_nothing_without_mindspore(tmp_path: Path) -> None:
    """The base install brings it."""
    (found,) = probe(["numpy"], machine(tmp_path, version={"numpy": "2.1.0"}.get))
    assert found.ok and "MindSpore needs numpy below 2" in found.seen


def test_another_package_with_a_command_chaos_is_named_with_the_way_round_it(tmp_path: Path) -> None:
    which = {"chaos": "/usr/bin/chaos"}
    alone = machine(tmp_path, owners=lambda name: ("chaos-ascend",), which=lambda name, path=None: which.get(name))
    (found,) = probe(["command"], alone)
    assert found.ok
    (found,) = probe(["command"], machine(tmp_path, owners=lambda name: ("chaos-ascend", "chaostoolkit")))
    assert not found.ok
    assert "chaostoolkit has a command chaos, too" in found.seen and "chaos-ascend or python -m chaos" in found.advice


def test_a_command_that_went_with_another_package_is_missing(tmp_path: Path) -> None:
    (found,) = probe(["command"], machine(tmp_path, owners=lambda name: ("chaos-ascend",)))
    assert not found.ok
    assert "no command chaos in" in found.seen and "--force-reinstall --no-deps chaos-ascend" in found.advice


def test_the_owners_of_a_command_are_those_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [SimpleNamespace(dist=SimpleNamespace(name=name)) for name in ("chaostoolkit", "chaos-ascend")]
    monkeypatch.setattr("chaos.machine.probe.metadata.entry_points", lambda **chosen: points)
    assert owners_of("chaos") == ("chaos-ascend", "chaostoolkit")


def test_msrun_of_another_environment_does_not_count(tmp_path: Path) -> None:
    (found,) = probe(["msrun"], machine(tmp_path, which=lambda name, path=None: None if path else "/usr/bin/msrun"))
    assert not found.ok
    assert "/usr/bin/msrun" in found.seen


def test_everything_missing_has_advice(tmp_path: Path) -> None:
    found = probe(all_probes(), machine(tmp_path, cores=lambda: 1, memory=lambda: 1, python=(3, 9, 1)))
    assert [result.need for result in found] == list(all_probes())
    assert all(result.ok is not bool(result.advice) for result in found)
    missing = {result.need for result in found if not result.ok}
    assert missing >= {"python", "cores", "memory", "mindspore", "numpy", "msrun", "mindio_ttp", "docker"}


def test_this_machine_can_do_what_every_run_needs(tmp_path: Path) -> None:
    assert [result.need for result in probe(BASE, Machine(reports=tmp_path / "new" / "reports")) if not result.ok] == []
    assert not (tmp_path / "new").exists()


def test_a_machine_that_does_not_tell_its_boot_can_run_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.base.clock.Path", lambda path: Path("/none", path.removeprefix("/")))
    found = {result.need: result for result in probe(BASE, Machine())}
    assert not found["pidfd"].ok and "boot_id cannot be read" in found["pidfd"].seen
    assert found["subreaper"].ok and found["pidfd"].advice


def test_a_reports_directory_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (found,) = probe(["reports"], machine(tmp_path, reports=tmp_path / "file" / "reports"))
    assert not found.ok


def test_an_unknown_need_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no probe for tpu"):
        probe(["tpu"], machine(tmp_path))


def test_needs_are_those_of_all_parts_after_the_base() -> None:
    @dataclass(frozen=True)
    class Kind:
        needs: tuple[str, ...]

    assert needs_of(Kind(("mindspore",)), Kind(()), Kind(("npu",))) == (*BASE, "mindspore", "npu")


def test_the_deep_probe_reports_what_the_import_says(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'ImportError: libnpu.so' >&2\nexit 1\n")
    broken.chmod(0o755)
    found = import_mindspore(machine(tmp_path, executable=broken))
    assert (found.ok, found.seen) == (False, "ImportError: libnpu.so")


def test_a_job_kind_brings_a_probe_of_its_own_but_replaces_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = SimpleNamespace(probes={name: lambda machine: Probe("oven", True, "hot") for name in ("oven", "python")})
    monkeypatch.setattr("chaos.doctor.probes.job_kinds", lambda: [own])
    found = probe(("oven", "python"), machine(tmp_path))
    assert [result.need for result in found] == ["python", "oven"]
    assert list(all_probes())[-1] == "oven"
