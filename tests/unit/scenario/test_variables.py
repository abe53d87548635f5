"""Variables take their typed values, and a name that leads nowhere is an error at its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.scenario.errors import Problem, ScenarioError
from chaos.scenario.load import LoadedScenario, load_scenario

Problems = Callable[..., list[Problem]]
Load = Callable[..., LoadedScenario]

USING = """\
chaos: 1
name: n
description: "{text}"
variables: {{x: {value}}}
cluster: {{ranks: 4}}
job: {{steps: 10}}
faults:
- kind: process.kill
  target: {{rank: 0}}
  trigger: {{step: 1}}
  parameters: {{p: "${{x}}"}}
"""


def using(value: str, text: str = "t") -> str:
    return USING.format(value=value, text=text)


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        ("1", 1),
        ("'1'", "1"),
        ("true", True),
        ("~", None),
        ("1.5", 1.5),
        ("[1, a]", [1, "a"]),
        ("{a: {b: 1}}", {"a": {"b": 1}}),
    ],
)
def test_a_scalar_that_is_only_a_variable_takes_the_typed_value(load: Load, value: str, typed: object) -> None:
    parameters = load(using(value)).cells[0].scenario.faults[0].parameters
    assert parameters == {"p": typed} and type(parameters["p"]) is type(typed)


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("1", "a ${x}b", "a 1b"),
        ("true", "${x}${x}", "truetrue"),
        ("~", "<${x}>", "<null>"),
        ("two words", "${x}!", "two words!"),
        ("1", "$${x} $5 $$${x}", "${x} $5 $${x}"),
        ("'$${y}'", "-${x}", "-${y}"),
    ],
)
def test_inside_text_the_value_is_inserted(load: Load, value: str, text: str, expected: str) -> None:
    assert load(using(value, text)).cells[0].scenario.description == expected


def test_inserted_text_is_not_typed_again(problems: Problems, minimal: str) -> None:
    found = problems(minimal.replace("steps: 10", 'steps: "1${x}"') + "variables: {x: 0}\n")
    assert [(p.line, p.column, p.message) for p in found] == [
        (4, 14, "'steps' must be a whole number, not text '10' (x=0)")
    ]


@pytest.mark.parametrize(
    ("change", "line", "column", "message", "hint"),
    [
        (("name: n", "name: n${xx}"), 3 - 1, 8, "there is no variable 'xx'", "did you mean 'x'?"),
        (("name: n", "name: n${far}"), 2, 8, "there is no variable 'far'", "variables: x"),
        (("name: n", "name: n${}"), 2, 8, "'${}' is not a variable", "'$${' for the text '${'"),
        (("name: n", "name: n${x"), 2, 8, "'${x' is not a variable", "'$${' for the text '${'"),
        (("x: 1", "x: 1, unused: 2"), 4, 19, "variable 'unused' is never used", "take it out"),
        (("x: 1", "x: '${x}'"), 4, 16, "a variable cannot refer to a variable: '${x}'", "write '$${'"),
        (("x: 1", "x: 1, 1y: 2"), 4, 19, "'1y' cannot be the name of a variable", "digits and '_'"),
        (("x: 1", "x: 1, a-b: 2"), 4, 19, "'a-b' cannot be the name of a variable", "digits and '_'"),
        (("variables: {x: 1}", "variables: [x]"), 4, 1, "variables must be a mapping of names to values", ""),
        (("variables: {x: 1}", "variables:"), 4, 1, "variables must be a mapping of names to values", ""),
    ],
)  # fmt: skip
def test_a_wrong_name_is_reported_where_it_stands(
    problems: Problems, change: tuple[str, str], line: int, column: int, message: str, hint: str
) -> None:
    found = problems(using("1").replace(*change))
    assert any((p.line, p.column) == (line, column) and message in p.message and hint in p.hint for p in found), found


def test_a_wrong_name_in_a_block_of_text_is_found_in_its_line(problems: Problems, minimal: str) -> None:
    found = problems(minimal + "variables: {x: 1}\nbaseline: ${x}\ndescription: |\n  first\n  and ${y} here\n")
    assert [(p.line, p.column) for p in found if "no variable" in p.message] == [(9, 7)]


def test_a_list_is_not_inserted_into_text(problems: Problems) -> None:
    found = problems(using("[1]", "a ${x}"))
    assert [(p.line, p.column) for p in found] == [(3, 17)]
    assert "cannot be inserted into text" in found[0].message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("'5'", "5"),
        ('"a\\tb"', "a\tb"),
        ("on", "on"),
        ("", None),
        ("a: b", "a: b"),
        ("[1]", "[1]"),
        ("# x", "# x"),
    ],
)
def test_a_setting_is_typed_like_a_yaml_scalar(load: Load, text: str, value: object) -> None:
    cell = load(using("1"), x=text).cells[0]
    assert cell.values == {"x": value} == cell.scenario.variables
    assert cell.scenario.faults[0].parameters == {"p": value}


@pytest.mark.parametrize("text", ["'open", '"a" b', "9" * 30, "\udcff", "'a' # c\n---\nb", "\0"])
def test_an_unusable_setting_is_a_problem(problems: Problems, text: str) -> None:
    found = problems(using("1"), x=text)
    assert len(found) == 1 and found[0].line == 0 and "is not a usable value" in found[0].message


def test_a_setting_needs_a_declared_name(problems: Problems) -> None:
    found = problems(using("1").replace("x: 1", "victim: 1").replace("${x}", "${victim}"), victm="2")
    assert [str(p) for p in found] == [
        "--set victm=2: the scenario has no variable 'victm'\n    did you mean 'victim'?"
    ]


def test_the_value_of_a_setting_is_named_where_it_does_harm(problems: Problems) -> None:
    text = using("1").replace("rank: 0", 'rank: "${x}"')
    assert [(p.line, p.column, p.message, p.text) for p in problems(text, x="9")] == [
        (9, 18, "rank 9 of 4: ranks are 0 to 3 (x=9)", "${x}")
    ]


def test_variables_cannot_fill_the_memory(write: Callable[..., object], minimal: str) -> None:
    uses = "\n".join(f"  - {'${x}' * 200}" for _ in range(100))
    text = minimal + f"variables:\n  x: {'y' * 10_000}\ntags:\n{uses}\n"
    with pytest.raises(ScenarioError, match="hold more than 5000000 values and characters"):
        load_scenario(str(write(text)))
