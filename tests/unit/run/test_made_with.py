"""A run tells what it was made with: every value that held, the command, and none of their secrets."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

import chaos
from chaos.run.made_with import code_key, machine_facts, masked_values, own_code, recorded_command


def test_values_are_kept_as_they_are() -> None:
    values = {"batch": "enormous", "victim": 1, "rate": 0.5, "on": True, "none": None, "steps": [1, {"at": 2}]}
    assert masked_values(values) == values


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"hub_token": "x-1"}, {"hub_token": "***"}),
        ({"password": 4711}, {"password": "***"}),
        ({"login": {"user": "a", "password": "x-1"}}, {"login": {"user": "a", "password": "***"}}),
        ({"api_key": ["x-1", "x-2"]}, {"api_key": ["***", "***"]}),
        ({"data": "https://a:x-1@host/set"}, {"data": "https://a:***@host/set"}),
    ],
)
def test_secrets_are_masked_by_their_name_and_by_their_text(values: dict[str, object], shown: object) -> None:
    assert masked_values(values) == shown


def test_numbers_that_json_has_not_become_text() -> None:
    values = {"low": -math.inf, "what": math.nan, "long": 10**50, "count": 10**9}
    shown = masked_values(values)
    assert shown == {"low": "-inf", "what": "nan", "long": "1" + "0" * 50, "count": 10**9}
    json.dumps(shown, allow_nan=False)


def test_the_command_is_recorded_without_its_secrets() -> None:
    recorded = recorded_command(["run", "a.yaml", "--set", "hub_token=x-1", "--set", "batch=2"])
    assert recorded == ["chaos", "run", "a.yaml", "--set", "hub_token=***", "--set", "batch=2"]
    assert recorded_command([]) is None


def test_the_machine_is_told_as_json() -> None:
    facts = json.loads(json.dumps(machine_facts(), allow_nan=False))
    assert set(facts) == {"system", "processors", "load"}
    assert facts["processors"] >= 1


def test_the_code_is_a_digest_that_is_the_same_wherever_the_package_lies(tmp_path: Path) -> None:
    package = Path(chaos.__file__).parent
    copied = shutil.copytree(package, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("__pycache__"))
    assert own_code() == code_key("", copied)
    (copied / "__init__.py").write_text("changed = True\n")
    assert own_code() != code_key("", copied)


def test_code_that_cannot_be_read_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> str:
        raise PermissionError

    monkeypatch.setattr("chaos.run.made_with.code_key", unreadable)
    assert own_code() is None
