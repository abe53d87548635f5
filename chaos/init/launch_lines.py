"""Launch lines in shell scripts, as data: ``msrun --worker_num=2 train.py --epochs 3``. No shell ever sees them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from chaos.base.plain_files import read_plain
from chaos.init.source import shown

MOST_BYTES = 256 << 10
"""Largest shell script that is read."""

_PLACES = (".", "scripts", "script", "shell", "bin", "..")
"""Where shell scripts are looked for, seen from the directory of the job."""

RANK_OPTIONS = {
    "msrun": ("--worker_num",),
    "torchrun": ("--nproc_per_node", "--nproc-per-node"),
    "mpirun": ("-n", "-np", "--np"),
    "mpiexec": ("-n", "-np", "--np"),
    "accelerate": ("--num_processes",),
    "deepspeed": ("--num_gpus",),
}
"""Launchers, and their options for the number of ranks."""

RESTART_OPTIONS = {"torchrun": ("--max-restarts", "--max_restarts")}
"""Launchers that may start all ranks again, and their options for how often."""

_MODULES = {"torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun"}

_SET = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+|[@*])(?::?-([^}]*))?\}|([A-Za-z_]\w*|[0-9@*#?]))")
_PYTHON = re.compile(r"python[0-9.]*")
_END = re.compile(r"[;&|()]+")
_REDIRECTION = re.compile(r"""(?<=\s)[0-9&]?>{1,2}&?\s*[^\s;&|"']+""")
_MOST = re.compile(r"(?:MS|HCCL|ASCEND|OMP|MKL|OPENBLAS|GLOG|LCCL)_\w+|PYTHONHASHSEED")
_OF_THE_LAUNCH = re.compile(
    r"MS_(?:ROLE|NODE_ID|SCHED_\w+|WORKER_NUM|SERVER_NUM|ENABLE_TFT|TFT_\w+)|ASCEND_(?:HOME|TOOLKIT|OPP|AICPU)\w*"
)


