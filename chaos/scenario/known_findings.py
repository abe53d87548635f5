"""Known defects of the systems under test, kept beside the scenarios that show them: ``known-findings.yaml``.

A scenario then states the expectations, and not which systems do not meet them yet. Strict YAML, read like a scenario.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from chaos.scenario import rules
from chaos.scenario.errors import Problems, ScenarioError, quote
from chaos.scenario.lines import locate
from chaos.scenario.models.scenario import Finding
from chaos.scenario.models.terms import FROM_FILE, Model
from chaos.scenario.source import Source, read_source
from chaos.scenario.yaml_nodes import Mapping, parse, plain_data

FILE = "known-findings.yaml"
TOP = "scenarios"
"""Name of the topmost directory that is searched for the file: files above it may belong to somebody else."""


class KnownFinding(Finding):
    """A reason for which a scenario may fail, and the checks in which it may."""

    failing: tuple[str, ...] = Field(
        strict=False, min_length=1, description="The checks in which the run may fail by the finding."
    )


class KnownFindings(Model):
    """The file."""

    known_findings: int = Field(alias="known-findings", ge=1, le=1, description="Version of the format: 1.")
    scenarios: dict[str, KnownFinding] = Field(description="The finding of each scenario, by the scenario's name.")


def finding_of(path: Path, name: str) -> KnownFinding | None:
    """Return the known finding of scenario ``name`` from the files that hold for the scenario file ``path``, or None.

    The file nearest to the scenario goes before one above it. Raises ScenarioError for a wrong file, with the
    line and the column in it.
    """
    for file in _files_of(path):
        if (known := read_known_findings(file).scenarios.get(name)) is not None:
            return known
    return None


def read_known_findings(file: Path) -> KnownFindings:
    """Read a file of known findings. Raises ScenarioError with every problem, each with its line and column."""
    source = read_source(file, "a file of known findings", pipes=False)
    problems = Problems()
    root = parse(source, problems)
    findings = None if problems else _validated(root, source, problems)
    if findings is None or problems:
        raise ScenarioError(problems)
    return findings


def _files_of(path: Path) -> Iterator[Path]:
    """Yield the file beside a scenario, then those above it up to the directory ``scenarios``, if it lies in one."""
    above = [path.absolute().parent, *path.absolute().parent.parents]
    last = next((number for number, directory in enumerate(above) if directory.name == TOP), 0)
    for directory in above[: last + 1]:
        if (directory / FILE).is_file():
            yield directory / FILE


def _validated(root: Mapping, source: Source, problems: Problems) -> KnownFindings | None:
    plain = plain_data(root)

    def report(path: tuple[str | int, ...], message: str, hint: str = "", *, on_key: bool = False) -> None:
        del on_key
        place = locate(root, path)
        problems.append(source.problem(place.line, place.column, message, hint=hint))

    try:
        findings = KnownFindings.model_validate(plain, context=FROM_FILE)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            *above, key = detail["loc"]
            if detail["type"] == "missing":
                report(tuple(above), f"the key {quote(key)} is missing")
            elif detail["type"] == "extra_forbidden":
                report(detail["loc"], f"unknown key {quote(key)}")
            else:
                report(detail["loc"], f"{quote(key)}: {detail['msg']}")
        return None
    for name, entry in plain["scenarios"].items():
        finding = {key: value for key, value in entry.items() if key != "failing"}

        def report_below(path: tuple[str | int, ...], message: str, hint: str = "", *, on_key: bool = False) -> None:
            report(("scenarios", name, *path[1:]), message, hint, on_key=on_key)  # noqa: B023 - called at once

        rules.check_finding({"finding": finding, "failing": entry["failing"]}, report_below)
    return findings
