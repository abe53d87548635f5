"""The shape of the scenario model: the keys and values that belong at a path. Used to explain a mistake there."""

from __future__ import annotations

import functools
import typing
from typing import Any, Literal

from pydantic import BaseModel

from chaos.scenario.lines import Path
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import RegisteredWord


def models_in(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Return the models that a type is made of, looked for inside optional types, unions and sequences."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(model for part in typing.get_args(annotation) if part is not ... for model in models_in(part))


def literals_in(annotation: Any) -> tuple[Any, ...]:
    """Return the fixed values that a type admits, looked for in the same way."""
    if typing.get_origin(annotation) is Literal:
        return typing.get_args(annotation)
    if isinstance(annotation, RegisteredWord):
        return annotation.words()
    return tuple(value for part in typing.get_args(annotation) for value in literals_in(part))


def annotation_at(path: Path) -> Any:
    """Return the type of the value at a path, None if the model has no such key. List positions do not count."""
    annotation: Any = Scenario
    for part in path:
        if isinstance(part, int):
            continue
        models = models_in(annotation)
        if not models:
            # A free mapping, such as environment: its values have the type of the mapping's second argument.
            parts = typing.get_args(annotation)
            annotation = parts[-1] if typing.get_origin(annotation) is dict else None
            continue
        field = next((model.model_fields[part] for model in models if part in model.model_fields), None)
        if field is None:
            return None
        annotation = field.annotation
    return annotation


def keys_at(path: Path) -> tuple[str, ...]:
    """Return the keys that the mapping at a path may have; empty if any key may stand, or none."""
    return tuple(key for model in models_in(annotation_at(path)) for key in model.model_fields)


@functools.cache
def homes_of_keys() -> dict[str, tuple[str, ...]]:
    """Return, for every key of the language, its parts of a scenario, as dotted paths ('' for the top)."""
    homes: dict[str, list[str]] = {}
    waiting: list[tuple[str, type[BaseModel], tuple[type[BaseModel], ...]]] = [("", Scenario, ())]
    while waiting:
        path, model, around = waiting.pop(0)
        for key, field in model.model_fields.items():
            homes.setdefault(key, []).append(path)
            waiting.extend(
                (f"{path}.{key}" if path else key, inner, (*around, model))
                for inner in models_in(field.annotation)
                if inner not in (*around, model)
            )
    return {key: tuple(dict.fromkeys(paths)) for key, paths in homes.items()}
