"""What every registered job kind says of itself: the name that it is registered by, probes that are known, examples."""

from __future__ import annotations

import pytest

from chaos.base.registry import registry
from chaos.doctor import all_probes
from chaos.jobs.kind import job_kind
from chaos.scenario.models.defaults import DEFAULT_KIND
from chaos.scenario.models.job import Job

KINDS = registry("jobs").names()


@pytest.mark.parametrize("name", KINDS)
def test_it_is_called_as_it_is_registered_and_needs_what_is_known(name: str) -> None:
    kind = job_kind(name)
    assert kind.name == name
    assert set(kind.needs) <= all_probes().keys()
    assert kind.traits.mindspore is ("mindspore" in kind.needs)


@pytest.mark.parametrize("name", KINDS)
def test_what_its_examples_say_is_a_job(name: str) -> None:
    for told in job_kind(name).examples.values():
        assert Job.model_validate({"kind": name, "steps": 1, **told}).kind == name


def test_each_thing_is_shown_by_one_kind() -> None:
    shown = [what for name in KINDS for what in job_kind(name).examples]
    assert sorted(shown) == sorted(set(shown))
    assert "any" in shown


def test_a_scenario_that_names_no_kind_has_one_that_is_registered() -> None:
    assert Job.model_validate({"steps": 1}).kind == DEFAULT_KIND
    assert DEFAULT_KIND in KINDS
