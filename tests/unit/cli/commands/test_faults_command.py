"""``chaos faults``: every kind has a line and a page of its own, with an example that can be planned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from chaos.base.registry import registry
from chaos.faults.registered import fault_kind
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]
KINDS = sorted(registry("faults").some_names())


def test_each_kind_has_a_line_below_its_family(chaos: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = chaos("faults").out.splitlines()
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == KINDS
    assert lines[lines.index("signals") + 2].startswith("  kill")
    assert lines[-1] == f"{len(KINDS)} kinds; chaos faults KIND explains one"
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_explained_with_its_parameters_and_an_example(
    chaos: Call, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ended = chaos("faults", kind)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith(f"{kind} (")
    for name in fault_kind(kind).parameters or {}:
        assert any(line.startswith(f"  {name} ") for line in lines)
    begin = next(number for number, line in enumerate(lines) if line.startswith("example"))
    scenario = yaml.safe_load("\n".join(line.removeprefix("  ") for line in lines[begin + 1 :]))
    assert kind in [fault["kind"] for fault in scenario["faults"]]
    assert json.loads(chaos("faults", kind, "--json").out)["example"] == scenario


def test_an_example_can_be_planned_as_it_is_printed(chaos: Call, tmp_path: Path) -> None:
    text = chaos("faults", "network-delay").out.partition("example")[2].partition("\n")[2]
    (tmp_path / "printed.yaml").write_text("\n".join(line.removeprefix("  ") for line in text.splitlines()))
    assert chaos("plan", str(tmp_path / "printed.yaml")).code == 0


def test_an_unknown_kind_is_told_what_was_meant(chaos: Call) -> None:
    ended = chaos("faults", "kil")
    assert (ended.code, "did you mean 'kill'?" in ended.err) == (64, True)
