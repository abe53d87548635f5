"""From a fresh machine to a run, or to the tests, in one command. Standard library only.

    python3.11 chaos/bootstrap.py run kill-rank.yaml
    python3.11 chaos/bootstrap.py test
    python3.11 chaos/bootstrap.py quick

Makes ``.venv`` in the repository, installs chaos with MindSpore for the CPU into it, then runs the command. The second
call finds everything in place. Any other command of chaos (plan, doctor, …) works like ``run``. pip takes its settings
from the environment and its own configuration, as always.

For ``test`` MindFormers is installed as well, as docs/guides/mindformers.md says. If it cannot be installed, the tests
go on without it, and those that need it are skipped. The same holds for PyTorch's build for the CPU, and for Debian's
chromium, which opens the report pages in tests; root installs it by apt-get. ``quick`` is for the time between two
edits: the linters, and the tests in its arguments, as pytest takes them, or a choice of fast ones.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 10)
FAILED = 3
"""Exit code when the set-up itself fails: the same as for any failure of the harness."""
USAGE = 64
_NEWS_SECONDS = 30.0

MINDFORMERS = "mindformers==2.1.0"
"""Installed without its wheel's requirements, which would replace MindSpore; the extra of its name adds the rest."""

COMPANIONS = frozenset({"mindformers"})
"""The extra with what MindFormers imports."""

OPTIONAL = COMPANIONS | {"docs"}
"""Extras of the tests that are left out where they cannot be had: a test that needs one is skipped, and says so."""

PYTORCH = "torch==2.13.0+cpu"
"""The build for the CPU. The build of PyPI would bring gigabytes for devices that no test uses."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
"""Programs that the tests of the report pages can drive; any of them will do."""

TESTS = ("test", "quick")
"""The commands that run tests, and so need the extra ``test``. Any other is a command of chaos."""

SLOWEST = "--durations=20"
"""Each phase of tests ends with its slowest tests, as a guide to shortening the whole."""

LINTERS = [
    ("ruff check", ["ruff", "check", "."]),
    ("ruff format", ["ruff", "format", "--check", "."]),
]

MINDSPORE = "--ignore=tests/rehearsal"
"""The tests that start jobs of MindSpore have a phase of their own."""

PHASES = [
    *LINTERS,
    ("mypy", ["mypy", "--num-workers", "2"]),
    ("unit tests", ["pytest", "tests", MINDSPORE, "-n", "2", "-m", "not processes and not nightly", SLOWEST]),
    ("processes", ["pytest", "tests", MINDSPORE, "-n", "3", "-m", "processes and not nightly", SLOWEST]),
    ("rehearsals", ["pytest", "tests/rehearsal", "-n", "3", "-m", "not nightly", SLOWEST]),
    ("scenarios", ["pytest", "scenarios", "-n", "3", "--maxschedchunk", "1", "-m", "not nightly", SLOWEST]),
]
"""The phases of ``test``, in order: the name of the phase and its command."""

QUICK = [
    "tests/unit/test_rooms.py",
    "tests/unit/plan",
    "tests/unit/history",
    "tests/unit/checks/test_no_false_alarm.py",
    "tests/unit/checks/test_seeded_defects.py",
    "tests/documents/test_changelog.py",
    "tests/documents/test_fragments.py",
]
"""The tests of ``quick`` by default: the imports of rooms, the plan, judgement of good and of spoilt runs.

