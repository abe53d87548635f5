"""A run's directory, judged, compared and healed by the command line.

An input is a script: which good run, what is done to which of its files, and the commands. Documented: an exit code
of chaos/cli/codes.py, a message in words, nothing written or removed outside the run.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from chaos.cli import codes
from chaos.cli.main import entry
from tests.fuzz.mutate import mutate_bytes, mutate_json, mutate_json_lines, mutate_lines
from tests.fuzz.target import Target
from tests.kit.runs.good_run import GoodRun, good_run
from tests.kit.runs.proved_run import prove
from tests.kit.runs.repaired_run import uce_run
from tests.kit.runs.replaced_run import replaced_run
from tests.kit.runs.restored_run import restored_run
from tests.kit.runs.rolled_back_run import rolled_back_run

RUNS: dict[str, Callable[[], GoodRun]] = {
    "ttp": good_run,
    "uce": uce_run,
    "arf": replaced_run,
    "tre": rolled_back_run,
    "restore": restored_run,
}
IDENTITY = {"run": "r-20260101-000000-abcd", "token": "r-20260101-000000-abcd-0123456789abcdef", "created": "x"}
ALLOWED = {
    "analyze": {codes.PASS, codes.FAIL, codes.UNKNOWN, codes.HARNESS, codes.USAGE},
    "compare": {codes.PASS, codes.FAIL, codes.UNKNOWN, codes.USAGE},
    "heal": {codes.PASS, codes.HARNESS, codes.USAGE},
}
_LINKS = ("/etc/passwd", "/etc", "/dev/zero", "/proc/self/environ", ".", "..", "loop", "../outside", "../outside/file")
_NAMES = (
    "rank_" + "9" * 30,
    "a\nb",
    "\udcff\udcfe",
    "x" * 200,
    "ttp_rank_0-1_5.ckpt",
    "train-rank_1-1.jsonl",
    "-rf",
    "..x",
)


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Scripts: those of the corpus with other numbers, or new ones."""
    if random.random() < 0.1:
        script = json.loads(random.choice(corpus))
    else:
        run = random.choice(list(RUNS))
        edits = [_an_edit(random, run) for _ in range(random.choice((1, 1, 1, 2, 3)))]
        commands = random.choice((["analyze"], ["analyze"], ["analyze", "--json"], ["heal"], ["compare"]))
        script = {"run": run, "edits": edits, "command": commands}
    for edit in script["edits"]:
        if random.random() < 0.5:
            edit["seed"] = random.randrange(1 << 32)
    return json.dumps(script).encode()


def _an_edit(random: Random, run: str) -> dict[str, Any]:
    paths, folders = _paths(run)
    how = random.choice(("format", "format", "format", "format", "format", "bytes", "cut", "remove", "swap", *_PLACES))
    path = random.choice(paths if random.random() < 0.8 else folders)
    if how == "format" and random.random() < 0.5:
        path = random.choice([candidate for candidate in paths if "history" not in candidate])
    return {"path": path, "how": how, "seed": random.randrange(1 << 32)}


def check(content: bytes, folder: Path) -> None:
    """Do to the run what the script says, and call the command line."""
    try:
        script = json.loads(content)
        run, edits, command = script["run"], script["edits"], list(script["command"])
        edits = [(str(edit["path"]), str(edit["how"]), int(edit["seed"])) for edit in edits]
    except (ValueError, KeyError, TypeError):
        return  # not a script: only an engine that changes bytes makes such
    if run not in RUNS or command[0] not in ALLOWED or any(".." in path for path, _, _ in edits):
        return
    room = Path(tempfile.mkdtemp(dir=folder))
    try:
        _check_in(room, run, edits, command)
    finally:
        shutil.rmtree(room)


def _check_in(room: Path, run: str, edits: list[tuple[str, str, int]], command: list[str]) -> None:
    outside = room / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept")
    run_dir = room / "reports" / "r"
    _write(_made(run), run_dir)
    # As this user's own: heal does nothing of what anybody else has written, whatever it is.
    prove(run_dir, json.loads((run_dir / "run.json").read_bytes()))
    for path, how, seed in edits:
        with suppress(OSError):  # two edits may want the same place
            _edit(run_dir, run_dir / path, how, Random(seed))
    before = _state(outside)
    said = io.StringIO()
    arguments = [str(run_dir)] * (2 if command[0] == "compare" else 1)
    with redirect_stdout(said), redirect_stderr(said):
        code = entry([command[0], *arguments, *command[1:], "--reports", str(room / "reports")])
    text = said.getvalue()
    assert code in ALLOWED[command[0]], f"exit code {code}: {text[-1500:]}"
    assert "Traceback" not in text and "the harness itself failed" not in text, text[-1500:]
    assert code != codes.HARNESS or command[0] == "heal" or "cannot be written" in text, text[-1500:]
    assert text.strip() and len(text) < 4 << 20
    assert _state(outside) == before
    assert sorted(path.name for path in room.iterdir()) == ["outside", "reports"]


