"""A scenario alone runs no code: each check and each command is allowed by its name, by the user, for this place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.base.refusal import Refused
from chaos.own.allowed import NOTHING, Allowed, allowed, refuse_unallowed
from chaos.own.settings import allowed_by_settings
from chaos.scenario.models.scenario import Scenario


def scenario(**more: Any) -> Scenario:
    return Scenario.model_validate(
        {"chaos": 1, "name": "mine", "cluster": {"ranks": 2}, "job": {"kind": "plain", "steps": 4}, **more}
    )


CHECKED = scenario(checks=("losses:falls",))
HOOKED = scenario(hooks={"after": ({"command": ("./tidy", "a b")},)})


def refusal(of: Scenario, directory: Path, allowance: Allowed) -> str:
    with pytest.raises(Refused) as refused:
        refuse_unallowed(of, directory, allowance)
    return str(refused.value)


def test_a_check_is_refused_with_the_sentence_that_says_how_to_allow_it(tmp_path: Path) -> None:
    (tmp_path / "losses.py").touch()
    text = refusal(CHECKED, tmp_path, NOTHING)
    assert f"Python code in {tmp_path / 'losses.py'}" in text
    assert '--allow-checks losses:falls, or write allow-checks = ["losses:falls"] into chaos.toml' in text
    assert "losses:fall is allowed, which is another one" in refusal(CHECKED, tmp_path, allowed(["losses:fall"], []))
    refuse_unallowed(CHECKED, tmp_path, allowed(["losses:falls"], []))


def test_an_allowed_check_without_its_file_is_refused(tmp_path: Path) -> None:
    assert "needs a file" in refusal(CHECKED, tmp_path, allowed(["losses:falls"], []))


def test_a_command_is_allowed_with_exactly_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "tidy").write_text("#!/bin/sh\n")
    (tmp_path / "tidy").chmod(0o755)
    for others in ([], ["./tidy"], ["./tidy a b"], ["./tidy 'a b' c"]):
        assert "--allow-hook" in refusal(HOOKED, tmp_path, allowed([], others))
    refuse_unallowed(HOOKED, tmp_path, allowed([], ['./tidy "a b"']))
    (tmp_path / "tidy").chmod(0o644)
    assert "no program ./tidy" in refusal(HOOKED, tmp_path, allowed([], ["./tidy 'a b'"]))


def test_a_scenario_without_own_code_needs_no_allowance(tmp_path: Path) -> None:
    refuse_unallowed(scenario(), tmp_path, NOTHING)


@pytest.mark.parametrize("check", ["losses", "a/b:c", "../x:f", "os.path:join", "x:f g", ":f"])
def test_the_name_of_a_check_leads_nowhere_else(check: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        scenario(checks=(check,))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with settings and a scenario below it."""
    project = tmp_path / "project"
    (project / "scenarios").mkdir(parents=True)
    (project / "scenarios" / "mine.yaml").touch()
    (project / "chaos.toml").write_text('allow-checks = ["losses:falls"]\nallow-hooks = ["./tidy \'a b\'"]\n')
    return project


def test_settings_allow_what_is_below_them_and_nothing_else(project: Path) -> None:
    mine = project / "scenarios" / "mine.yaml"
    given = allowed_by_settings(project / "scenarios", mine)
    assert given == allowed(["losses:falls"], ["./tidy 'a b'"])
    (project.parent / "other.yaml").touch()
    assert allowed_by_settings(project, project.parent / "other.yaml") == NOTHING
    assert allowed_by_settings(project.parent, mine) == NOTHING, "settings beside a scenario are not the user's"


def test_pyproject_has_the_same_settings(project: Path) -> None:
    text = (project / "chaos.toml").read_text()
    (project / "chaos.toml").unlink()
    (project / "pyproject.toml").write_text(f"[tool.chaos]\n{text}")
    assert allowed_by_settings(project, project / "scenarios" / "mine.yaml").checks == {"losses:falls"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("allow-check = []", "no setting 'allow-check'"),
        ('allow-checks = "losses:falls"', "must be a list of texts"),
        ("allow-checks = [", "cannot be used"),
    ],
)
def test_settings_that_cannot_be_used_are_told(project: Path, text: str, told: str) -> None:
    (project / "chaos.toml").write_text(text)
    with pytest.raises(Refused, match=told):
        allowed_by_settings(project, project / "scenarios" / "mine.yaml")


def test_settings_that_anybody_can_write_allow_nothing(project: Path) -> None:
    (project / "chaos.toml").chmod(0o666)
    with pytest.raises(Refused, match="must be yours alone"):
        allowed_by_settings(project, project / "scenarios" / "mine.yaml")
