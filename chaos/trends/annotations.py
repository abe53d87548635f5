"""Failures of the newest runs as annotations of a change: at the file and line of the scenario."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path, PurePath

from chaos.trends.row import RunRow
from chaos.trends.series import series_of, stale


def broken(rows: Iterable[RunRow]) -> list[RunRow]:
    """Return the newest run of each cell that did not pass. A known finding that shows is no news.

    Nor is a run that was interrupted, nor a cell that has not run for a week.
    """
    every = series_of(rows)
    gone = {id(series) for series in stale(every)}
    newest = [series.newest for series in every if id(series) not in gone]
    return [row for row in newest if row.verdict != "pass" and not row.known]


def github(rows: Iterable[RunRow], top: Path) -> str:
    """Return workflow commands of GitHub Actions: an error for a fail, a warning for an unknown.

    Paths are relative to ``top``, the work tree.
    """
    lines = []
    for row in broken(rows):
        level = "error" if row.verdict == "fail" else "warning"
        properties = {"file": relative(row.file, top), "line": str(row.line or 1), "title": f"chaos: {row.name}"}
        listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
        lines.append(f"::{level} {listed}::{_data(_message(row))}")
    return "".join(f"{line}\n" for line in lines)


def gitlab(rows: Iterable[RunRow], top: Path) -> str:
    """Return a code quality report of GitLab. Its fingerprints are the same as long as a cell breaks in one way."""
    entries = []
    for row in broken(rows):
        path = relative(row.file, top) or "scenario.yaml"
        how = row.headline_id or row.verdict
        place = (row.scenario, row.cell, row.platform, row.sdk.partition(" ")[0], str(row.ranks))
        digest = hashlib.blake2b("\0".join((*place, how)).encode(), digest_size=16)
        entries.append(
            {
                "description": _message(row),
                "check_name": "chaos",
                "fingerprint": digest.hexdigest(),
                "severity": "major" if row.verdict == "fail" else "minor",
                "location": {"path": path, "lines": {"begin": row.line or 1}},
            }
        )
    return json.dumps(entries, indent=2) + "\n"


def relative(file: str, top: Path) -> str:
    """Return the path of a scenario below ``top``; its name alone where it lies elsewhere."""
    path = PurePath(file)
    if not path.is_absolute():
        return str(path) if file and ".." not in path.parts else path.name
    return str(path.relative_to(top)) if path.is_relative_to(top) else path.name


def _message(row: RunRow) -> str:
    return f"{row.name}: {row.verdict}: {row.headline or 'no reason is recorded'} (run {row.run})"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