def _state(directory: Path) -> list[tuple[str, int, str]]:
    return [(path.name, path.stat().st_mode, path.read_text()) for path in sorted(directory.iterdir())]


def _edit(run_dir: Path, path: Path, how: str, random: Random) -> None:
    if how in _PLACES:
        _remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _PLACES[how](path, random)
    elif how == "remove":
        _remove(path)
    elif path.is_symlink() or not path.is_file():
        return  # an earlier edit has put something else here, or the run has no such file
    elif how == "cut":
        os.truncate(path, random.randrange(path.stat().st_size + 1))
    elif how == "swap":
        files = sorted(file for file in run_dir.rglob("*") if file.is_file() and not file.is_symlink())
        shutil.copyfile(random.choice(files), path)
    else:
        path.write_bytes(_mutated(path, how, random))


def _mutated(path: Path, how: str, random: Random) -> bytes:
    content = path.read_bytes()
    if how != "format" or not content:
        return mutate_bytes(random, [content])
    if path.suffix == ".jsonl":
        return mutate_json_lines(random, [content])
    if path.suffix == ".json":
        try:
            return mutate_json(random, content)
        except (ValueError, RecursionError):  # spoilt before
            return mutate_bytes(random, [content])
    return mutate_bytes(random, [content]) if path.suffix in (".ckpt", ".pb") else mutate_lines(random, [content])


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _link(path: Path, random: Random) -> None:
    target = random.choice(_LINKS)
    path.symlink_to(path.name if target == "loop" else target)


def _pipe(path: Path, _: Random) -> None:
    os.mkfifo(path)


def _directory(path: Path, random: Random) -> None:
    path.mkdir()
    (path / random.choice(_NAMES)).write_bytes(b"x")


def _socket(path: Path, _: Random) -> None:
    listener = socket.socket(socket.AF_UNIX)
    here = os.open(path.parent, os.O_RDONLY)  # the whole path may be too long for an address
    try:
        listener.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)
        listener.close()


def _named(path: Path, random: Random) -> None:
    """Another file of an odd name, in the place and beside it."""
    path.write_bytes(b"{}\n")
    path.with_name(random.choice(_NAMES) + path.suffix).write_bytes(b"{}\n")


_PLACES: dict[str, Callable[[Path, Random], None]] = {
    "link": _link,
    "pipe": _pipe,
    "directory": _directory,
    "socket": _socket,
    "named": _named,
}


_Made = Mapping[str, tuple[int, bytes | None]]
"""A run in memory: the mode and the content of each file by its path, None for the content of a directory.

Kept on the disk for all inputs it would stay there when the process is killed.
"""


@cache
def _made(run: str) -> _Made:
    with tempfile.TemporaryDirectory(prefix="chaos-fuzz-") as directory:
        path = Path(directory) / run
        RUNS[run]().write(path)
        facts = json.loads((path / "run.json").read_bytes())
        (path / "run.json").write_text(json.dumps({**facts, **IDENTITY}))
        with (path / "undo.jsonl").open("a") as ledger:
            step = {"record": "step", "id": "lose-1", "fault": "lose-1", "action": "note-kept", "note": "kept in lost"}
            ledger.write(json.dumps({**step, "arguments": {"path": str(path / "lost")}}) + "\n")
        return {
            file.relative_to(path).as_posix(): (file.stat().st_mode, None if file.is_dir() else file.read_bytes())
            for file in sorted(path.rglob("*"))
        }


def _write(made: _Made, path: Path) -> None:
    path.mkdir(parents=True)
    for name, (mode, content) in made.items():  # a directory comes before what is in it
        if content is None:
            (path / name).mkdir()
        else:
            (path / name).write_bytes(content)
            (path / name).chmod(stat.S_IMODE(mode))


@cache
def _paths(run: str) -> tuple[list[str], list[str]]:
    made = _made(run)
    files = [name for name, (_, content) in made.items() if content is not None]
    folders = [name for name, (_, content) in made.items() if content is None]
    files += [
        "result.json",
        "junit.xml",
        ".lock",
        "job/checkpoints/abnormal_global_norm.json",
        "logs/train/worker_0.log",
    ]
    return [*files, *["plan.json", "run.json", "undo.jsonl"] * 3], folders


TARGET = Target("run_directory", mutate, check)
