"""The scenario language as JSON Schema, so that editors complete and check a file while it is written.

Draft-07, since editors' YAML support reads it. The schema describes the file before variables are filled in:
where the model requires a number, the file may hold ``${name}``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

from chaos.scenario.models.duration import PATTERN, show_duration
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.names import KnownNames
from chaos.scenario.references import LITERAL_SECTIONS

Schema: TypeAlias = dict[str, Any]

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = {
    "type": "string",
    "pattern": rf"^\$\{{{_NAME}\}}$",
    "description": "The value of a variable: ${name}.",
}
_TEXT_WITH_VARIABLES = {
    "type": "string",
    "pattern": rf"\$\{{{_NAME}\}}",
    "description": "Text with the value of a variable in it: ${name}.",
}


def scenario_schema(names: KnownNames | None = None) -> Schema:
    """Return the schema of a scenario file as plain data. ``names`` limits kinds and platforms to those registered."""
    raw = Scenario.model_json_schema(ref_template="#/definitions/{model}")
    definitions: dict[str, Schema] = raw.pop("$defs")
    for definition in (raw, *definitions.values()):
        _convert_model(definition, skip=LITERAL_SECTIONS if definition is raw else frozenset())
    _limit_names(definitions, names or KnownNames())
    _add_rules(raw, definitions)
    _let_configuration_decide(raw, definitions)
    definitions["variable"] = dict(_VARIABLE)
    definitions["textWithVariables"] = dict(_TEXT_WITH_VARIABLES)
    del raw["description"]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "chaos scenario",
        "description": "A fault-injection scenario for a training job on Ascend.",
        **{key: value for key, value in raw.items() if key != "title"},
        "definitions": definitions,
    }


def _convert_model(model: Schema, skip: Collection[str]) -> None:
    model.pop("title", None)
    properties = model["properties"]
    for key, schema in properties.items():
        if key in skip:
            schema.pop("title", None)
        else:
            properties[key] = _convert(schema)


def _convert(schema: Schema) -> Schema:
    """Return one value: durations as text, no titles, and a variable as another way to write it."""
    notes: Schema = {key: schema.pop(key) for key in ("description", "default") if key in schema}
    if notes.get("default") is None or isinstance(notes.get("default"), dict):
        notes.pop("default", None)  # A key that is left out is clearer than one that says null or {}.
    plain: list[Schema] = schema.pop("anyOf", None) or [schema]
    if isinstance(default := notes.get("default"), float) and any("x-chaos-duration" in choice for choice in plain):
        notes["default"] = show_duration(default)
    choices = [_convert_plain(choice) for choice in plain]
    choices.extend(_variable_choices(choices))
    return {**notes, **choices[0]} if len(choices) == 1 else {**notes, "anyOf": choices}


def _convert_plain(schema: Schema) -> Schema:
    schema.pop("title", None)
    if schema.pop("x-chaos-duration", False):
        # A deadline of nothing is refused by the model: then some digit is not 0.
        positive = "(?=.*[1-9])" if "exclusiveMinimum" in schema else ""
        return {"type": "string", "pattern": f"^{positive}{PATTERN.removeprefix('^')}"}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict) and schema[key]:
            schema[key] = _convert(schema[key])
    return schema


def _variable_choices(choices: list[Schema]) -> list[Schema]:
    if any(choice in ({}, {"type": "string"}) for choice in choices):
        return []  # Any text is allowed here already.
    if any(choice.get("type") == "string" for choice in choices):
        return [{"$ref": "#/definitions/textWithVariables"}]
    return [{"$ref": "#/definitions/variable"}]


def _limit_names(definitions: dict[str, Schema], names: KnownNames) -> None:
    for model, key, known in (
        ("Fault", "kind", names.fault_kinds),
        ("Job", "kind", names.job_kinds),
        ("Cluster", "platform", names.platforms),
    ):
        if known is not None:
            properties = definitions[model]["properties"]
            del properties[key]["type"]
            properties[key]["anyOf"] = [{"enum": sorted(known)}, {"$ref": "#/definitions/textWithVariables"}]


def _add_rules(raw: Schema, definitions: dict[str, Schema]) -> None:
    """Add the loader's rules that a schema can express."""
    target, trigger = definitions["Target"], definitions["Trigger"]
    target["minProperties"] = target["maxProperties"] = trigger["minProperties"] = 1
    trigger["dependencies"] = {"phase": ["step"]}
    for model in (target, trigger):
        for schema in model["properties"].values():
            schema["anyOf"] = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
    for section in ("variables", "matrix"):
        raw["properties"][section]["propertyNames"] = {"pattern": f"^{_NAME}$"}
    raw["properties"]["matrix"]["additionalProperties"] = {"type": "array", "minItems": 1}
    definitions["Job"]["properties"]["environment"]["anyOf"][0]["propertyNames"] = {"pattern": f"^{_NAME}$"}


def _let_configuration_decide(raw: Schema, definitions: dict[str, Schema]) -> None:
    """Let a configuration of the job's framework give required keys that the scenario leaves out."""
    raw["if"] = {"properties": {"job": {"required": ["config"]}}}
    needed: Schema = {"required": ["cluster"], "properties": {}}
    raw["required"].remove("cluster")
    for model, key in (("Cluster", "ranks"), ("Job", "steps")):
        definitions[model]["required"].remove(key)
        if not definitions[model]["required"]:
            del definitions[model]["required"]
        needed["properties"][model.lower()] = {"required": [key]}
    raw["else"] = needed
