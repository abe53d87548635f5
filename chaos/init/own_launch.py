"""The command that the user starts the job with (``chaos init --launch``), as words of ``job.command``.

The command is read as text. Its last part, the interpreter, the script and its arguments, is what ``chaos`` puts behind
the launcher's words by itself, so these words are what is left.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.agent.launcher.rank_variables import KNOWN
from chaos.base.plain_files import read_plain
from chaos.base.refusal import Refused
from chaos.init.launch_lines import (
    MOST_BYTES,
    RANK_OPTIONS,
    RESTART_OPTIONS,
    LaunchLine,
    interpreter_of,
    is_kept,
    nodes_in,
    restarts_in,
)
from chaos.init.loops import read_loop
from chaos.init.source import UnreadableSource, read_source
from chaos.init.values import Values

WHERE = "--launch"

_RANKS = {**RANK_OPTIONS, "srun": ("-n", "--ntasks"), "prun": ("-n", "-np")}
"""Launchers that are known by name, and their options for the number of ranks."""

_COMMAND_FOLLOWS = {"torchrun": "--no-python", "accelerate": "--no_python", "deepspeed": "--no_python"}
"""Launchers that take a script by default, and their option for the command that chaos puts behind their words."""

_STARTED_ALIKE = {
    "torchrun": {*RANK_OPTIONS["torchrun"], *RESTART_OPTIONS["torchrun"], "--standalone", "--no-python"},
}
"""Options that leave nothing to a job kind's launcher but what it does by itself; any other counts, where listed."""

_OF_NODES = {
    *("--nnodes", "--rdzv-backend", "--rdzv_backend", "--rdzv-endpoint", "--rdzv_endpoint", "--rdzv-id", "--rdzv_id"),
    *("--node-rank", "--node_rank", "--master-addr", "--master_addr", "--master-port", "--master_port"),
}
"""Options that join several nodes, which the job kind's launcher does by itself on nodes of its own."""

_PYTHON = re.compile(r"python[0-9.]*")
_SET = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")
_SIZE = re.compile(r"\w*(?:SIZE|RANKS|WORKERS)\w*|\w*NUM(?:BER)?_\w+|N_?PROCS?")
_RANKS_PLACE = "{ranks}"


@dataclass(frozen=True)
class OwnLaunch:
    """A launcher of the user's own.

    ``command`` is for ``job.command``. ``variables`` is a pair for ``job.rank_variables`` that the launcher's own file
    names; None where the usual ones serve. ``numbering`` says how the launcher numbers its ranks, as far as its file
    shows.
    """

    line: LaunchLine
    command: tuple[str, ...]
    variables: tuple[str, str] | None = None
    numbering: str = ""

    def is_of_kind(self, launcher: str) -> bool:
        """Return whether the job kind with this launcher starts the job alike, without ``job.command``."""
        if self.line.launcher != launcher:
            return False
        known = _STARTED_ALIKE.get(launcher)
        options = (
            word.partition("=")[0] for word in self.command if word.startswith("-") and word not in ("-m", "--nnodes=1")
        )
        if known is not None and self.line.nodes is not None and self.line.restarts:
            known = known | _OF_NODES
        return known is None or all(option in known for option in options)


