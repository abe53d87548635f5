"""Limits are written into the scenario where they belong; comments and everything else stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.base.refusal import Refused
from chaos.calibration import store
from chaos.calibration.edit import with_limits
from chaos.scenario.models.scenario import ExpectLoss

LIMITS: dict[str, Any] = {
    "tolerance": 1e-06,
    "mean": 0.002,
    "state": {"moments.*weight": {"norm": 0.1, "sample": 0.5}, "*bias": {}},
    "false_alarm": 0.01,
    "measured": {"job.script": "12e456789012", "cluster.ranks": "2", "numpy": "2.0"},
}

FORMS = {
    "no expect": "name: a # first\njob: {steps: 3}\n# last",
    "an empty expect": "name: a\nexpect: # why\nbaseline: auto # b\n",
    "expect without loss": "expect:\n  # above\n  mechanism: TTP # why\n  resume: {step: 5}\n# last\nname: a\n",
    "loss in flow": "expect:\n    loss: {tolerance: 1e-6} # why\n    mechanism: TTP\nname: a\n",
    "an empty loss": "expect:\n  loss: # why\n  mechanism: TTP\n",
    "expect in flow": "expect: {mechanism: TTP, loss: {tolerance: 0.1}} # why\nname: a\n",
    "expect in flow without loss": "expect: {mechanism: TTP} # why\n",
    "loss in a block": (
        "expect:\n  loss: # b\n    # above\n    tolerance: 0.1 # why\n    state: # states\n      # inner\n"
        '      "*": {norm: 0.1} # all\n    # below\n  mechanism: TTP\n'
    ),
    "windows": "expect:\r\n  mechanism: TTP # why\r\nname: a\r\n",
}


def comments(text: str) -> list[str]:
    return [line.partition("# ")[2].strip() for line in text.splitlines() if "# " in line]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gets_the_limits_and_keeps_its_comments(form: str) -> None:
    text = FORMS[form]
    changed = with_limits(text, LIMITS, ["chaos calibrate: first", "chaos calibrate: second"])
    before, after = yaml.safe_load(text), yaml.safe_load(changed)
    assert after["expect"].pop("loss") == LIMITS
    (before.get("expect") or {}).pop("loss", None)
    assert {**after, "expect": after["expect"] or None} == {**before, "expect": before.get("expect") or None}
    kept = [each for each in comments(changed) if not each.startswith("chaos calibrate")]
    assert sorted(kept) == sorted(comments(text))
    ExpectLoss.model_validate(LIMITS)


@pytest.mark.parametrize("form", FORMS)
def test_a_second_calibration_replaces_the_first(form: str) -> None:
    once = with_limits(FORMS[form], LIMITS, ["chaos calibrate: first"])
    twice = with_limits(once, {"tolerance": 0.5, "false_alarm": 0.02}, ["chaos calibrate: again"])
    assert yaml.safe_load(twice)["expect"]["loss"] == {"tolerance": 0.5, "false_alarm": 0.02}
    assert "chaos calibrate: first" not in twice
    assert with_limits(twice, LIMITS, ["chaos calibrate: first"]).count("chaos calibrate: ") in (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "{name: a}",
        "expect: &e {mechanism: TTP}\nother: *e\n",
        "expect: [1]\n",
        "expect:\n  loss: [1]\n",
        "expect:\n  loss: {tolerance: 0.1,\n    mean: 0.1} \n",
        "a: 1\n---\nb: 2\n",
        "a: [1\n",
        "- 1\n",
        "",
    ],
)
def test_a_form_that_cannot_be_changed_safely_is_refused_with_the_lines_to_write(text: str) -> None:
    with pytest.raises(Refused, match=r"write into it:\nexpect:\n  loss:\n    tolerance: 1.0e-06"):
        with_limits(text, LIMITS)


def test_undo_writes_the_text_before_and_refuses_where_somebody_has_changed_it(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"name: a\r\n")
    path.chmod(0o640)
    before = store.read(path)
    store.write(path, before, "name: b\n")
    assert path.read_text() == "name: b\n" and path.stat().st_mode & 0o777 == 0o640
    store.undo(path)
    assert path.read_bytes() == b"name: a\r\n"
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]
    with pytest.raises(Refused, match="no calibration to undo"):
        store.undo(path)
    store.write(path, before, "name: b\n")
    path.write_text("name: c\n")
    with pytest.raises(Refused, match="has changed since the calibration"):
        store.undo(path)
    with pytest.raises(Refused, match="has changed while the runs were made"):
        store.write(path, before, "name: d\n")
    assert path.read_text() == "name: c\n"
    store.kept_beside(path).write_text("[]")
    with pytest.raises(Refused, match="is not what a calibration has kept"):
        store.undo(path)