They take about a minute of processor time, so half a minute on two free cores.
"""


class SetupFailed(Exception):
    """The environment could not be made. The text gives the reason and the remedy."""


def say(text: str) -> None:
    """Print a line at once, so that it comes before what the next process prints."""
    print(f"[bootstrap] {text}", flush=True)


def required_stamp(pyproject: bytes, extras: set[str], python: str, place: Path) -> dict[str, object]:
    """Return the ingredients of an environment. Another value means that pip has to run again."""
    digest = hashlib.sha256(pyproject).hexdigest()
    return {"pyproject": digest, "extras": sorted(extras), "python": python, "place": str(place)}


def read_stamp(path: Path) -> dict[str, object]:
    """Return the stamp of the last complete installation, or an empty one."""
    try:
        stamp = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def missing_extras(stamp: dict[str, object], required: dict[str, object]) -> bool:
    """Return whether the installation that ``stamp`` describes lacks a requested extra."""
    return stamp.get("pyproject") != required["pyproject"] or not set(_extras(required)) <= set(_extras(stamp))


def must_be_made_anew(stamp: dict[str, object], required: dict[str, object]) -> bool:
    """Return whether the environment belongs to another Python or place: its programs contain their own path."""
    return any(key in stamp and stamp[key] != required[key] for key in ("python", "place"))


def _extras(stamp: dict[str, object]) -> list[str]:
    extras = stamp.get("extras", [])
    return extras if isinstance(extras, list) else []


def prepare(root: Path, extras: set[str], optional: frozenset[str] = frozenset(), *, compiled: bool = True) -> Path:
    """Make ``.venv`` in ``root`` ready, with these extras at least, and return its directory of programs.

    ``optional`` extras come along where pip has to run at all, and are left out where they cannot be had. Without
    ``compiled`` modules are compiled by the first process that imports them, and most are never imported.
    Safe when two run at once: the second waits for the first. An interrupted installation is made again. Raises
    SetupFailed.
    """
    venv = root / ".venv"
    venv.mkdir(exist_ok=True)
    with (venv / "bootstrap.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another bootstrap is at work here; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        _install_if_needed(root, venv, extras, optional, compiled=compiled)
    return venv / "bin"


def add_mindformers(root: Path) -> bool:
    """Install MindFormers, as :func:`_add` does."""
    return _add(root, MINDFORMERS, COMPANIONS, ["--no-deps"])


def add_pytorch(root: Path) -> bool:
    """Install PyTorch, as :func:`_add` does."""
    return _add(root, PYTORCH, frozenset(), [])


def _add(root: Path, package: str, extras: frozenset[str], arguments: list[str]) -> bool:
    """Install a package into the environment that :func:`prepare` has made, and report a failure.

    Return whether it is installed, with these extras. Never raises because of pip: tests that need the package are
    skipped without it.
    """
    venv = root / ".venv"
    stamp_path = venv / f"bootstrap.{package.partition('==')[0]}"
    cut_off = venv / "bootstrap.installing"
    stamp = {"pyproject": hashlib.sha256((root / "pyproject.toml").read_bytes()).hexdigest(), "package": package}
    with (venv / "bootstrap.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if read_stamp(stamp_path) == stamp:
            return True
        stamp_path.unlink(missing_ok=True)
        installed = set(_extras(read_stamp(venv / "bootstrap.stamp")))
        cut_off.touch()
        status = 0
        if not installed >= extras:
            status = _pip_install(root, venv, sorted(installed | extras))
        status = status or _pip_install(root, venv, [], [*arguments, package])
        if status < 0:  # killed: the environment is made anew by the next call
            raise SetupFailed(f"pip ended with status {status} while it installed {package}; run the command again.")
        cut_off.unlink()
        if status:
            say(
                f"{package} cannot be had here: pip failed with status {status}, its own message is above. The "
                "tests and scenarios that need it are skipped."
            )
            return False
        stamp_path.write_text(json.dumps(stamp) + "\n")
    return True


def add_browser() -> bool:
    """Install Debian's chromium where there is no browser, and say so where that fails.

    Returns whether there is one. Never raises: the tests of report pages in a browser are skipped without it.
    """
    if any(map(shutil.which, BROWSERS)):
        return True
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        reason = "only root can install one here" if shutil.which("apt-get") else "there is no apt-get"
    else:
        say("installing chromium for the tests of report pages")
        reason = _apt_get("update") or _apt_get("install", "--yes", "--no-install-recommends", "chromium")
    if reason:
        say(f"no browser: {reason}. The tests of report pages in a browser are skipped.")
    return not reason


def _apt_get(*arguments: str) -> str:
    """Run apt-get without a word, and return why it failed, in one line; empty where it did not."""
    command = ["apt-get", "--quiet=2", "--option=DPkg::Lock::Timeout=120", *arguments]
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    ended = subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    if ended.returncode == 0:
        return ""
    last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2].rstrip(".")
    return f"apt-get {arguments[0]} ended with status {ended.returncode}" + (f" ({last})" if last else "")


def _install_if_needed(root: Path, venv: Path, extras: set[str], optional: frozenset[str], *, compiled: bool) -> None:
    stamp_path, cut_off = venv / "bootstrap.stamp", venv / "bootstrap.installing"
    stamp = read_stamp(stamp_path)
    version = ".".join(map(str, sys.version_info[:3]))
    required = required_stamp((root / "pyproject.toml").read_bytes(), extras | set(_extras(stamp)), version, venv)
    usable = _has_pip(venv) and not cut_off.exists() and not must_be_made_anew(stamp, required)
    if usable and not missing_extras(stamp, required):
        return
    stamp_path.unlink(missing_ok=True)
    if not usable:
        _make_venv(venv)
    # pip takes a package whose copying was cut off for an installed one, so this file marks the time of copying.
    cut_off.touch()
    more = optional.difference(_extras(required))
    status = _pip_install(root, venv, sorted(more.union(_extras(required))), compiled=compiled)
    if status == 0:
        required["extras"] = sorted(more.union(_extras(required)))
    elif status > 0 and more:
        status, required["extras"] = _install_what_can_be_had(root, venv, _extras(required), more, compiled=compiled)
    if status >= 0:
        cut_off.unlink()
    if status != 0:
        raise SetupFailed(
            f"pip failed with status {status}; its own message is above. Check the network and pip's settings "
            "(pip config list), then run the same command again."
        )
    stamp_path.write_text(json.dumps(required) + "\n")


def _install_what_can_be_had(
    root: Path, venv: Path, extras: list[str], more: frozenset[str], *, compiled: bool
) -> tuple[int, list[str]]:
    """Install the extras, and each of ``more`` by itself; return pip's status, and the extras that are installed."""
    status = _pip_install(root, venv, extras, compiled=compiled)
    for extra in sorted(more) if len(more) > 1 else ():
        if status != 0:
            break
        added = _pip_install(root, venv, sorted({*extras, extra}), compiled=compiled)
        if added == 0:
            extras = sorted({*extras, extra})
        status = min(added, 0)  # one that was killed has left the environment half made
    return status, extras