@dataclass(frozen=True)
class LaunchLine:
    """A line that starts the job. ``ranks`` is None where it is not written as a number.

    ``restarts`` is how often the launcher may start all ranks again; 0 where the line does not say.
    """

    where: str
    launcher: str
    script: str
    arguments: tuple[str, ...]
    directory: Path
    ranks: int | None = None
    nodes: int | None = None
    restarts: int = 0
    python: Path | None = None
    """The interpreter of the ranks, where the line names it by a path."""

    environment: dict[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    """Words with variables of the shell whose value the file does not tell."""

    def path(self, base: Path) -> Path | None:
        """Return the script's file: relative to the shell script, or to the directory of the job."""
        for place in dict.fromkeys((self.directory, base, self.directory.parent)):
            if (path := place / self.script).is_file():
                return Path(os.path.normpath(path))
        return None


def launch_lines(directory: Path) -> list[LaunchLine]:
    """Return the launch lines of the shell scripts in and beside a directory, in their order."""
    launches: list[LaunchLine] = []
    for place in _PLACES:
        folder = Path(os.path.normpath(directory / place))
        if not folder.is_dir() or (place == ".." and folder == directory):
            continue
        for path in sorted(folder.glob("*.sh")):
            try:
                text = read_plain(path.resolve(), MOST_BYTES).decode("utf-8", "replace")
            except OSError:
                continue
            lines = list(read_launch_lines(text, shown(path, directory), folder))
            # A file of the directory above is of this job only if it starts one of its scripts.
            launches += [line for line in lines if place != ".." or _below(line, directory)]
    return launches


def read_launch_lines(text: str, name: str, directory: Path) -> Iterator[LaunchLine]:
    """Yield the launch lines of a shell script's text."""
    known: dict[str, str] = {}
    exported: dict[str, str] = {}
    for number, text_of_line in _joined(text):
        for words in _commands(text_of_line):
            export = words[0] == "export"
            own: dict[str, str] = {}
            rest = words[1:] if export else words
            while rest and (match := _SET.fullmatch(rest[0])) is not None:
                own[match[1]] = _filled(match[2], {**known, **own})
                rest = rest[1:]
            if export:
                exported |= own
            if not rest or export:
                known |= own
            elif (line := _launch(rest, known, f"{name}:{number}", directory)) is not None:
                kept = {key: value for key, value in {**exported, **own}.items() if is_kept(key, value)}
                yield replace(line, environment=kept)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, those that a backslash continues as one."""
    begun, line = 0, ""
    for number, part in enumerate(text.splitlines(), 1):
        begun = begun or number
        if part.endswith("\\") and not part.lstrip().startswith("#"):
            line += part[:-1] + " "
            continue
        yield begun, line + part
        begun, line = 0, ""
    if line:
        yield begun, line


def _commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line, without redirections; nothing where its quotes do not end."""
    lexer = shlex.shlex(_REDIRECTION.sub(" ", line), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if not _END.fullmatch(word):
            command.append(word)
        elif command:
            yield command
            command = []


def _launch(words: list[str], known: dict[str, str], where: str, directory: Path) -> LaunchLine | None:
    """Return the launch that a command is; None where it is none."""
    for place, word in enumerate(words):
        launcher, rest = Path(word).name, words[place + 1 :]
        if _PYTHON.fullmatch(launcher) and rest[:1] == ["-m"] and rest[1:2] and rest[1] in _MODULES:
            launcher, rest = _MODULES[rest[1]], rest[2:]
        if launcher in RANK_OPTIONS:
            line = _read(launcher, [_filled(argument, known) for argument in rest], where, directory)
            return line and replace(line, python=interpreter_of(_filled(word, known), directory))
    return None


def _read(launcher: str, words: list[str], where: str, directory: Path) -> LaunchLine | None:
    script_at = next((place for place, word in enumerate(words) if word.endswith(".py")), None)
    if script_at is None:
        return None
    ranks = _number(words[:script_at], RANK_OPTIONS[launcher])
    local = _number(words[:script_at], ("--local_worker_num",))
    nodes = _number(words[:script_at], ("--nnodes",))
    if launcher == "msrun" and ranks and local and ranks % local == 0 and ranks != local:
        nodes = ranks // local
    elif launcher == "torchrun" and ranks and nodes:
        ranks *= nodes
    arguments = [word for word in words[script_at + 1 :] if word]
    unknown = tuple(word for word in arguments if "$" in word)
    return LaunchLine(
        where,
        launcher,
        words[script_at],
        tuple(word for word in arguments if "$" not in word),
        directory,
        ranks=ranks,
        nodes=nodes if nodes and nodes > 1 else None,
        restarts=restarts_in(words[:script_at], launcher),
        unknown=unknown,
    )


def interpreter_of(word: str, directory: Path) -> Path | None:
    """Return the Python that a launcher's first word names by its path: the Python itself, or that of a program.

    A program of Python names its interpreter in its first line; else it is that beside it. None where there is no path.
    """
    if os.sep not in word or "$" in word:
        return None
    path = Path(os.path.normpath(directory.absolute() / Path(word)))
    if _PYTHON.fullmatch(path.name):
        return path
    try:
        first = read_plain(path.resolve(), MOST_BYTES).split(b"\n", 1)[0].decode("utf-8", "replace")
    except OSError:
        first = ""
    named = Path(first[2:].strip()) if first.startswith("#!") else Path()
    return named if named.is_absolute() and _PYTHON.fullmatch(named.name) else path.with_name("python")


def nodes_in(words: Sequence[str]) -> int | None:
    """Return the number of nodes of torchrun's options; None where they do not say more than a single node."""
    nodes = _number(words, ("--nnodes",))
    return nodes if nodes and nodes > 1 else None


def restarts_in(words: Sequence[str], launcher: str) -> int:
    """Return how often a launcher with these options may start all ranks again; 0 where they do not say."""
    return _number(words, RESTART_OPTIONS.get(launcher, ())) or 0


def _number(words: Sequence[str], names: tuple[str, ...]) -> int | None:
    for place, word in enumerate(words):
        name, equals, text = word.partition("=")
        if name in names:
            text = text if equals else (words[place + 1] if place + 1 < len(words) else "")
            return int(text) if text.isdecimal() and 0 < int(text) < 2**20 else None
    return None


def _filled(word: str, known: dict[str, str]) -> str:
    """Return a word with the variables whose value the file tells. A variable without one stays as it is written."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        return known.get(name, match[2] if match[2] is not None else match[0])

    return _VARIABLE.sub(value, word)


def is_kept(name: str, value: str) -> bool:
    """Return whether a variable of a launch line belongs to the job, and not to its launcher."""
    return bool(_MOST.fullmatch(name)) and not _OF_THE_LAUNCH.fullmatch(name) and "$" not in value and "`" not in value


def _below(line: LaunchLine, directory: Path) -> bool:
    path = line.path(directory)
    return path is not None and path.resolve().is_relative_to(directory.resolve())
