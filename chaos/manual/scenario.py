"""The reference of the scenario language (docs/reference/scenario.md), made from its JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from chaos.manual.prose import bullet

_HEAD = """\
# Scenario reference

Made by `python -m chaos.manual` from the JSON Schema that `chaos schema` prints. Do not edit.

A scenario is strict YAML; its first key is `chaos: 1`. Durations carry a unit: `200ms`, `5s`, `2m`, `1h`. Wherever a
value may vary, `"${name}"` puts in a variable or a matrix value. Unknown keys are errors. A boolean without a
default is false.

```yaml
chaos: 1
name: kill-rank
cluster: {ranks: 4}
job: {steps: 12, protection: [TTP]}
faults:
  - kind: kill
    target: {rank: 1}
    trigger: {step: 6, phase: optimizer.update}
```
"""

_PAGE = re.compile(r"docs/([\w/-]*/)([\w-]+\.md) in the repository")

_VARIABLES = {"#/definitions/variable", "#/definitions/textWithVariables"}


def reference(schema: dict[str, Any]) -> str:
    """Return one list for the file and one for each part, as Markdown. ``schema`` is that of a scenario."""
    definitions = {name: part for name, part in schema["definitions"].items() if "properties" in part}
    needed = schema.get("else", {})
    sections = [_section("The file", schema, needed.get("required", ()))]
    for name, part in sorted(definitions.items()):
        sections.append(_section(name, part, needed.get("properties", {}).get(name.lower(), {}).get("required", ())))
    return _HEAD + "\n" + "\n".join(sections)


def _section(title: str, part: dict[str, Any], unless_configured: Collection[str]) -> str:
    required = set(part.get("required", ()))
    lines = [f"## {title}", ""]
    if description := part.get("description"):
        lines += [_linked(" ".join(description.split())), ""]
    for key, value in part["properties"].items():
        default = "required" if key in required else _default(value)
        if key in unless_configured:
            default = "required without `job.config`"
        meaning = " ".join(value.get("description", "").split())
        kinds = ", ".join(filter(None, (_type(value), default)))
        lines.append(bullet(f"`{key}` ({kinds}): {_linked(meaning)}"))
    return "\n".join(lines) + "\n"


def _default(value: dict[str, Any]) -> str:
    default = value.get("default")
    return "" if default in (None, "", [], {}, False) else f"default `{json.dumps(default)}`"


def _type(value: dict[str, Any]) -> str:
    return " or ".join(dict.fromkeys(_types(value)))


def _types(value: dict[str, Any]) -> Iterator[str]:
    if "$ref" in value:
        if value["$ref"] not in _VARIABLES:
            name = value["$ref"].rpartition("/")[2]
            yield f"[{name}](#{name.lower()})"
    elif "allOf" in value and len(value["allOf"]) == 1:
        yield from _types(value["allOf"][0])
    elif choices := value.get("anyOf", value.get("oneOf")):
        for choice in choices:
            yield from _types(choice)
    elif "enum" in value:
        yield ", ".join(f"`{choice}`" for choice in value["enum"])
    elif "const" in value:
        yield f"`{value['const']}`"
    elif value.get("type") == "array":
        items = value.get("items")
        yield f"list of {_type(items)}" if isinstance(items, dict) and items else "list"
    elif value.get("type") == "object":
        items = value.get("additionalProperties")
        yield f"map of {_type(items)}" if isinstance(items, dict) and items else "map"
    elif value.get("type") == "string" and "ms" in value.get("pattern", ""):
        yield "duration"
    elif "type" in value and value["type"] != "null":
        yield str(value["type"])


def _linked(text: str) -> str:
    """Return the text with links to the pages that it names."""
    return _PAGE.sub(r"[\2](../\1\2)", text)