def _has_pip(venv: Path) -> bool:
    python = venv / "bin" / "python"
    if not python.exists():
        return False
    return subprocess.run([str(python), "-c", "import pip"], stderr=subprocess.DEVNULL).returncode == 0


def _make_venv(venv: Path) -> None:
    """Make the environment anew, but keep the lock that other processes wait for."""
    for entry in venv.iterdir():
        if entry.name == "bootstrap.lock":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    say(f"making {venv} with Python {sys.version.split()[0]}")
    try:
        import ensurepip  # noqa: F401
        import venv as builder
    except ImportError as error:
        package = f"python3.{sys.version_info[1]}-venv"
        raise SetupFailed(
            f"this Python cannot make virtual environments ({error}). On Debian and Ubuntu: apt install {package}"
        ) from error
    try:
        builder.EnvBuilder(with_pip=True, symlinks=True).create(venv)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupFailed(f"making {venv} failed: {error}") from error


def _pip_install(
    root: Path, venv: Path, extras: list[str], package: list[str] | None = None, *, compiled: bool = True
) -> int:
    """Install chaos with these extras, or a package with pip's own arguments for it. Return pip's exit status."""
    target = f"{root}[{','.join(extras)}]" if extras else str(root)
    say(
        f"installing {package[-1]}"
        if package
        else f"installing chaos with {', '.join(extras) or 'no extras'}; the first time this takes some minutes"
    )
    command = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not compiled:
        command.append("--no-compile")
    started = time.monotonic()
    requirements = package or ["--editable", target]
    pip = subprocess.Popen([*command, "--progress-bar", "off", *requirements], stdin=subprocess.DEVNULL)
    try:
        while (status := _wait(pip)) is None:
            say(f"still installing, {time.monotonic() - started:.0f} s")
    except BaseException:
        pip.terminate()
        pip.wait()
        raise
    if status == 0:
        say(f"installed in {time.monotonic() - started:.0f} s")
    return status


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=_NEWS_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def environment(programs: Path) -> dict[str, str]:
    """Return this process's environment with the virtual environment's programs first: msrun starts PATH's python."""
    path = os.environ.get("PATH", os.defpath)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{path}", "VIRTUAL_ENV": str(programs.parent)}


