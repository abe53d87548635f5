"""The generated pages are those that the code would generate, and explain the words that they use."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from chaos.cli.main import COMMANDS
from chaos.manual.pages import COMMAND, pages
from tests.documents.blocks import ROOT

DOCS = ROOT / "docs"
GENERATED = pages(ROOT / "scenarios")


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert GENERATED[name]() == (DOCS / name).read_text("utf-8"), f"run {COMMAND} in the root of the repository"


def test_the_man_page_has_every_command_and_no_line_that_groff_doubts() -> None:
    page = DOCS / "man" / "chaos.1"
    titles = re.findall(r'^\.SS "chaos ([\w-]+)', page.read_text("utf-8"), re.M)
    assert list(dict.fromkeys(titles)) == list(COMMANDS)
    if shutil.which("groff") is None:
        pytest.skip("there is no groff on this machine")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-z", page], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_layer_that_a_job_kind_declares_is_explained() -> None:
    head, *sections = (DOCS / "reference" / "simulated.md").read_text().split("\n## ")
    explained = set(re.findall(r"^\| ([\w ]+) \| ", head, re.M)) - {"layer"}
    declared = {layer for section in sections for layer in re.findall(r"^\| ([\w ]+) \| ", section, re.M)} - {"layer"}
    assert declared
    assert declared <= explained
