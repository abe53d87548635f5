"""A job kind is asked for by its name, and is one: whatever else a package registers is refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from chaos.base.registry import NOUNS, Registry, RegistryError, UnknownName
from chaos.jobs.kind import Examined, job_kind
from chaos.rehearsal.plain.job import KIND, PlainJob
from chaos.scenario.completion import Completion


def test_a_kind_is_found_by_its_name() -> None:
    assert job_kind("plain") is KIND
    with pytest.raises(UnknownName, match=r"'plane'.*did you mean 'plain'"):
        job_kind("plane")


def test_what_is_registered_as_one_and_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("odd", "chaos.rehearsal.plain.job:PlainJob", "chaos.jobs")
    known = Registry("chaos.jobs", NOUNS["chaos.jobs"], source=lambda group: [point])
    monkeypatch.setattr("chaos.jobs.kind.registries", SimpleNamespace(registry=lambda group: known))
    with pytest.raises(RegistryError, match=r"'odd' is registered as .* must derive from .*JobKind .*extending"):
        job_kind("odd")


class Describes(PlainJob):
    """Has the methods of a kind whose jobs are described by files, and does not say that it is one."""

    def completed(self, cell: object) -> Completion:
        return Completion()

    def examined(self, cell: object, scenario_file: object) -> Examined:
        return Examined(self.traits)


DESCRIBES = Describes()


def test_a_kind_that_would_never_be_asked_what_its_files_say_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("odd", f"{__name__}:DESCRIBES", "chaos.jobs")
    known = Registry("chaos.jobs", NOUNS["chaos.jobs"], source=lambda group: [point])
    monkeypatch.setattr("chaos.jobs.kind.registries", SimpleNamespace(registry=lambda group: known))
    with pytest.raises(RegistryError, match=r"must derive from chaos\.jobs\.kind\.Configured"):
        job_kind("odd")
