"""Whatever differs from the vendor's package, and whatever fails with it, is a finding or says why it is none."""

from __future__ import annotations

import re

from chaos.run.prepare.prepare import known_names
from chaos.scenario.find import iter_scenarios
from chaos.scenario.known_findings import FILE, read_known_findings
from chaos.scenario.load import load_scenario
from tests.documents.blocks import ROOT
from tests.kit.shipped import SHIPPED

PLACES = ("design/conformance.md", "reference/findings.md")
CONFORMANCE, FINDINGS = ((ROOT / "docs" / place).read_text("utf-8") for place in PLACES)
ENTRIES = {row.split("|")[1].strip(): row for row in FINDINGS.splitlines() if re.match(r"\| F-\d\d", row)}
FILES = {path.stem: path for path in iter_scenarios([SHIPPED])}
REFUSED = {"arf-no-replacement"}
"""Fails, and is refused since (F-02): it has no run that a finding could excuse."""


def test_each_difference_is_a_finding_or_says_why_it_is_none() -> None:
    rows = re.findall(r"^\| (?!case|---)(.+) \|$", CONFORMANCE.partition("## Remaining differences")[2], re.M)
    assert len(rows) >= 12
    for row in rows:
        said = row.split(" | ")[-1]
        assert re.match(r"none: .{20}", said) or said[:4] in ENTRIES, row


def test_each_scenario_that_is_told_to_fail_with_the_vendors_package_has_its_finding() -> None:
    entries = re.findall(r"^\| scenarios, (?:fail|unknown) \|.*$", CONFORMANCE, re.M)
    names = {name for row in entries for name in re.findall(r"`([a-z0-9-]+)`", row)} - REFUSED
    found = {name for name in names if name in FILES}
    assert found >= {"tre-then-kill", "arf-second-death", "plain-tsp", "tsp", "plain-arf-twice-clean"}
    for name in found - {"plain-arf-twice"}:  # named for its cells, which pass
        known = load_scenario(FILES[name], names=known_names()).cells[0].scenario.known
        assert known is not None and known.id in ENTRIES, name
        assert re.search(rf"\b{name}\b", ENTRIES[known.id].split("|")[4]), f"{known.id} does not name {name}"


def test_each_finding_of_a_scenario_is_listed() -> None:
    known = read_known_findings(SHIPPED / FILE).scenarios
    assert known.keys() <= FILES.keys()
    for name, finding in known.items():
        row = ENTRIES[finding.id]
        assert name in re.findall(r"[\w-]+", row.split("|")[4]), f"{finding.id} does not name {name}"


def test_no_scenario_file_says_what_the_registry_is_for() -> None:
    assert [name for name, path in FILES.items() if re.search(r"^(finding|failing):", path.read_text(), re.M)] == []
