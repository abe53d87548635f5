"""The generated pages are those that the code would generate, and tell what a reader has to know of each kind."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from chaos.docs.pages import COMMAND, pages
from chaos.docs.prose import own_points
from tests.documents.blocks import ROOT

DOCS = ROOT / "docs"
GENERATED = pages(ROOT / "scenarios")


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert GENERATED[name]() == (DOCS / name).read_text("utf-8"), f"run {COMMAND} in the root of the repository"


@pytest.mark.parametrize("point", own_points("faults"), ids=lambda point: point.name)
def test_every_fault_kind_says_what_it_stands_for_on_ascend_and_what_proves_it(point: object) -> None:
    assert hasattr(point, "name") and hasattr(point, "module") and hasattr(point, "load")
    (section,) = re.findall(rf"^## {point.name}\n(.*?)(?=^## |\Z)", (DOCS / "faults.md").read_text(), re.M | re.S)
    assert "On Ascend" in section, f"{import_module(point.module).__file__}: say what it is on Ascend"
    for row in ("made by", "evidence", "undone by"):
        assert re.search(rf"^\| {row} \| \S.* \|$", section, re.M), row


def test_every_layer_that_a_job_kind_declares_is_explained() -> None:
    head, *sections = (DOCS / "simulated.md").read_text().split("\n## ")
    explained = set(re.findall(r"^\| ([\w ]+) \| ", head, re.M)) - {"layer"}
    declared = {layer for section in sections for layer in re.findall(r"^\| ([\w ]+) \| ", section, re.M)} - {"layer"}
    assert declared
    assert declared <= explained
