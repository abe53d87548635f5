"""Finding scenario files.

Light: reads no more of a file than its first key, and imports neither pydantic nor YAML.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from chaos.base.named_files import is_pipe, keep_piped
from chaos.base.plain_files import UnreadableFile
from chaos.base.walking import TooDeep, Unseen, walk
from chaos.scenario.errors import Problem, ScenarioError, printable, quote, suggest
from chaos.scenario.recorded import is_run
from chaos.scenario.source import MAX_BYTES

SUFFIXES = (".yaml", ".yml")

_LONGEST_LINE = 4096
_MOST_LINES = 10_000
_FIRST_KEY = re.compile(rb"""(\{[ \t]*)?(?:chaos[ \t]*:(?:[ \t\r\n]|$)|(?P<quote>['"])chaos(?P=quote)[ \t]*:)""")
_BLANK = re.compile(rb"[ \t\r]*(#.*)?")
_START = re.compile(rb"---(?=[ \t\r]|$)")


def is_scenario_file(path: str | Path) -> bool:
    """Return whether the first key of a file is ``chaos``, behind comments, directives and a leading ``---``.

    Reads up to that key only. Never raises: an unreadable file is not a scenario.
    """
    try:
        path = Path(path)
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            started = opened = False
            for number in range(_MOST_LINES):
                line = stream.readline(_LONGEST_LINE)
                if not line:
                    return False
                complete = line.endswith(b"\n")
                line = line.rstrip(b"\r\n")
                if number == 0:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if not started and _START.match(line):
                    started, line = True, line[3:]
                if (not started and line.startswith(b"%")) or _BLANK.fullmatch(line):
                    while not complete:
                        complete = (rest := stream.readline(_LONGEST_LINE)).endswith(b"\n") or not rest
                    continue
                started = True
                line = line.lstrip(b" \t")
                if not opened and line.startswith(b"{") and _BLANK.fullmatch(line[1:]):
                    opened = True
                    continue
                return _FIRST_KEY.match(line) is not None
    except (OSError, ValueError):
        return False
    return False


def find_scenario(name: str | Path, *, directories: Iterable[str | Path]) -> Path:
    """Return the scenario of that name: a path that exists, else ``name`` or ``name.yaml`` in or below a directory.

    A file in the directory itself goes before one below it, and a directory before those that follow. ``-`` and pipes
    are read at once; the path is then the known name of their content. Raises ScenarioError, with the name that
    was probably meant, if there is none, and with the paths if a directory has several below it.
    """
    if is_pipe(Path(name)):
        return _piped(Path(name))
    if _is_file(Path(name)):
        return Path(name)
    searched = [Path(directory) for directory in directories]
    known: set[str] = set()
    for folder in searched:
        for path in (folder / f"{name}{suffix}" for suffix in ("", *SUFFIXES)):
            if _is_file(path):
                return path
        below = _scenarios_below(folder)
        if same := [path for path in below if str(name) in (path.name, path.stem)]:
            return _only(same, name)
        known.update(path.stem for path in below)
    looked = f" in {', '.join(map(str, searched))}" if searched else ""
    stem = Path(name).name.removesuffix(".yaml").removesuffix(".yml")
    message = f"there is no scenario {quote(name)} here{' or' if looked else ''}{printable(looked)}"
    raise ScenarioError([Problem(printable(str(name)), 0, 0, message, hint=suggest(stem, sorted(known), "scenarios"))])


def _only(paths: list[Path], name: str | Path) -> Path:
    if len(paths) > 1:
        listed = ", ".join(printable(str(path)) for path in paths)
        message = f"there are {len(paths)} scenarios {quote(name)}: {listed}"
        raise ScenarioError([Problem(printable(str(name)), 0, 0, message, hint="give the path of one")])
    return paths[0]


def iter_scenarios(paths: Iterable[str | Path]) -> list[Path]:
    """Return the scenario files among ``paths``, each once.

    A file is taken as it is, so that loading it reports its mistakes. A directory is walked, in sorted order and
    without hidden directories, links to directories, and the directories of runs, which hold copies of their scenarios.
    Its YAML files whose first key is ``chaos`` are taken.
    Raises ScenarioError for a path that does not exist, and for a directory too deep to be searched.
    """
    files: dict[str, Path] = {}
    problems = []
    unseen: list[OSError] = []
    for path in map(Path, paths):
        if _is_file(path):
            chosen = [path]
        elif is_pipe(path):
            chosen = [_piped(path)]
        elif _is_directory(path):
            chosen = _scenarios_below(path, unseen.append)
        else:
            chosen = []
            problems.append(Problem(printable(str(path)), 0, 0, "there is no such file or directory"))
        for file in chosen:
            files.setdefault(os.path.realpath(file), file)
    problems += [
        Problem(printable(str(error.filename)), 0, 0, str(error.strerror))
        for error in unseen
        if isinstance(error, TooDeep)
    ]
    if problems:
        raise ScenarioError(problems)
    return list(files.values())


def _piped(path: Path) -> Path:
    try:
        return keep_piped(path, MAX_BYTES)
    except UnreadableFile as error:
        raise ScenarioError([Problem(printable(str(path)), 0, 0, str(error.strerror))]) from None


def _scenarios_below(directory: Path, onerror: Unseen = None) -> list[Path]:
    paths: list[Path] = []
    for folder, subfolders, files in walk(directory, onerror):
        if is_run(folder):
            subfolders.clear()
            continue
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        paths.extend(Path(folder, name) for name in files if name.endswith(SUFFIXES))
    return [path for path in sorted(paths) if is_scenario_file(path)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
