"""The first element that differs, where files of the run hold both states; else only digests say that they differ.

A record holds digests. A checkpoint with the same digest of a parameter holds its values, whoever saved it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from chaos.base.plain_files import TooMuch
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.finding import Finding
from chaos.evidence.statement_data import StatementData
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.element import first_difference
from chaos.observe.checkpoints.layout import DIGESTED
from chaos.observe.checkpoints.saved_state import SavedState

MOST_STATEMENTS = 16
"""Statements of a run for which files are read again."""


def with_elements(findings: Iterable[Finding], artifacts: Artifacts) -> list[Finding]:
    """Return the findings; those about digests get the first element that differs, where it is known."""
    every = list(findings)
    of_digests = [
        place for place, finding in enumerate(every) if finding.verdict != "pass" and finding.data.is_of_digests
    ]
    for place in of_digests[:MOST_STATEMENTS]:
        data = _with_element(every[place].data, artifacts.read_states)
        every[place] = replace(every[place], data=data)
    return every


def _with_element(data: StatementData, states: Mapping[Path, SavedState]) -> StatementData:
    name = data.parameters[0]
    files = [_holding(states, name, digest) for digest in (data.expected, data.seen)]
    if files[0] is None or files[1] is None:
        return data
    try:
        difference = first_difference(files[0], files[1], name)
    except (CheckpointError, OSError, EOFError, TooMuch, ValueError):
        return data  # the checks say what is wrong with a file
    if difference is None:
        return data
    return data.with_element(difference.index, difference.expected, difference.seen)


def _holding(states: Mapping[Path, SavedState], name: str, digest: object) -> Path | None:
    """Return a checkpoint with this state of a parameter. Of a file that was not kept there are digests only."""
    return next(
        (
            path
            for path, state in states.items()
            if state.digests.get(name) == digest and not path.name.endswith(DIGESTED)
        ),
        None,
    )