def environment_of_tests(programs: Path) -> dict[str, str]:
    """Return the same for tests, which start thousands of Python processes: they keep the bytecode of their imports.

    Without it each ``chaos`` compiles some 400 modules again, which is half of the time that most commands take.
    """
    variables = environment(programs)
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def run_phase(command: list[str], root: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Run a command in ``root``, pass its output on as it comes, and return its exit status and its last line."""
    tail = b""
    process = subprocess.Popen(
        command, cwd=root, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        while part := os.read(process.stdout.fileno(), 65536):
            sys.stdout.buffer.write(part)
            sys.stdout.flush()
            tail = (tail + part)[-4096:]
    finally:
        # Ctrl-C reaches the command as well; it is given the time to clean up.
        process.stdout.close()
        process.wait()
    return process.returncode, tail.decode(errors="replace").rstrip().rpartition("\n")[2]


def quick_phases(arguments: list[str]) -> list[tuple[str, list[str]]]:
    """Return the phases of ``quick``, in order, with these arguments for pytest."""
    return [*LINTERS, ("tests", ["pytest", "-q", *(arguments or ["-n", "2", *QUICK])])]


def duration(seconds: float) -> str:
    """Return ``7.3 s``, from a minute on ``12 min 07 s``."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def say_times(times: list[tuple[str, float]], failed: str | None) -> None:
    """Print the time of each phase, and of all of them."""
    say("times")
    for name, seconds in [*times, ("in all", sum(seconds for _, seconds in times))]:
        say(f"  {name:<12}{duration(seconds):>13}" + (" FAILED" if name == failed else ""))


def run_tests(root: Path, programs: Path, phases: list[tuple[str, list[str]]], setup: float = 0.0) -> int:
    """Run the phases in order, and stop at the first that fails.

    Close with the times, of the set-up before them too, and with pytest's own last lines.
    """
    times, closing, status = [("set-up", setup)], [], 0
    for name, (program, *arguments) in phases:
        say(f"{name}: {program} {' '.join(arguments)}")
        started = time.monotonic()
        status, last = run_phase([str(programs / program), *arguments], root, environment_of_tests(programs))
        times.append((name, time.monotonic() - started))
        if program == "pytest":
            closing.append(last)
        if status:
            break
    say_times(times, times[-1][0] if status else None)
    for line in closing:
        print(line, flush=True)
    return status


def main(arguments: list[str]) -> int:
    """Execute the command line and return the exit code; a command of chaos replaces this process."""
    if sys.version_info < OLDEST:
        say(f"Python {'.'.join(map(str, OLDEST))} or later is needed; this is {sys.version.split()[0]}")
        return FAILED
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return USAGE if not arguments or arguments[0] not in ("-h", "--help") else 0
    if arguments[0] == "test" and arguments[1:]:
        say(f"test takes no arguments, but got {' '.join(arguments[1:])}; for a part of them use .venv/bin/pytest")
        return USAGE
    started = time.monotonic()
    try:
        extras = {"mindspore", "test"} if arguments[0] in TESTS else {"mindspore"}
        optional = OPTIONAL if arguments[0] == "test" else frozenset()
        programs = prepare(ROOT, extras, optional, compiled=arguments[0] not in TESTS)
        if arguments[0] == "test":
            add_mindformers(ROOT)
            add_pytorch(ROOT)
            add_browser()
    except SetupFailed as error:
        say(str(error))
        return FAILED
    if arguments[0] not in TESTS:
        program = str(programs / "chaos")
        os.execve(program, [program, *arguments], environment(programs))
    phases = PHASES if arguments[0] == "test" else quick_phases(arguments[1:])
    return run_tests(ROOT, programs, phases, time.monotonic() - started)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
