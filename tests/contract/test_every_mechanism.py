"""Every registered mechanism says what the rest of the harness asks of one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from chaos.base.registry import registry
from chaos.evidence.mechanisms_seen import all_signs
from chaos.mechanisms.registry import RULES
from chaos.plan.budgets import PROFILES
from chaos.plan.recovery.mechanism import IMPLIES, NEEDS
from chaos.plan.recovery.registry import in_order, mechanisms

NAMES = registry("mechanisms").names()


def test_the_mechanisms_of_the_sdk_are_registered() -> None:
    assert set(NAMES) >= {"TTP", "UCE", "HCCE", "TRE", "ARF", "TSP", "RSC"}
    assert set(mechanisms()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_mechanism_has_the_name_that_it_is_registered_by(name: str) -> None:
    assert registry("mechanisms").load(name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_every_timing_profile_has_budgets_of_its_phases_and_no_others(name: str) -> None:
    mechanism = mechanisms()[name]
    assert mechanism.phases
    assert set(mechanism.budgets) == set(PROFILES)
    for profile in mechanism.budgets.values():
        assert set(profile.phases) <= set(mechanism.phases)


@pytest.mark.parametrize("name", NAMES)
def test_its_needs_are_in_the_vendors_table(name: str) -> None:
    assert set(mechanisms()[name].needs) <= set(NEEDS)


def test_no_two_mechanisms_share_a_place() -> None:
    for places in (
        Counter(mechanism.order for mechanism in in_order()),
        Counter(mechanism.listed for mechanism in in_order()),
    ):
        assert max(places.values()) == 1


def test_the_last_mechanism_that_is_asked_ends_the_launch() -> None:
    assert [mechanism.name for mechanism in in_order() if mechanism.ends_launch] == [in_order()[-1].name]


def test_what_a_mechanism_names_is_registered() -> None:
    named = {*IMPLIES.values(), *(other for mechanism in in_order() for other in mechanism.repairs_with)}
    assert named <= set(NAMES) and named


@pytest.mark.parametrize("name", NAMES)
def test_its_rule_can_be_loaded_and_calls_the_handlers_that_are_signs_of_it(name: str) -> None:
    signs = mechanisms()[name].signs
    assert callable(RULES[name].judge)
    assert signs is None or not signs.handlers or signs.handlers & set(RULES[name].handlers)


def test_mechanisms_that_share_the_name_of_their_signs_share_the_signs() -> None:
    own = [mechanism.signs for mechanism in in_order() if mechanism.signs is not None]
    assert {signs.name for signs in own} < set(NAMES) | {"online repair"}
    assert all(signs in all_signs() for signs in own)


def test_no_sign_tells_of_two() -> None:
    for what in ("handlers", "lines", "states", "repairs", "ranks"):
        entries = Counter(one for signs in all_signs() for one in getattr(signs, what))
        assert entries and max(entries.values()) == 1, what
    assert len([one for one in all_signs() if one.any_repair]) == 1


def test_every_other_sign_that_a_mechanism_leaves_is_one() -> None:
    also = {name for signs in all_signs() for name in signs.also}
    assert also and also <= {signs.name for signs in all_signs()}


_NEW = """
from chaos.mechanisms.registry import Rule
from chaos.plan.budgets import Profile
from chaos.plan.recovery.registry import Mechanism

def judge(case):
    raise NotImplementedError

RULE = Rule(handlers=("stop",), judge=judge, phase_ends=lambda launch, after: iter(()))

BUDGETS = {timings: Profile(total=7.0, phases={"stop": 3.0}) for timings in ("fast", "vendor", "hardware")}
NEW = Mechanism(name="NEW", listed=99, order=1, answer=lambda context, strike: None, phases=("stop",),
                budgets=BUDGETS, needs={"MindIO": "it asks for it"}, rule="new_package:RULE")
"""

_ASKED = """
from chaos.mechanisms.registry import RULES
from chaos.plan.budgets import PROFILES
from chaos.plan.recovery.mechanism import NEEDS
from chaos.plan.parts.response import PHASES
from chaos.plan.recovery.registry import in_order
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.schema import scenario_schema

job = {"steps": 4, "protection": ["NEW"]}
scenario = Scenario.model_validate({"chaos": 1, "name": "n", "cluster": {"ranks": 2}, "job": job})
print(scenario.job.protection, in_order()[0].name, PHASES["NEW"], PROFILES["fast"]["NEW"].total, NEEDS["MindIO"]["NEW"])
print(RULES["NEW"].handlers, "NEW" in str(scenario_schema()["definitions"]["Job"]["properties"]["protection"]))
"""


def test_another_package_adds_a_mechanism(tmp_path: Path) -> None:
    (tmp_path / "new_package.py").write_text(_NEW)
    metadata = tmp_path / "new_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: new-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[chaos.mechanisms]\nNEW = new_package:NEW\n")
    run = subprocess.run(
        [sys.executable, "-c", _ASKED],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.splitlines() == [
        "('NEW',) NEW ('stop',) 7.0 it asks for it",
        "('stop',) True",
    ], run.stderr
