"""The set-up of a fresh machine: once, safely, and again only when something has changed."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import chaos
from chaos import bootstrap


class Setup:
    """A repository in which making the environment and running pip are recorded instead of done."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.done: list[str] = []
        self.status: int | BaseException = 0
        self.missing = False
        self.not_to_be_had = ""
        self.compiled: list[bool] = []
        (root / "pyproject.toml").write_text("[project]\n")
        monkeypatch.setattr(bootstrap, "_make_venv", self._make)
        monkeypatch.setattr(bootstrap, "_has_pip", lambda venv: (venv / "made").exists())
        monkeypatch.setattr(bootstrap, "_pip_install", self._install)

    def _make(self, venv: Path) -> None:
        self.done.append("venv")
        (venv / "made").touch()
        (venv / "bootstrap.installing").unlink(missing_ok=True)

    def _install(
        self, root: Path, venv: Path, extras: list[str], package: list[str] | None = None, *, compiled: bool = True
    ) -> int:
        self.done.append(" ".join(package) if package else ",".join(extras))
        self.compiled.append(compiled)
        if self.not_to_be_had in extras:
            return 1
        if package and self.missing:
            return 1
        if isinstance(self.status, BaseException):
            raise self.status
        return self.status

    def prepare(self, *extras: str) -> list[str]:
        """Prepare, and return what that took."""
        self.done = []
        assert bootstrap.prepare(self.root, set(extras)) == self.venv / "bin"
        return self.done


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    """A fresh repository."""
    return Setup(tmp_path, monkeypatch)


def test_the_second_call_does_nothing(setup: Setup) -> None:
    assert setup.prepare("mindspore") == ["venv", "mindspore"]
    assert setup.prepare("mindspore") == []


