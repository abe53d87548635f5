"""A job kind is asked for by its name, and is one: whatever else a package registers is refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from chaos.base.registry import NOUNS, Registry, RegistryError, UnknownName
from chaos.jobs.kind import job_kind
from chaos.rehearsal.plain.job import KIND


def test_a_kind_is_found_by_its_name() -> None:
    assert job_kind("plain") is KIND
    with pytest.raises(UnknownName, match=r"'plane'.*did you mean 'plain'"):
        job_kind("plane")


def test_what_is_registered_as_one_and_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("odd", "chaos.rehearsal.plain.job:PlainJob", "chaos.jobs")
    known = Registry("chaos.jobs", NOUNS["chaos.jobs"], source=lambda group: [point])
    monkeypatch.setattr("chaos.jobs.kind.registries", SimpleNamespace(registry=lambda group: known))
    with pytest.raises(RegistryError, match=r"'odd' is registered as .* does not derive from .*JobKind, .*extending"):
        job_kind("odd")
