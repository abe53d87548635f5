"""The user's key is made once, by one of many, and is none when anybody else could know or have given it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.machine.job.launcher_environment import handed_on
from chaos.store.directory import RunDirectoryError, create_run, read_run, update_run, write_json
from chaos.store.key import KeyUnusable, key_file, known_seal, seal_of, source_of_key

TEXT = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a key."""
    for name in ("CHAOS_KEY", "CHAOS_KEY_FILE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def proves(seal: object) -> bool:
    assert seal is not None
    return seal_of("run").proves_document(seal.document({"run": "run"}))  # type: ignore[attr-defined]


def test_a_key_is_made_when_a_run_is_for_this_user_alone(home: Path) -> None:
    assert known_seal("run") is None, "who has made no run has no key"
    assert not (home / ".local").exists()
    made = seal_of("run")
    path = home / ".local/state/chaos/key"
    assert key_file() == path and path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o077 == 0
    assert list(path.parent.iterdir()) == [path]
    assert proves(made) and proves(known_seal("run"))


def test_harnesses_that_begin_at_once_have_one_key(home: Path) -> None:
    code = "from chaos.store.key import seal_of; print(seal_of('run').document({})['proof'])"
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    assert len({process.communicate()[0] for process in started}) == 1
    assert [path.name for path in (home / ".local/state/chaos").iterdir()] == ["key"]


def test_a_runner_is_given_its_key_by_a_file_or_a_variable(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given"
    given.write_text(TEXT + "\n")
    given.chmod(0o400)
    monkeypatch.setenv("CHAOS_KEY_FILE", str(given))
    by_file = seal_of("run")
    monkeypatch.delenv("CHAOS_KEY_FILE")
    monkeypatch.setenv("CHAOS_KEY", TEXT)
    assert proves(by_file) and not (home / ".local").exists()
    assert TEXT not in source_of_key()


def test_no_job_gets_the_key() -> None:
    assert handed_on({"CHAOS_KEY": TEXT, "CHAOS_KEY_FILE": "/x", "PATH": "/bin"}) == {"PATH": "/bin"}


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda path: path.chmod(0o640), "is open to others"),
        (linked, "is a link"),
        (piped, "is no plain file"),
        (lambda path: path.write_text("secret"), "64 hexadecimal digits"),
        (lambda path: path.write_text(""), "64 hexadecimal digits"),
        (lambda path: path.write_text(TEXT * 2), "64 hexadecimal digits"),
    ],
)
def test_a_key_that_others_may_know_is_none(spoil: Callable[[Path], object], why: str, tmp_path: Path) -> None:
    seal_of("run")
    spoil(key_file())
    with pytest.raises(KeyUnusable, match=why):
        known_seal("run")
    with pytest.raises(KeyUnusable, match=why):
        create_run(tmp_path / "reports", "a")
    assert [path.name for path in (tmp_path / "reports").iterdir()] == [".lock"], "no run is half made"


def test_a_key_of_another_user_is_none(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home))  # whoever this is has it by the path
    seal_of("run")
    monkeypatch.setattr("os.geteuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(KeyUnusable, match="belongs to user"):
        known_seal("run")


def test_a_home_that_is_anothers_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Entry:
        pw_dir = str(tmp_path / "own")

    monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid + 1)
    monkeypatch.setattr("pwd.getpwuid", lambda _: Entry)
    assert key_file() == tmp_path / "own/.local/state/chaos/key"
    monkeypatch.delenv("HOME")
    assert key_file() == tmp_path / "own/.local/state/chaos/key"


def test_without_any_home_it_is_said_how_to_give_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unknown(_: int) -> object:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(KeyUnusable, match="give CHAOS_KEY_FILE or CHAOS_KEY"):
        create_run(tmp_path / "reports", "a")


def test_a_named_file_that_is_not_there_is_not_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHAOS_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(KeyUnusable, match="there is no"):
        seal_of("run")
    assert not (tmp_path / "none").exists()


def test_what_somebody_else_has_changed_in_run_json_gets_no_proof(tmp_path: Path) -> None:
    run = create_run(tmp_path / "reports", "a")
    update_run(run.path, seed=1)
    assert run.seal.proves_document(read_run(run.path))
    write_json(run.path / "run.json", {**read_run(run.path), "inode": 1})
    with pytest.raises(RunDirectoryError, match="it was changed by another user or program"):
        update_run(run.path, seed=2)
    assert not run.seal.proves_document(read_run(run.path))
