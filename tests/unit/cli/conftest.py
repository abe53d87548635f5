"""A directory with a scenario, and registries with one kind of each."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from chaos.base.registry import NOUNS, Registry
from chaos.cli.main import entry
from tests.unit.cli import kit
from tests.unit.cli.kit import SCENARIO, Ended


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registries that know a job kind, a fault kind and a platform, whatever is installed."""
    known = {
        "chaos.jobs": EntryPoint("rehearsal", f"{kit.__name__}:JOB", "chaos.jobs"),
        "chaos.faults": EntryPoint("kill", f"{kit.__name__}:FAULT", "chaos.faults"),
        "chaos.platforms": EntryPoint("local", f"{kit.__name__}:PLATFORM", "chaos.platforms"),
    }

    def registry(group: str) -> Registry:
        full = f"chaos.{group}"
        return Registry(full, NOUNS[full], source=lambda name: [known[name]] if name in known else [])

    monkeypatch.setattr("chaos.run.prepare.prepare.registry", registry)
    monkeypatch.setattr("chaos.base.registry.registry", registry)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registries: None) -> Path:
    """The current directory, with scenarios/kill-rank.yaml."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "kill-rank.yaml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def chaos(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Calls the command line in this process."""

    def call(*arguments: str) -> Ended:
        capsys.readouterr()
        code = entry(arguments)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return call


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs are recorded, in a directory that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "reports"
