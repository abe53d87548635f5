"""No file makes the loader fail with anything but a ScenarioError, and the editor's schema agrees with the loader."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from chaos.scenario.errors import ScenarioError
from chaos.scenario.find import is_scenario_file
from chaos.scenario.load import LoadedScenario, load_scenario
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.names import KnownNames
from chaos.scenario.schema import scenario_schema
from chaos.scenario.shape import homes_of_keys
from tests.kit.examples import examples

few = examples(80)
NAMES = KnownNames({"process.kill", "process.stop"}, {"rehearsal"}, {"local"})

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 12),
    st.integers(),
    st.floats(),
    st.sampled_from(
        ["none", "TTP", "step.end", "5s", "0s", "${x}", "a${x}b", "${", "$${x}", "kill", "local", "<<", ""]
    ),
    st.text(max_size=8),
)
keys = st.sampled_from(sorted(homes_of_keys())) | st.text(max_size=4)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=20
)


def attempt(folder: Path, text: str | bytes) -> LoadedScenario | None:
    """Load; None if the scenario was refused. Refusals have positions inside the text and can be printed."""
    path = folder / "fuzz.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    assert is_scenario_file(path) in (True, False)
    try:
        return load_scenario(path, names=NAMES)
    except ScenarioError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.message and 0 <= problem.line <= len(text) + 1
            assert all(line.isprintable() for line in str(problem).split("\n"))
        return None


@few
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, junk: bytes) -> None:
    attempt(tmp_path, junk)
    attempt(tmp_path, b"chaos: 1\n" + junk)


@few
@given(st.text(alphabet="chaos: 1\n\t-[]{}&*!|>'\"%@`#,?${x}\\<", max_size=80))
def test_any_yaml_like_text(tmp_path: Path, text: str) -> None:
    attempt(tmp_path, text)
    attempt(tmp_path, "chaos: 1\n" + text)


@few
@given(st.dictionaries(keys, values, max_size=6))
def test_any_structure(tmp_path: Path, data: dict[str, Any]) -> None:
    document = {"chaos": 1, **{key: value for key, value in data.items() if key != "chaos"}}
    attempt(tmp_path, json.dumps(document))
    attempt(tmp_path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


@few
@given(st.data())
def test_cut_and_pasted_scenarios(tmp_path: Path, full: str, data: st.DataObject) -> None:
    a, b, c = sorted(data.draw(st.lists(st.integers(0, len(full)), min_size=3, max_size=3)))
    attempt(tmp_path, full[:a] + data.draw(st.sampled_from(["", full[b:c], "x", ": ", "\n", " "])) + full[b:])


@functools.cache
def validator() -> Any:
    """The schema's validator. Not a fixture: hypothesis would print all of it with every failure."""
    return Draft7Validator(scenario_schema(NAMES))


@few
@given(st.data())
def test_one_value_exchanged(tmp_path: Path, full: str, data: st.DataObject) -> None:
    document = yaml.safe_load(full)
    place: Any = document
    while True:
        choices = list(place) if isinstance(place, dict) else list(range(len(place)))
        choice = data.draw(st.sampled_from(choices))
        if not isinstance(place[choice], (dict, list)) or not place[choice] or data.draw(st.booleans()):
            break
        place = place[choice]
    place[choice] = data.draw(values)
    loaded = attempt(tmp_path, json.dumps(document))
    if loaded is not None:
        read = json.loads(loaded.text, parse_constant=str)  # Infinity and NaN are words, as the loader has it
        assert [error.message for error in validator().iter_errors(read)] == []
        for cell in loaded.cells:
            assert Scenario.model_validate(cell.scenario.model_dump()) == cell.scenario
