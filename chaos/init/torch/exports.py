"""Files that a script of PyTorch saves and never loads, such as the weights of its best step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from chaos.init.checkpoints import Load, Save, load_place
from chaos.init.source import Source, calls, full_name
from chaos.init.values import Values

_RENAMES = {"os.replace", "os.rename", "shutil.move"}

_UNKNOWN = re.compile(r"\{[^}]*\}")
_TELLING = re.compile(r"[A-Za-z]")


@dataclass(frozen=True)
class Export:
    """A save that no line loads. ``names`` are those of ``job.exports``, with ``*`` for what the text does not tell."""

    save: Save
    names: tuple[str, ...]


def without_exports(
    saves: Sequence[Save], loads: Sequence[Load], sources: Sequence[Source], values: Values, directory: Path
) -> tuple[list[Save], list[Export]]:
    """Return the saves that a start may go on from, and those that no line loads.

    Where a save or a load may be of any file, or a load is of a file that no line saves, every save may be one that a
    start goes on from. A file that is there already is data.
    """
    renamed = dict(_renames(sources, values))
    named = [Export(save, _names(save.place, renamed)) for save in saves]
    wanted = {_name(place) for load in loads if not (directory / (place := load_place(load, values))).is_file()}
    saved = {name for export in named for name in export.names}
    if not wanted or not all(map(_is_telling, saved)) or not wanted <= saved:
        return list(saves), []
    kept = [export for export in named if wanted & set(export.names)]
    left = [export for export in named if export not in kept]
    patterns = [name for export in left for name in export.names]
    if any(fnmatchcase(name, pattern) for export in kept for name in export.names for pattern in patterns):
        return list(saves), []
    return [export.save for export in kept], left


def _renames(sources: Sequence[Source], values: Values) -> Iterator[tuple[str, str]]:
    """Yield the places before and after each renaming that the text tells."""
    for source in sources:
        for call in calls(source):
            arguments = call.node.args
            if full_name(call.node.func, source) in _RENAMES and len(arguments) == 2:
                before, after = (values.text(argument, source) for argument in arguments)
                yield before, after


def _names(place: str, renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Return the name of a saved file, and the one that it is given then, if it is renamed."""
    return tuple(_name(text) for text in (place, renamed.get(place, "")) if text)


def _name(place: str) -> str:
    return _UNKNOWN.sub("*", place).rpartition("/")[2]


def _is_telling(pattern: str) -> bool:
    """Return whether a name has a word before its ending: ``*.pt`` may be any file."""
    return bool(_TELLING.search(pattern.partition(".")[0]))
