"""One row of the table: a job with one bug from ``chaos init`` to its verdict, and whether the reason is right."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from tests.kit.jobs.habit_jobs import copied, with_scenario
from tests.planted.bugs import BY_ID, SOUND, Said
from tests.planted.catalogue import JOBS
from tests.rehearsal.kit import Chaos

Outcome = Literal["right", "wrong reason", "passed", "unknown", "failed", "not run"]
"""``failed`` is said of a sound job; ``not run`` where no result came of it."""

_MOST_STATEMENTS = 3
_MOST_TEXT = 400
"""Statements of a row that are kept, and characters of each."""


@dataclass(frozen=True)
class Row:
    """A row as it is kept: ``digest`` is that of the script and of what ``chaos init`` was told."""

    job: str
    bug: str
    digest: str
    outcome: Outcome
    verdict: str
    check: str
    headline: str
    statements: tuple[str, ...]
    seconds: float
    chaos: str
    mindspore: str

    @property
    def is_right(self) -> bool:
        """Whether the sound job passed, or the bug was found for the right reason."""
        return self.outcome == "right"


def digest_of(habit: str, bug: str) -> str:
    """A digest of all that makes a row: the script, and further options."""
    job = JOBS[habit]
    text = job.sound() if bug == SOUND else job.changed(bug)
    options = () if bug == SOUND else job.plants[bug].options
    return hashlib.blake2b("\0".join((text, *options)).encode(), digest_size=8).hexdigest()


def run_row(habit: str, bug: str, chaos: Chaos, place: Path) -> Row:
    """Run a job with a bug, or as it is, and judge what the result says."""
    begun = time.monotonic()
    job = copied(habit, place)
    options: Sequence[str] = ()
    if bug != SOUND:
        (job / JOBS[habit].script).write_text(JOBS[habit].changed(bug))
        options = JOBS[habit].plants[bug].options
    try:
        done = chaos.run(with_scenario(chaos, job, options))
        result = done.run.result
    except (AssertionError, OSError, ValueError) as error:
        return _row(habit, bug, "not run", {}, [str(error)[-_MOST_TEXT:]], begun)
    said = deciding(result)
    outcome = judge(bug, result, said, "" if bug == SOUND else JOBS[habit].plants[bug].first)
    if outcome == "right" and done.code != (0 if bug == SOUND else 1):
        outcome = "not run"
    return _row(habit, bug, outcome, result, [f"{each.check}: {each.text}" for each in said], begun)


def deciding(result: dict[str, Any]) -> list[Said]:
    """The statements that decide a verdict, in the order of time: each with its observation and its expectation."""
    checks = sorted((check for check in result["checks"] if check["order"] is not None), key=lambda each: each["order"])
    return [Said(check["name"], f"{check['seen']} (expected: {check['expected']})") for check in checks]


def judge(bug: str, result: dict[str, Any], said: Sequence[Said], first: str = "") -> Outcome:
    """Judge a result by the bug that was planted; ``first`` is a check that may come before the one with the reason."""
    verdict = result["verdict"]
    if bug == SOUND:
        return "right" if verdict == "pass" else "failed"
    if verdict != "fail":
        return "passed" if verdict == "pass" else "unknown"
    return "right" if BY_ID[bug].is_found(result["headline"]["check"], said, first) else "wrong reason"


def kept_run(chaos: Chaos, row: Row, to: Path) -> None:
    """Keep the runs of a row for whoever asks why it ended so."""
    shutil.rmtree(to, ignore_errors=True)
    if chaos.reports.exists():
        shutil.copytree(chaos.reports, to, symlinks=True)
        (to / "row.txt").write_text("\n".join((row.outcome, row.headline, *row.statements)) + "\n")


def _row(
    habit: str, bug: str, outcome: Outcome, result: dict[str, Any], statements: Sequence[str], begun: float
) -> Row:
    headline = result.get("headline") or {}
    return Row(
        habit,
        bug,
        digest_of(habit, bug),
        outcome,
        result.get("verdict", ""),
        headline.get("check", ""),
        headline.get("text", ""),
        tuple(text[:_MOST_TEXT] for text in statements[:_MOST_STATEMENTS]),
        round(time.monotonic() - begun, 1),
        version("chaos-ascend"),
        version("mindspore"),
    )
