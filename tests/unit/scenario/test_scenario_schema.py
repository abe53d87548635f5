"""The JSON Schema says to an editor what the loader says, as far as a schema can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from chaos.scenario.names import KnownNames
from chaos.scenario.schema import scenario_schema


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    names = KnownNames({"process.kill", "process.stop"}, {"rehearsal"}, {"local"})
    return Draft7Validator(scenario_schema(names))


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in the schema."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from parts(value)


def test_it_is_draft_07() -> None:
    schema = scenario_schema()
    Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert all("$defs" not in part and "prefixItems" not in part for part in parts(schema))
    references = {part["$ref"] for part in parts(schema) if "$ref" in part}
    assert references == {f"#/definitions/{name}" for name in schema["definitions"]}
    assert all(set(part) == {"$ref"} for part in parts(schema) if "$ref" in part)


def test_every_key_is_described_and_no_other_is_allowed() -> None:
    schema = scenario_schema()
    for name, model in {**schema["definitions"], "": schema}.items():
        if "properties" in model:
            assert model["additionalProperties"] is False, name
            assert all("description" in value for value in model["properties"].values()), name


def test_defaults_satisfy_the_schema() -> None:
    schema = scenario_schema()
    checked = 0
    for part in parts(schema):
        if "default" in part and ("anyOf" in part or "type" in part):
            Draft7Validator({**part, "definitions": schema["definitions"]}).validate(part["default"])
            checked += 1
    assert checked > 20


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ("rank: ${victim}", "random: ${victim}"),
        ("steps: 10", "steps: ${victim}"),
        ("mechanism: TTP", "mechanism: ${victim}"),
        ("[0, 2, 3, 5]", '[0, "${victim}"]'),
        ("[0, 2, 3, 5]", '"${victim}"'),
        ("run: 5m", "run: '${victim}m'"),
        ("optimizer: true", "optimizer: ${victim}"),
        ("step: 5\n      phase: ${phase}", "elapsed: 1.5 s"),
    ],
)
def test_right_files_pass(validator: Draft7Validator, full: str, change: tuple[str, str]) -> None:
    assert change[0] in full
    validator.validate(yaml.safe_load(full.replace(*change, 1) if change[0] else full))


@pytest.mark.parametrize(
    "change",
    [
        ("data_parallel: 8", "data_paralel: 8"),
        ("steps: 10", "steps: four"),
        ("steps: 10", "steps: 0"),
        ("steps: 10", "steps: 1${victim}"),
        ("  steps: 10\n", ""),
        ("rank: ${victim}", "rank: -1"),
        ("rank: ${victim}", "rank:"),
        ("rank: ${victim}", "rank: 1\n      node: 0"),
        ("      step: 5\n", ""),
        ("elapsed: 200ms", "elapsed: 200"),
        ("elapsed: 200ms", "elapsed: 2.5"),
        ("run: 5m", "run: 0s"),
        ("mechanism: TTP", "mechanism: TPP"),
        ("resume: none", "resume: nne"),
        ("resume: none", "resume: {}"),
        ("kind: process.kill", "kind: process.kil"),
        ("kind: rehearsal", "kind: rehersal"),
        ("platform: local", "platform: moon"),
        ('GLOG_v: "2"', "GLOG_v: 2"),
        ("phase: [step.begin, step.end]", "phase: []"),
        ("  victim: 1", "  1victim: 1"),
        ("chaos: 1", "chaos: 2"),
        ("id: kill", "id: ../kill"),
        ("tolerance: 0.001", "tolerance: '1'"),
    ],
)
def test_wrong_files_do_not(validator: Draft7Validator, full: str, change: tuple[str, str]) -> None:
    assert change[0] in full
    assert not validator.is_valid(yaml.safe_load(full.replace(*change, 1)))


def test_without_names_any_kind_passes(full: str) -> None:
    Draft7Validator(scenario_schema()).validate(yaml.safe_load(full.replace("process.kill", "mine")))
