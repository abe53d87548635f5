"""Every command that takes a path says in words what is wrong with one that holds no scenario, or no run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.cli import codes
from chaos.cli.main import entry

pytestmark = pytest.mark.processes

COMMANDS = ("validate", "plan", "list", "analyze", "heal", "compare", "logs")


@pytest.fixture
def garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of what is neither a scenario nor a run. Nobody will ever write into its pipes."""
    monkeypatch.setattr("chaos.base.named_files.DOCUMENT_SECONDS", 0.1)
    monkeypatch.setattr("chaos.base.named_files.LOG_SECONDS", 0.1)
    folder = tmp_path / "garbage"
    folder.mkdir()
    os.mkfifo(folder / "pipe.yaml")
    os.mkfifo(folder / "plan.json")
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "zero.yaml").symlink_to("/dev/zero")
    (folder / "up").symlink_to("..")
    (folder / "folder.yaml").mkdir()
    (folder / "bytes.yaml").write_bytes(bytes(range(256)))
    (folder / "a\nb\udcff.yaml").write_bytes(b"chaos: 1\nname: [\n")
    (folder / "run.json").write_bytes(b"[" * 10_000)
    (folder / "undo.jsonl").write_bytes(b"\0" * 1000 + b"\n")
    (folder / "history").write_bytes(b"")
    return folder


def call(capsys: pytest.CaptureFixture[str], command: str, path: Path, reports: Path) -> tuple[int, str]:
    where = [str(path)] * (2 if command == "compare" else 1)
    more = ["--reports", str(reports)] if command in ("analyze", "heal", "compare") else []
    code = entry([command, *where, *more])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "name",
    ["", "pipe.yaml", "loop.yaml", "zero.yaml", "folder.yaml", "bytes.yaml", "a\nb\udcff.yaml", "none", "run.json"],
)
def test_garbage_is_refused_in_words(
    garbage: Path, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    code, text = call(capsys, command, garbage / name, garbage.parent / "reports")
    assert text.strip()
    assert "Traceback" not in text and "the harness itself failed" not in text, text
    wanted = {codes.USAGE}
    if command == "heal" and name == "":
        wanted = {codes.HARNESS}  # a run, by its run.json, that cannot be healed
    if command == "list" and name == "folder.yaml":
        wanted = {codes.PASS}  # an empty directory has no scenarios, which is an answer
    if command == "logs" and name in ("folder.yaml", "bytes.yaml", "a\nb\udcff.yaml", "run.json"):
        wanted = {codes.PASS}  # any plain file can be a log; what it holds is counted as unknown
    assert code in wanted, text


def test_a_reports_directory_of_garbage_can_be_healed(garbage: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = entry(["heal", "--reports", str(garbage.parent)])
    captured = capsys.readouterr()
    assert code == codes.HARNESS
    assert "garbage" in captured.out and "the harness itself failed" not in captured.err