def test_more_extras_are_added_and_then_kept(setup: Setup) -> None:
    setup.prepare("mindspore")
    assert setup.prepare("mindspore", "test") == ["mindspore,test"]
    assert setup.prepare("mindspore") == []
    (setup.root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert setup.prepare("mindspore") == ["mindspore,test"]


def test_an_installation_that_was_cut_off_is_made_anew(setup: Setup) -> None:
    setup.status = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        setup.prepare("mindspore")
    setup.status = 0
    assert setup.prepare("mindspore") == ["venv", "mindspore"]


def test_pip_that_says_no_leaves_an_environment_to_go_on_with(setup: Setup) -> None:
    setup.status = 1
    with pytest.raises(bootstrap.SetupFailed, match="pip failed with status 1"):
        setup.prepare("mindspore")
    setup.status = 0
    assert setup.prepare("mindspore") == ["mindspore"]


def test_pip_that_was_killed_does_not(setup: Setup) -> None:
    setup.status = -9
    with pytest.raises(bootstrap.SetupFailed, match="pip failed with status -9"):
        setup.prepare("mindspore")
    setup.status = 0
    assert setup.prepare("mindspore") == ["venv", "mindspore"]


@pytest.mark.parametrize("key", ["python", "place"])
def test_another_python_or_place_needs_another_environment(setup: Setup, key: str) -> None:
    setup.prepare("mindspore")
    stamp = setup.venv / "bootstrap.stamp"
    stamp.write_text(stamp.read_text().replace(str(bootstrap.read_stamp(stamp)[key]), "other"))
    assert setup.prepare("mindspore") == ["venv", "mindspore"]


def test_a_damaged_stamp_means_pip_runs_again(setup: Setup) -> None:
    setup.prepare("mindspore")
    (setup.venv / "bootstrap.stamp").write_text("{")
    assert setup.prepare("mindspore") == ["mindspore"]


def test_a_second_bootstrap_waits_for_the_first(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.prepare("mindspore")
    held = (setup.venv / "bootstrap.lock").open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        held.close()

    monkeypatch.setattr(bootstrap, "say", say)
    assert setup.prepare("mindspore") == []
    assert said == ["another bootstrap is at work here; waiting for it"]


NO_DEPS = f"--no-deps {bootstrap.MINDFORMERS}"


def test_mindformers_is_added_without_what_its_wheel_asks_for_once(setup: Setup) -> None:
    setup.prepare("mindspore", "test")
    setup.done = []
    assert bootstrap.add_mindformers(setup.root)
    assert setup.done == ["mindformers,mindspore,test", NO_DEPS]
    assert bootstrap.add_mindformers(setup.root)
    assert len(setup.done) == 2
    assert setup.prepare("mindspore", "test") == []
    (setup.root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    setup.prepare("mindspore", "test")
    assert bootstrap.add_mindformers(setup.root)
    assert setup.done[-1] == NO_DEPS


def test_what_mindformers_imports_comes_along_with_the_first_installation(setup: Setup) -> None:
    bootstrap.prepare(setup.root, {"mindspore", "test"}, bootstrap.COMPANIONS, compiled=False)
    assert bootstrap.add_mindformers(setup.root)
    assert setup.done == ["venv", "mindformers,mindspore,test", NO_DEPS]
    assert setup.compiled == [False, True]
    assert setup.prepare("mindspore") == []


def test_where_it_cannot_be_had_the_rest_is_installed_without_it(setup: Setup) -> None:
    setup.not_to_be_had = "mindformers"
    bootstrap.prepare(setup.root, {"mindspore", "test"}, bootstrap.COMPANIONS)
    assert setup.done == ["venv", "mindformers,mindspore,test", "mindspore,test"]
    assert not bootstrap.add_mindformers(setup.root)
    assert setup.prepare("mindspore", "test") == []


@pytest.mark.parametrize("extra", ["docs", "mindformers"])
def test_an_optional_extra_that_cannot_be_had_costs_no_other(setup: Setup, extra: str) -> None:
    (other,) = bootstrap.OPTIONAL - {extra}
    setup.not_to_be_had = extra
    bootstrap.prepare(setup.root, {"test"}, bootstrap.OPTIONAL)
    stamp = bootstrap.read_stamp(setup.venv / "bootstrap.stamp")
    assert stamp["extras"] == sorted([other, "test"])
    assert setup.prepare("test") == []


@pytest.mark.parametrize("where", ["the package", "its companions"])
def test_without_mindformers_the_set_up_goes_on_and_says_why(
    setup: Setup, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    setup.prepare("mindspore", "test")
    setup.missing, setup.status = where == "the package", 0 if where == "the package" else 1
    assert not bootstrap.add_mindformers(setup.root)
    assert "cannot be had here: pip failed with status 1" in capsys.readouterr().out
    setup.status = 0
    assert setup.prepare("mindspore", "test") == []
    setup.missing = False
    assert bootstrap.add_mindformers(setup.root)


def test_pytorch_is_added_once_and_in_its_build_for_the_cpu(setup: Setup) -> None:
    setup.prepare("mindspore", "test")
    setup.done = []
    for _ in range(2):
        assert bootstrap.add_pytorch(setup.root)
    assert setup.done == [bootstrap.PYTORCH]
    assert bootstrap.PYTORCH.endswith("+cpu")


def test_pip_that_was_killed_amid_mindformers_leaves_nothing_to_trust(setup: Setup) -> None:
    setup.prepare("mindspore", "test")
    setup.status = -9
    with pytest.raises(bootstrap.SetupFailed, match="pip ended with status -9 while it installed mindformers"):
        bootstrap.add_mindformers(setup.root)
    setup.status = 0
    assert setup.prepare("mindspore", "test") == ["venv", "mindspore,test"]


APT = """#!/bin/sh
echo "$@" >> "$LOG"
[ "$3" = "$FAILS" ] && { echo 'E: first' >&2; echo 'E: Unable to locate package.' >&2; exit 100; }
[ "$3" = install ] && { echo noise; ln -s /bin/true "$PLACE/chromium"; }
exit 0
"""


class Apt:
    """A PATH with an apt-get that writes its arguments down, and no browser."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.log = place / "programs", place / "log"
        self.place.mkdir()
        self.program = self.place / "apt-get"
        self.program.write_text(APT)
        self.program.chmod(0o755)
        for name in ("sh", "ln"):
            (self.place / name).symlink_to(f"/bin/{name}")
        monkeypatch.setenv("PATH", str(self.place))
        monkeypatch.setenv("PLACE", str(self.place))
        monkeypatch.setenv("LOG", str(self.log))
        monkeypatch.setattr(os, "geteuid", lambda: 0)

    def calls(self) -> list[str]:
        """Return what was asked of apt-get, in order."""
        return [line.split()[2] for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    """A machine of root without a browser."""
    return Apt(tmp_path, monkeypatch)


def test_a_browser_is_installed_once_without_noise(apt: Apt, capfd: pytest.CaptureFixture[str]) -> None:
    assert bootstrap.add_browser()
    assert apt.calls() == ["update", "install"]
    assert bootstrap.add_browser()
    assert apt.calls() == ["update", "install"]
    assert capfd.readouterr().out == "[bootstrap] installing chromium for the tests of report pages\n"


@pytest.mark.parametrize("step", ["update", "install"])
def test_without_a_browser_the_set_up_goes_on_and_says_why_in_a_line(
    apt: Apt, step: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAILS", step)
    assert not bootstrap.add_browser()
    said = capfd.readouterr()
    assert said.err == "" and said.out.splitlines()[1:] == [
        f"[bootstrap] no browser: apt-get {step} ended with status 100 (E: Unable to locate package). "
        "The tests of report pages in a browser are skipped."
    ]


def test_who_is_not_root_or_has_no_apt_get_is_not_asked(
    apt: Apt, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not bootstrap.add_browser()
    apt.program.unlink()
    assert not bootstrap.add_browser()
    assert apt.calls() == []
    said = capsys.readouterr().out
    assert "only root can install one here" in said and "there is no apt-get" in said


def test_the_page_tells_the_version_that_the_set_up_installs() -> None:
    page = (bootstrap.ROOT / "docs" / "guides" / "mindformers.md").read_text()
    assert f"pip install {NO_DEPS}" in page


@pytest.mark.nightly
def test_a_real_environment_keeps_the_lock_and_loses_the_rest(tmp_path: Path) -> None:
    venv = tmp_path / ".venv"
    (venv / "lib").mkdir(parents=True)
    (venv / "lib" / "half.py").touch()
    (venv / "bootstrap.lock").touch()
    bootstrap._make_venv(venv)
    assert bootstrap._has_pip(venv)
    assert (venv / "bootstrap.lock").exists()
    assert not (venv / "lib" / "half.py").exists()


def test_without_ensurepip_the_package_to_install_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(bootstrap.SetupFailed, match=rf"apt install python3\.{sys.version_info[1]}-venv"):
        bootstrap._make_venv(tmp_path)


def phases(*codes: str) -> list[tuple[str, list[str]]]:
    """Phases that run Python code; the program is called pytest."""
    return [(f"phase {number}", ["pytest", "-c", code]) for number, code in enumerate(codes, 1)]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory of programs in which pytest is Python."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pytest").symlink_to(sys.executable)
    return tmp_path / "bin"


def test_the_tests_end_with_the_closing_lines_of_pytest(
    tmp_path: Path, programs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = bootstrap.run_tests(tmp_path, programs, phases("print('a\\n== 2 passed ==')", "print('== 3 passed ==')"))
    lines = capfd.readouterr().out.splitlines()
    assert (code, lines[-2:]) == (0, ["== 2 passed ==", "== 3 passed =="])
    assert [line.split()[1:3] for line in lines[-5:-2]] == [["phase", "1"], ["phase", "2"], ["in", "all"]]


def test_the_first_phase_that_fails_ends_the_tests(
    tmp_path: Path, programs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = bootstrap.run_tests(tmp_path, programs, phases("print('== 1 failed =='); exit(1)", "print('never')"))
    output = capfd.readouterr().out
    assert (code, output.splitlines()[-1]) == (1, "== 1 failed ==")
    assert re.search(r"phase 1 .* FAILED\n", output) and output.count("FAILED") == 1 and "== never" not in output


def test_the_times_are_those_of_the_set_up_of_each_phase_and_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap.say_times([("set-up", 0.25), ("mypy", 59.94), ("unit tests", 3660.4)], None)
    assert [line.partition("] ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "times",
        "  set-up              0.2 s",
        "  mypy               59.9 s",
        "  unit tests    61 min 00 s",
        "  in all        62 min 01 s",
    ]


def test_quick_runs_the_linters_and_a_choice_of_tests_that_are_there() -> None:
    *linters, (_, command) = bootstrap.quick_phases([])
    assert linters == bootstrap.PHASES[:2] == bootstrap.LINTERS
    assert command[-len(bootstrap.QUICK) :] == bootstrap.QUICK
    assert [path for path in bootstrap.QUICK if not (bootstrap.ROOT / path).exists()] == []


def test_quick_runs_the_tests_that_it_is_given() -> None:
    assert bootstrap.quick_phases(["tests/unit/plan", "-k", "rsc"])[-1][1] == [
        "pytest",
        "-q",
        "tests/unit/plan",
        "-k",
        "rsc",
    ]


@pytest.mark.parametrize(("command", "installed"), [("quick", False), ("test", True)])
def test_quick_needs_what_the_tests_need_but_mindformers_and_a_browser(
    command: str, installed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    extras: list[set[str]] = []
    added: list[Path] = []
    ran: list[list[tuple[str, list[str]]]] = []

    def prepare(root: Path, needed: set[str], optional: frozenset[str], *, compiled: bool) -> Path:
        extras.append(needed | optional)
        assert not compiled
        return tmp_path

    def run_tests(root: Path, programs: Path, phases: list[tuple[str, list[str]]], setup: float) -> int:
        ran.append(phases)
        return 1

    monkeypatch.setattr(bootstrap, "prepare", prepare)
    monkeypatch.setattr(bootstrap, "add_mindformers", added.append)
    monkeypatch.setattr(bootstrap, "add_pytorch", added.append)
    monkeypatch.setattr(bootstrap, "add_browser", lambda: added.append(tmp_path))
    monkeypatch.setattr(bootstrap, "run_tests", run_tests)
    assert bootstrap.main([command]) == 1
    assert extras == [{"mindspore", "test"} | (bootstrap.OPTIONAL if installed else frozenset())]
    assert added == ([bootstrap.ROOT, bootstrap.ROOT, tmp_path] if installed else [])
    assert ran == [bootstrap.PHASES if command == "test" else bootstrap.quick_phases([])]


def test_programs_of_the_environment_come_first_on_the_path(tmp_path: Path) -> None:
    variables = bootstrap.environment(tmp_path / ".venv" / "bin")
    assert variables["PATH"].split(os.pathsep)[0] == str(tmp_path / ".venv" / "bin")
    assert variables["VIRTUAL_ENV"] == str(tmp_path / ".venv")


def test_what_a_phase_starts_keeps_its_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    program = tmp_path / "pytest"
    program.write_text(f"#!{sys.executable}\nimport sys\nprint('kept' if not sys.dont_write_bytecode else 'none')\n")
    program.chmod(0o755)
    assert bootstrap.run_tests(tmp_path, tmp_path, [("unit tests", ["pytest"])]) == 0
    assert b"\nkept\n" in capfdbinary.readouterr().out


@pytest.mark.parametrize(("arguments", "code"), [([], 64), (["--help"], 0), (["test", "tests/unit"], 64)])
def test_bad_usage_does_not_start_a_set_up(arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "prepare", lambda root, extras: pytest.fail("it was started"))
    assert bootstrap.main(arguments) == code


def test_a_python_that_is_too_old_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap, "OLDEST", (99, 0))
    assert bootstrap.main(["test"]) == bootstrap.FAILED
    assert "Python 99.0 or later is needed" in capsys.readouterr().out


def test_it_needs_the_standard_library_only() -> None:
    code = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]; import bootstrap"
    directory = Path(bootstrap.__file__).parent
    assert subprocess.run([sys.executable, "-S", "-c", code], cwd=directory).returncode == 0


def test_no_part_of_chaos_hides_a_standard_module_from_it() -> None:
    # As a script, bootstrap.py has the directory chaos/ at the head of its module path.
    names = {path.stem for path in Path(chaos.__file__).parent.iterdir()}
    assert names & sys.stdlib_module_names == set()


@pytest.mark.parametrize("mark", ["processes", ""])
def test_every_test_of_the_repository_is_of_one_phase(mark: str) -> None:
    phases = [words for _, words in bootstrap.PHASES if words[0] == "pytest"]
    homes = {path.parent for path in (bootstrap.ROOT / "tests").rglob("test_*.py")} | {bootstrap.ROOT / "scenarios"}
    for home in homes:
        assert [_selects(words, home, mark) for words in phases].count(True) == 1, home


def _selects(words: list[str], home: Path, mark: str) -> bool:
    """Return whether a phase takes the everyday tests of a directory that have this mark, or none."""
    roots = [bootstrap.ROOT / word for word in words[1:] if not word.startswith("-")]
    left_out = [bootstrap.ROOT / word.partition("=")[2] for word in words if word.startswith("--ignore=")]
    if not any(home.is_relative_to(root) for root in roots) or any(home.is_relative_to(path) for path in left_out):
        return False
    return bool(eval(words[words.index("-m") + 1], {"processes": mark == "processes", "nightly": False}))
