"""The ranks of gloo on one of several nodes use the interface that has the node's address."""

from __future__ import annotations

import os

import pytest

from chaos.agent.after_import import AfterImport
from chaos.agent.configuration import Configuration, Place
from chaos.agent.start import Agent
from chaos.agent.torch.interface import VARIABLE, install, interface_of


def test_an_interface_is_found_by_its_address() -> None:
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("192.0.2.1") is None


@pytest.mark.parametrize(
    ("address", "place", "before", "after"),
    [
        ("127.0.0.1", Place("other", None, None), None, "lo"),
        ("127.0.0.1", Place("other", None, None), "eth7", "eth7"),
        ("192.0.2.1", Place("other", None, None), None, None),
        (None, Place("other", None, None), None, None),
        ("127.0.0.1", Place("rank", 0, 2), None, None),
    ],
)
def test_the_launcher_of_a_node_says_which(
    monkeypatch: pytest.MonkeyPatch, address: str | None, place: Place, before: str | None, after: str | None
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(VARIABLE, before)
    settings = Configuration(run="run-1", attempt="train", history="", address=address)
    install(Agent(settings, place, AfterImport()))
    assert os.environ.get(VARIABLE) == after
    monkeypatch.delenv(VARIABLE, raising=False)
