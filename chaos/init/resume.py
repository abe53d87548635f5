"""The arguments with which a script goes on from a checkpoint: options that look like it, and what they need."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.init.checkpoints import Load, Save, load_place, loaded_path
from chaos.init.conditions import Unit
from chaos.init.flags import Option, passed_options
from chaos.init.source import last_word
from chaos.init.values import Values

_SURE = re.compile(r"resum|restor|continu|recover|restart")
_PROBABLE = re.compile(r"ckpt|checkpoint|load|pre_?train")
_OTHER = re.compile(
    r"save|interval|steps|every|keep|max|num|freq|format|prefix|output|export|only|strict|backbone|lr$|per_|async"
)
_NEWEST = ("auto", "latest", "last")
"""Words by which scripts mean their newest checkpoint."""

_STEP_IN_PLACE = re.compile(r"\{[^{}]*(?:step|iter)[^{}]*\}")
_DIRECTORY = re.compile(r"dir|folder|root")


@dataclass(frozen=True)
class ResumeOption:
    """An option that looks like the one of a resume. ``text`` is what to write; None where its value is not known."""

    option: Option
    text: str | None
    points: int
    why: str


def resume_options(
    options: Sequence[Option], loads: Sequence[Load], saves: Sequence[Save], values: Values
) -> list[ResumeOption]:
    """Return the options that look like those of a resume, the most probable first."""
    candidates = []
    for option in options:
        points, why = _points(option, loads, values)
        if points >= 2:
            text = _loaded_itself(option, loads, saves) or _text(option, saves, values)
            candidates.append(ResumeOption(option, text, points, why))
    return sorted(candidates, key=lambda candidate: -candidate.points)


def goes_on_by(option: Option, arguments: Sequence[str]) -> bool:
    """Return whether a command line already lets the script go on from its newest checkpoint."""
    given = [value for passed, value in passed_options([option], arguments) if passed is option]
    return any(value is True or str(value).lower() in _NEWEST for value in given)


def is_guarded(load: Load) -> bool:
    """Return whether a load looks first for a file: the script then goes on by itself when there is one."""
    words = {
        "exists",
        "isfile",
        "is_file",
        "isdir",
        "is_dir",
        "glob",
        "listdir",
        "iterdir",
        "latest",
        "newest",
        "files",
    }
    tests = [node for condition in load.tests for node in ast.walk(condition.test)]
    return any(isinstance(node, ast.expr) and _is_word(last_word(node), words) for node in tests) or any(
        isinstance(node, ast.Name)
        and _is_word(node.id, {"ckpt", "checkpoint", "last", "latest", "newest", "path", "found"})
        for node in tests
    )


def _is_word(name: str, words: set[str]) -> bool:
    return name in words or any(part in words for part in name.lower().split("_"))


def _points(option: Option, loads: Sequence[Load], values: Values) -> tuple[int, str]:
    name = option.attribute.lower()
    if _OTHER.search(name) and not _SURE.search(name):
        return 0, ""
    points = 3 if _SURE.search(name) else 1 if _PROBABLE.search(name) else 0
    if points == 0:
        return 0, ""
    for load in loads:
        if any(option.attribute in _attributes(condition.test) for condition in load.tests):
            return points + 3, f"{load.where} loads a checkpoint if it is given"
        if option.attribute in load_place(load, values) or option.attribute in _attributes(load.call.node):
            return points + 3, f"{load.where} loads what it names"
    return points, "its name"


def _attributes(node: ast.AST) -> set[str]:
    """Return the names in an expression, and the last words of dotted ones."""
    names = (inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "") for inner in ast.walk(node))
    return set(names) - {""}


def _loaded_itself(option: Option, loads: Sequence[Load], saves: Sequence[Save]) -> str | None:
    """Return the text for an option whose value is the path that is loaded: the first checkpoint, by its step."""
    loaded = (loaded_path(load) for load in loads)
    if option.attribute not in {last_word(path) for path in loaded if path is not None} or not option.takes_value:
        return None
    for save in saves:
        if save.unit is Unit.STEP and save.interval is not None and len(_STEP_IN_PLACE.findall(save.place)) == 1:
            place = _STEP_IN_PLACE.sub(str(save.interval.value), save.place)
            if "{" not in place:
                return f"{option.name}={place}"
    return None


def _text(option: Option, saves: Sequence[Save], values: Values) -> str | None:
    """Return the word to write on the command line."""
    if not option.takes_value or option.optional_value:
        return option.name
    if option.is_truth:
        word = next((choice for choice in option.choices if choice.lower() in ("true", "1", "yes", "on")), "True")
        return f"{option.name}={word}"
    if option.type == "int" or (isinstance(option.default, int) and not option.choices):
        return f"{option.name}=1"
    for word in _NEWEST:
        if word in option.choices or word in re.findall(r"\w+", option.help.lower()):
            return f"{option.name}={word}"
    for path in _places(option, saves):
        return f"{option.name}={path}"
    return None


def _places(option: Option, saves: Sequence[Save]) -> Iterator[str]:
    """Yield the directory or the file of a save, as far as its text is known."""
    for save in saves:
        place = save.place
        if save.call.name == "ModelCheckpoint":
            if "{" not in place:
                yield os.path.normpath(place)
            continue
        folder = place.rpartition("/")[0]
        if "{" not in place and not _DIRECTORY.search(option.attribute.lower()):
            yield place
        elif folder and "{" not in folder:
            yield folder
