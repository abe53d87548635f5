"""Only plain YAML with unambiguous keys is read, and what is refused is refused at its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from chaos.scenario import yaml_nodes
from chaos.scenario.errors import Problem
from chaos.scenario.load import LoadedScenario

Problems = Callable[..., list[Problem]]
Load = Callable[..., LoadedScenario]


@pytest.fixture(params=["compiled", "python"], autouse=True)
def _each_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds with the loader in C and with the one in Python."""
    if request.param == "python":
        monkeypatch.setattr(yaml_nodes, "_Loader", yaml.SafeLoader)


@pytest.mark.parametrize(
    ("added", "line", "column", "said"),
    [
        ("job: {steps: 1}\n", 5, 1, "key 'job' is here twice; the first is in line 4"),
        ("expect: {loss: {tolerance: 1, tolerance: 2}}\n", 5, 31, "key 'tolerance' is here twice"),
        ("variables: &a {x: 1}\n", 5, 12, "anchor '&a'"),
        ("tags: *a\n", 5, 7, "alias '*a'"),
        ("expect:\n  <<: {loss: {}}\n", 6, 3, "merge key '<<'"),
        ("tags: !!python/object/apply:os.system [ls]\n", 5, 7, "tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
        ("description: !!str 5\n", 5, 14, "tag 'tag:yaml.org,2002:str'"),
        ("description: ! 5\n", 5, 14, "tag '!'"),
        ("1: x\n", 5, 1, "a key must be text, not '1'"),
        ("? [a]\n: b\n", 5, 3, "a key must be text"),
        ("null: x\n", 5, 1, "a key must be text, not 'null'"),
        ("${a}: x\n", 5, 1, "a key cannot hold a variable"),
        ("---\nchaos: 1\n", 5, 1, "a second document begins here"),
        ('description: "a\\0b"\n', 5, 14, "U+0000"),
        ("expect:\n\tloss: {}\n", 6, 1, "a tab cannot indent"),
        ("description: a: b\n", 5, 15, "a second ':' in one value"),
        ("description: @x\n", 5, 14, "a value cannot start with '@'"),
        ("tags: [${x}]\n", 5, 9, "a variable inside [ ] or { } must be in quotes"),
        ("tags: [a\nname: b\n", 6, 5, ""),
        ("description: 'x\n", 6, 1, "the file ends inside quotes"),
        ("tags: [99999999999999999999]\n", 5, 8, "whole number does not fit 64 bits"),
        ("tags: [" + "9" * 5000 + "]\n", 5, 8, "whole number does not fit 64 bits"),
        ("tags: [1e999]\n", 5, 8, "number is too large"),
        ("tags: " + "[" * 40 + "]" * 40 + "\n", 5, 38, "nested more than 32 levels deep"),
    ],
)
def test_refused_with_its_position(
    problems: Problems, minimal: str, added: str, line: int, column: int, said: str
) -> None:
    found = problems(minimal + added)
    assert any((p.line, p.column) == (line, column) and said in p.message for p in found), found


def test_nesting_without_end_is_refused_wherever_the_reader_gives_up(problems: Problems, minimal: str) -> None:
    """libyaml 0.2.6 and later gives up by itself, while it reads ahead; before, the first level too many was told."""
    (problem,) = problems(minimal + "tags: " + "[" * 100_000 + "\n")
    assert (problem.line, problem.message) == (5, "nested more than 32 levels deep")


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        (b"", 1, 1, "the file is empty"),
        (b"# only a comment\n", 1, 1, "the file is empty"),
        (b"- a\n", 1, 1, "a scenario is a mapping"),
        (b"chaos\n", 1, 1, "a scenario is a mapping"),
        (b"{}\n", 1, 1, "the first key must be 'chaos'"),
        (b"\nname: x\n", 2, 1, "the first key must be 'chaos'"),
        (b"name: x\nchaos: 1\n", 2, 1, "'chaos' must be the first key"),
        (b"chaos: 2\n", 1, 8, "the version of the scenario language must be 1"),
        (b"chaos: true\n", 1, 8, "the version of the scenario language must be 1"),
        (b"chaos: 1.0\n", 1, 8, "the version of the scenario language must be 1"),
        (b"chaos: ${v}\nvariables: {v: 1}\n", 1, 8, "the version of the scenario language must be 1"),
        (b"chaos: 1\nname: \xff\n", 2, 7, "byte 0xff is not UTF-8"),
        (b"chaos: 1\nname: \xe4\xb8\xad\x00\n", 2, 8, "character U+0000 is not allowed"),
        (b"chaos: 1\nname: \x1b[31m\n", 2, 7, "character U+001B is not allowed"),
        (b"chaos: 1\nname: a\xe2\x80\xa8b\n", 2, 8, "character U+2028 is not allowed"),
        ("chaos: 1\n".encode("utf-16"), 1, 1, "byte 0xff is not UTF-8"),
        (b"chaos: 1\n#" + b"x" * 1024 * 1024, 0, 0, "is larger than 1024 KiB"),
    ],
)
def test_what_is_no_scenario_is_refused(problems: Problems, text: bytes, line: int, column: int, said: str) -> None:
    found = problems(text)
    assert any((p.line, p.column) == (line, column) and said in p.message for p in found), found


def test_many_aliases_are_not_expanded(problems: Problems) -> None:
    levels = [f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 15)]
    found = problems("chaos: 1\nvariables:\n  l0: &l0 [x, x]\n" + "\n".join(levels) + "\n")
    assert sum("alias" in p.message for p in found) == 9 * 14


def test_scalars_follow_yaml_1_2(load: Load, minimal: str) -> None:
    text = minimal + (
        "faults:\n- kind: process.kill\n  target: {rank: 0}\n  trigger: {step: 1}\n  parameters: {a: on, b: yes,"
        " c: 010, d: 0o10, e: 0x1F, f: 1:30, g: 2024-01-01, h: 1_000, i: ~, j: TRUE, k: '1', l: 1e3, m: -.inf, n: +7,"
        ' o: 0b1, p: ., q: "", r: , s: n, t: .5, u: -0}\n'
    )
    assert load(text).cells[0].scenario.faults[0].parameters == {
        "a": "on", "b": "yes", "c": 10, "d": 8, "e": 31, "f": "1:30", "g": "2024-01-01", "h": "1_000", "i": None,
        "j": True, "k": "1", "l": 1000.0, "m": float("-inf"), "n": 7, "o": "0b1", "p": ".", "q": "", "r": None,
        "s": "n", "t": 0.5, "u": 0,
    }  # fmt: skip


def test_byte_order_mark_crlf_and_directives_are_read(load: Load, minimal: str) -> None:
    text = b"\xef\xbb\xbf%YAML 1.1\r\n--- # begins\r\n" + minimal.replace("\n", "\r\n").encode()
    loaded = load(text)
    assert loaded.cells[0].scenario.name == "minimal"
    assert loaded.cells[0].lines["job.steps"] == (6, 7)


def test_a_structural_problem_does_not_hide_the_others(problems: Problems) -> None:
    found = problems("chaos: 1\nname: !x y\nclustr: 1\ncluster: {ranks: 4, ranks: 5}\njob: {steps: four}\n")
    assert [(p.line, p.column) for p in found] == [(2, 7), (3, 1), (4, 21), (5, 14)]
