"""Records what the oracle holds. It is called by hand, and by no test.

    python -m tests.oracle.record RUN...     add the runs in these directories, with the results of today
    python -m tests.oracle.record --results  write the result of every run anew, and print which have changed

A result is written anew where its change is meant, and the difference is part of the review. A run is recorded under
the name of its directory, without the time. Call ``chaos run`` with a relative path: the path of the scenario is part
of the plan, and a plan whose names were replaced is not the plan that was made. A small archive needs small
checkpoints: the runs in plain Python were made while HIDDEN in chaos/rehearsal/plain/network.py was 16.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from chaos.report.analyze import analyze
from chaos.selftest.recorded import NotRecorded, neutral_names
from chaos.store.directory import DIRECTORY, RUN_FILE
from chaos.store.host import HOST
from tests.oracle.archive import write_archive
from tests.oracle.recorded_runs import RecordedRun, archive_of, recorded_runs

_TIME = re.compile(r"-\d{8}-\d{6}-[0-9a-f]{4}$")
"""The end of the name of a run's directory."""

_MOST = 300_000
"""Bytes of an archive: about forty of them lie in the repository."""


def record(run_dir: Path) -> str:
    """Add the run in ``run_dir`` to the oracle, and return its name.

    Raises NotRecorded when the run is too large, names this machine, or is judged otherwise once it was unpacked.
    """
    described = json.loads((run_dir / RUN_FILE).read_text(encoding="utf-8"))
    run = RecordedRun(name := _TIME.sub("", described["run"]), archive_of(name))
    with tempfile.TemporaryDirectory() as place:
        new, unpacked = Path(place, "new.tar.xz"), Path(place, "run")
        write_archive(run_dir, new, _neutral_names(run_dir, described))
        if (size := new.stat().st_size) > _MOST:
            raise NotRecorded(f"its archive takes {size:,} bytes, more than {_MOST:,}: use a smaller job")
        text = RecordedRun(name, new).judge_again(unpacked)
        _refuse_names_of_this_machine(unpacked)
        if (today := _statements(unpacked)) != (before := _statements(run_dir)):
            what = next((f": {text}" for text in today if text not in before), "")
            raise NotRecorded(f"it is judged otherwise when it is taken from its archive{what}")
        run.archive.parent.mkdir(parents=True, exist_ok=True)
        run.archive.write_bytes(new.read_bytes())
    _write_result(run, text)
    return name


def record_results() -> list[str]:
    """Write the result of every run anew, and return the names of those that have changed."""
    changed = []
    for run in recorded_runs():
        with tempfile.TemporaryDirectory() as place:
            text = run.judge_again(Path(place, "run"))
        if not run.result.exists() or run.result.read_text(encoding="utf-8") != text:
            _write_result(run, text)
            changed.append(run.name)
    return changed


def _write_result(run: RecordedRun, text: str) -> None:
    run.result.parent.mkdir(parents=True, exist_ok=True)
    run.result.write_text(text, encoding="utf-8")


def _neutral_names(run_dir: Path, described: dict[str, object]) -> dict[str, str]:
    """Return what is written in place of the names of this machine, its directories and this user's."""
    host = described[HOST]
    assert isinstance(host, dict)
    return {
        **neutral_names(run_dir),
        str(Path(str(described[DIRECTORY])).parent): "/reports",
        f"{Path.home()}/": "/home/user/",
        f"{tempfile.gettempdir()}/": "/temporary/",
        f'"{host["name"]}"': '"host"',
        f'\\"{host["name"]}\\"': '\\"host\\"',  # in a text within a text
        f"http://{host['name']}:": "http://host:",  # the server of a program in the job
    }


def _refuse_names_of_this_machine(run_dir: Path) -> None:
    """Raise NotRecorded where a file names a directory of this machine, or where a text names this host."""
    directories = [f"{directory}/".encode() for directory in (Path.home(), Path.cwd(), tempfile.gettempdir())]
    host = re.compile(rf"(?<![\w.-]){re.escape(os.uname().nodename)}(?![\w.-])".encode())
    for path in (path for path in run_dir.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if any(name in content for name in directories) or (_is_text(content) and host.search(content)):
            raise NotRecorded(f"{path.relative_to(run_dir)} names this machine or a directory of it")


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _statements(run_dir: Path) -> list[str]:
    checks = analyze(run_dir, write=False).checks
    return [f"{check.name} is {check.verdict}, expected: {check.expected}" for check in checks]


def _main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--results"]:
        print("\n".join(record_results()) or "no result has changed")
        return 0
    for run_dir in map(Path, arguments):
        try:
            print(record(run_dir))
        except NotRecorded as error:
            print(f"{run_dir}: {error}", file=sys.stderr)
            return 1
    return 0 if arguments else 64


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
