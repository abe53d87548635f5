"""The finished rows, kept in a file beside: the page is made of them, and a row that still holds is not run again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock

from tests.planted.bugs import BY_ID, SOUND
from tests.planted.catalogue import JOBS
from tests.planted.runs import Row, digest_of

FILE = Path(__file__).with_name("rows.json")

ALL = [(job, bug) for job in JOBS for bug in (SOUND, *BY_ID)]
"""Every row by job and bug, in the order of the table."""


def read_rows(file: Path = FILE) -> dict[tuple[str, str], Row]:
    """The kept rows by job and bug; those of a script or of options that have changed since are left out."""
    if not file.exists():
        return {}
    rows = [Row(**{**each, "statements": tuple(each["statements"])}) for each in json.loads(file.read_text("utf-8"))]
    return {(row.job, row.bug): row for row in rows if row.digest == digest_of(row.job, row.bug)}


def keep_row(row: Row, file: Path = FILE) -> None:
    """Keep a row beside the others, in place of an earlier one; other calls may do so at the same time."""
    with FileLock(file.with_suffix(".lock")):
        rows = {**read_rows(file), (row.job, row.bug): row}
        ordered = [rows[key] for key in ALL if key in rows]
        text = json.dumps([asdict(each) for each in ordered], indent=1, ensure_ascii=False)
        new = file.with_suffix(".new")
        new.write_text(f"{text}\n", "utf-8")
        new.replace(file)
