"""Running the checks of a scenario's own, each in a process of its own, and recording what they state.

The statements are facts of the history. A run is judged again by them, and the code is never executed again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from chaos.base.plain_files import read_plain
from chaos.history.jsonl import decode
from chaos.own.allowed import Allowed, module_of
from chaos.own.hooks import Record
from chaos.own.program import Ended, OwnPlace, run_program

BEGIN, STATEMENT, END = "check.begin", "check.statement", "check.end"
LIMIT = 60.0
"""Seconds that one check may take."""

MOST_STATEMENTS = 200
_MOST_ANSWER = 4 << 20


def run_checks(
    names: Sequence[str], run_dir: Path, scenario_directory: Path, place: OwnPlace, allowance: Allowed, record: Record
) -> None:
    """Run the checks that are allowed, and record their statements, or the reason why there are none."""
    for number, name in enumerate(names, start=1):
        record(BEGIN, check=name)
        if not allowance.check(name):
            record(END, check=name, error="it is not allowed here, so it was not run")
            continue
        answer = run_dir / f".check-{number}.json"
        path = module_of(name, scenario_directory).absolute()
        command = [
            sys.executable,
            "-m",
            "chaos.own.child",
            str(run_dir),
            str(path),
            name.partition(":")[2],
            str(answer),
        ]
        ended = run_program(replace(place, directory=run_dir), f"check-{number}", command, LIMIT)
        statements, error = _answer(answer, ended)
        with suppress(OSError):
            answer.unlink()
        for statement in statements:
            record(STATEMENT, check=name, **statement)
        output = {"output": ended.output} if ended.output else {}
        record(END, check=name, error=error, seconds=round(ended.seconds, 3), **output)


def _answer(path: Path, ended: Ended) -> tuple[list[dict[str, object]], str | None]:
    """Return the statements that a check has written, and why there are no more of them."""
    try:
        data = decode(read_plain(path, _MOST_ANSWER))
        statements, error = data["statements"], data["error"]
        texts: list[dict[str, object]] = [
            {
                "verdict": str(statement["verdict"]),
                "expected": str(statement["expected"]),
                "seen": str(statement["seen"]),
                "where": [str(place) for place in statement["where"]],
            }
            for statement in statements[:MOST_STATEMENTS]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return [], f"the process of the check {ended.how}"
    if error is None and not ended.ok:
        error = f"the process of the check {ended.how}"
    if error is None and len(statements) > MOST_STATEMENTS:
        error = f"it made {len(statements)} statements; {MOST_STATEMENTS} are kept"
    return texts, None if error is None else str(error)
