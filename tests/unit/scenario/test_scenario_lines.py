"""Every value can be traced to its line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.scenario.load import LoadedScenario

Load = Callable[..., LoadedScenario]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("name", "name:"),
        ("faults.0.trigger.step", "step: 5\n"),
        ("faults.1", "kind: process.stop"),
        ("expect.checkpoint.step", "step: 5, ranks"),
        ("expect.checkpoint.ranks.2", "3, 5]"),
        ("job.environment.GLOG_v", "GLOG_v"),
    ],
)
def test_a_path_leads_to_its_place(load: Load, full: str, path: str, text: str) -> None:
    line, column = load(full).cells[1].lines[path]
    assert "\n".join(full.split("\n")[line - 1 :])[column - 1 :].startswith(text)


def test_a_missing_path_falls_back_to_the_key_around_it(load: Load, full: str) -> None:
    lines = load(full).cells[0].lines
    assert lines.get("expect.recovery.phases.save.x") is None and "expect.recovery.phases.save" not in lines
    assert lines.nearest("expect.recovery.phases.save.x") == lines["expect.recovery.phases"]
    assert lines.nearest("faults.7.kind") == lines["faults"]
    assert lines.nearest("nothing.here") == lines.nearest("") == lines["chaos"]
    with pytest.raises(KeyError):
        lines["faults.7"]


def test_keys_with_dots_are_found(load: Load, minimal: str) -> None:
    text = minimal + (
        "faults:\n- kind: process.kill\n  target: {rank: 0}\n  trigger: {step: 1}\n  parameters:\n    a.b: {c: 1}\n"
    )
    assert load(text).cells[0].lines["faults.0.parameters.a.b.c"] == (10, 11)