def own_launch(text: str, directory: Path, script: Path | None, ranks: int | None) -> OwnLaunch:
    """Return the launch that a command is. Raises Refused where it names no launcher.

    ``script`` and ``ranks`` are the user's; None takes those of the command. Its script is empty where no word is one.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Refused(f"{WHERE}: {error}: {text}") from error
    environment = {}
    while words and (assignment := _SET.fullmatch(words[0])) is not None:
        environment[assignment[1]] = assignment[2]
        words = words[1:]
    place = _place_of_script(words, directory, script)
    end = len(words) if place is None else _begin_of_rank(words, place)
    launcher = words[:end]
    if not launcher:
        raise Refused(f"{WHERE}: {text!r} starts the script itself, and no launcher of ranks")
    name = _name_of(launcher)
    count = _number(launcher, name)
    restarts = restarts_in(launcher, name)
    nodes = nodes_in(launcher) if name == "torchrun" and restarts else None
    line = LaunchLine(
        WHERE,
        name,
        words[place] if place is not None else "",
        tuple(words[place + 1 :]) if place is not None else (),
        directory,
        ranks=ranks or (count and count * (nodes or 1)),
        nodes=nodes,
        restarts=restarts,
        python=interpreter_of(launcher[0], directory),
        environment={key: value for key, value in environment.items() if is_kept(key, value)},
    )
    variables, numbering = _variables(launcher, directory, name)
    return OwnLaunch(line, tuple(_with_places(launcher, name, ranks or count)), variables, numbering)


def _place_of_script(words: Sequence[str], directory: Path, script: Path | None) -> int | None:
    """Return the place of the script that trains.

    It is the user's, else the first that trains, else the first behind a launcher that is known, since a library may
    have the loop; else the second of two, since the first is the launcher itself.
    """
    places = [place for place, word in enumerate(words) if word.endswith(".py") and (directory / word).is_file()]
    if script is not None:
        target = (directory / script).resolve()
        return next((place for place in places if (directory / words[place]).resolve() == target), None)
    fallback = places[1] if places[1:] else None
    if places and _name_of(words[: places[0]] or words) in _RANKS:
        fallback = places[0]
    return next((place for place in places if _trains(directory / words[place])), fallback)


def _trains(path: Path) -> bool:
    try:
        source = read_source(path, path.name)
        return bool(read_loop([source], Values([source], (), (), "")).form)
    except (UnreadableSource, RecursionError):
        return False


def _begin_of_rank(words: Sequence[str], script: int) -> int:
    """Return where the command of a rank begins: at its interpreter, where one stands before the script."""
    for place in range(script - 1, -1, -1):
        if not words[place].startswith("-"):
            return place if _PYTHON.fullmatch(Path(words[place]).name) else script
    return script


def _name_of(launcher: Sequence[str]) -> str:
    """Return the launcher's name: that of the program, or of the module or file that Python or a shell runs."""
    name = Path(launcher[0]).name
    if launcher[1:3] in (["-m", "torch.distributed.run"], ["-m", "torch.distributed.launch"]):
        return "torchrun"
    if _PYTHON.fullmatch(name) or name in ("bash", "sh", "env", "exec"):
        return next((Path(word).name for word in launcher[1:] if not word.startswith("-")), name)
    return name


def _options_of(words: Sequence[str], name: str) -> Iterator[tuple[int, str, str]]:
    """Yield place, begin and value of each word that holds the number of ranks of a known launcher."""
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option not in _RANKS.get(name, ()):
            continue
        if equals:
            yield place, f"{option}=", value
        elif place + 1 < len(words):
            yield place + 1, "", words[place + 1]


def _number(words: Sequence[str], name: str) -> int | None:
    return next((int(value) for _, _, value in _options_of(words, name) if value.isdecimal() and int(value)), None)


def _with_places(words: Sequence[str], name: str, ranks: int | None) -> Iterator[str]:
    """Yield the launcher's words with ``{ranks}`` for the number of ranks."""
    places = {place: begin for place, begin, value in _options_of(words, name) if value == str(ranks)}
    if name not in _RANKS:
        alike = [place for place, word in enumerate(words) if place and ranks is not None and word == str(ranks)]
        places = dict.fromkeys(alike, "") if len(alike) == 1 else {}
    for place, word in enumerate(words):
        yield f"{places[place]}{_RANKS_PLACE}" if place in places else _without_braces(word)
    follows = _COMMAND_FOLLOWS.get(name)
    if follows is not None and follows not in words:
        yield follows


def _without_braces(word: str) -> str:
    if re.search(r"\{\w+\}", word):
        raise Refused(
            f"{WHERE}: {word!r} has braces, which chaos fills in: write job.command by hand "
            "(docs/guides/launchers.md in the repository)"
        )
    return word


def _variables(words: Sequence[str], directory: Path, name: str) -> tuple[tuple[str, str] | None, str]:
    """Return the variables by which a launcher's own file numbers its ranks, and what was found about them."""
    usual = ", ".join(number for number, _ in KNOWN)
    if name in _RANKS:
        return None, f"{name} numbers its ranks by a variable that chaos knows ({usual})"
    names: list[str] = []
    for word in words:
        path = directory / word
        if word and path.is_file():
            try:
                names += _NAME.findall(read_plain(path.resolve(), MOST_BYTES).decode("utf-8", "replace"))
            except OSError:
                continue
    for number, _ in KNOWN:
        if number in names:
            return None, f"{name} names {number}, by which chaos finds the ranks"
    ranks = [
        word for word in dict.fromkeys(names) if "RANK" in word and not _SIZE.fullmatch(word) and "LOCAL" not in word
    ]
    sizes = [word for word in dict.fromkeys(names) if _SIZE.fullmatch(word) and "LOCAL" not in word]
    if ranks and sizes:
        return (ranks[0], sizes[0]), f"{name} names {ranks[0]} and {sizes[0]}"
    return None, (
        f"nothing says how {name} numbers its ranks: each needs its number in one of {usual}, or in a variable that "
        "job.rank_variables names (docs/guides/launchers.md in the repository)"
    )
