"""pydantic's errors in plain words.

pydantic names a place by keys and, inside a union, by the alternative that it tried; it reports every alternative.
Here each place gets one message in the words of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from chaos.scenario.errors import near_miss, quote, suggest
from chaos.scenario.lines import Path
from chaos.scenario.shape import annotation_at, homes_of_keys, keys_at, literals_in, models_in

_SAYS_ENOUGH = ("missing", "string_pattern_mismatch")
"""Errors of one alternative of a union that explain the mistake better than a list of the alternatives."""


class Complaint(NamedTuple):
    """A message about the value at a path, or about its key. A missing key is a complaint about its mapping."""

    path: Path
    message: str
    hint: str = ""
    on_key: bool = False


_PATTERNS = {
    "^F-": "must look like F-01",
    "^[A-Za-z0-9]": "must begin with a letter or a digit and hold only letters, digits, '_', '.' and '-'",
    "^[A-Za-z_]": "must begin with a letter or '_' and hold only letters, digits, '_', '.' and '-'",
}


def complaints(errors: Iterable[Any], data: Any) -> Iterator[Complaint]:
    """Yield one complaint for each place in ``errors`` (of a pydantic ValidationError).

    ``data`` is the validated data.
    """
    places = [(*_strip_alternatives(error["loc"], data), error) for error in errors]
    extra = {path for path, _, error in places if error["type"] == "extra_forbidden"}
    explained: set[Path] = set()
    for path, in_union, error in places:
        if in_union and path not in extra and error["type"] not in _SAYS_ENOUGH and _has_choices(path):
            value = _value_at(data, path)
            models = models_in(annotation_at(path))
            if path in explained or (isinstance(value, dict) and models):
                continue  # said already, or the mapping's own errors say it better
            explained.add(path)
            yield Complaint(path, *_not_a_choice(path, value))
            continue
        if error["type"] == "missing":
            near = {near_miss(str(other[-1]), keys_at(path[:-1])) for other in extra if other[:-1] == path[:-1]}
            if path[-1] not in near:
                yield Complaint(path[:-1], f"{_name(path[:-1])} needs the key {quote(path[-1])}")
            continue
        if error["type"] == "string_pattern_mismatch":
            explained.add(path)  # text was what is wanted; the other alternatives say nothing more
        value = _value_at(data, path)
        if error["type"] == "too_short" and value:
            continue  # Only its wrong items make it look empty.
        yield Complaint(path, *_explain(path, error, value), on_key=path in extra)


def _has_choices(path: Path) -> bool:
    """Return whether the value at a path is one of some words, or a mapping with known keys."""
    annotation = annotation_at(path)
    return bool(literals_in(annotation) or models_in(annotation))


def kind_of(value: Any) -> str:
    """Return a value in the words of a message: ``text 'four'``, ``the number 1.5``, ``a list``."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"text {quote(value)}"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"


def _strip_alternatives(loc: tuple[str | int, ...], data: Any) -> tuple[Path, bool]:
    """Return the path without the names of union alternatives, and whether the last part was one."""
    path: list[str | int] = []
    last_was_alternative = False
    value = data
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        last_was_alternative = False
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, (list, tuple)) and isinstance(part, int):
            value = value[part] if part < len(value) else None
        elif not (last and part in keys_at(tuple(path))):
            last_was_alternative = True
            continue
        path.append(part)
    return tuple(path), last_was_alternative


def _value_at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _not_a_choice(path: Path, value: Any) -> tuple[str, str]:
    annotation = annotation_at(path)
    words = [str(word) for word in literals_in(annotation)]
    keys = keys_at(path)
    choices = " or ".join(
        [*([f"one of {', '.join(words)}" if len(words) > 1 else quote(words[0])] if words else [])]
        + ([f"a mapping with the keys {', '.join(keys)}"] if keys else [])
    )
    hint = ""
    if isinstance(value, str) and (near := near_miss(value, words)) is not None:
        hint = f"did you mean {quote(near)}?"
    return f"{_name(path)} must be {choices}, not {kind_of(value)}", hint


def _name(path: Path) -> str:
    """Return the name of a value in a message: its key, with the place in a list."""
    if not path:
        return "the scenario"
    keys = [index for index, part in enumerate(path) if isinstance(part, str)]
    last = keys[-1] if keys else 0
    return quote("".join([str(path[last]), *(f"[{part}]" for part in path[last + 1 :])]))


def _explain(path: Path, error: Any, value: Any) -> tuple[str, str]:
    kind: str = error["type"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "literal_error":
        words = [str(word) for word in literals_in(annotation_at(path))]
        choices = f"must be one of {', '.join(words)}" if len(words) > 1 else f"must be {words[0]}"
        near = near_miss(value, words) if isinstance(value, str) else None
        return f"{_name(path)} {choices}, not {kind_of(value)}", f"did you mean {quote(near)}?" if near else ""
    explain = _EXPLANATIONS.get(kind)
    words_only = explain(value, context) if explain else str(error["msg"])
    hint = ""
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        shown = {True: "true", False: "false"}[value] if isinstance(value, bool) else value
        hint = f'put it in quotes: "{shown}"'
    return f"{_name(path)} {words_only}", hint


def _unknown_key(path: Path) -> tuple[str, str]:
    key = str(path[-1])
    known = keys_at(path[:-1])
    hint = suggest(key, known, "known keys here")
    here = tuple(part for part in path[:-1] if isinstance(part, str))
    homes = [tuple(home.split(".")) if home else () for home in homes_of_keys().get(key, ())]
    below = [home for home in homes if home[: len(here)] == here]
    if below or (homes and near_miss(key, known) is None):
        home = ".".join((below or homes)[0])
        hint = f"{quote(key)} belongs {f'under {quote(home)}' if home else 'at the top of the file'}"
    return f"unknown key {quote(key)}", hint


def _pattern(value: Any, context: dict[str, Any]) -> str:
    expected_form = next(
        (words for start, words in _PATTERNS.items() if context["pattern"].startswith(start)), "has the wrong form"
    )
    return f"{expected_form}, not {quote(value)}"


def _not(expected: str) -> Callable[[Any, dict[str, Any]], str]:
    return lambda value, _: f"must be {expected}, not {kind_of(value)}"


_EXPLANATIONS: dict[str, Callable[[Any, dict[str, Any]], str]] = {
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing"), _not("a whole number")),
    **dict.fromkeys(("float_type", "float_parsing"), _not("a number")),
    **dict.fromkeys(("tuple_type", "list_type"), _not("a list")),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _not("a mapping")),
    "string_type": _not("text"),
    "bool_type": _not("true or false"),
    "finite_number": _not("a finite number"),
    "greater_than_equal": lambda value, context: f"must be at least {context['ge']:g}, not {value}",
    "less_than_equal": lambda value, context: f"must be at most {context['le']:,}, not {value}",
    "greater_than": lambda value, context: f"must be more than {context['gt']:g}, not {value}",
    "too_long": lambda _, context: f"must not have more than {context['max_length']} items",
    "too_short": lambda _, context: "must not be empty",
    "string_too_short": lambda _, context: "must not be empty",
    "string_too_long": lambda _, context: f"must not be longer than {context['max_length']} characters",
    "string_pattern_mismatch": _pattern,
    "value_error": lambda value, context: f"is {kind_of(value)}, but {context['error']}",
}
