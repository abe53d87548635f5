"""Makes the table of planted bugs, and the page of it.

python -m tests.planted.table [--only JOB] [--bug BUG] [--jobs N] [--again] [--keep DIRECTORY]

A row that is kept in rows.json and whose script has not changed since is not run again, without ``--again``. The exit
code is 0 when every asked row is right.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.planted.bugs import BY_ID, SOUND
from tests.planted.catalogue import JOBS
from tests.planted.kept_rows import ALL, keep_row, read_rows
from tests.planted.page import PAGE, page_of
from tests.planted.runs import Row, kept_run, run_row
from tests.rehearsal.kit import Chaos


def make_row(job: str, bug: str, keep: Path | None) -> Row:
    """Run a row in a directory of its own. Its runs are kept in ``keep``, where that is wanted."""
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        place = Path(name)
        chaos = Chaos(place / "reports", place)
        try:
            row = run_row(job, bug, chaos, place / "job")
            if keep is not None and not row.is_right:
                kept_run(chaos, row, keep / f"{job}-{bug}")
            return row
        finally:
            chaos.close()


def make_table(asked: Sequence[tuple[str, str]], workers: int, keep: Path | None) -> None:
    """Run these rows, several at a time, and keep each as soon as it is there; then write the page."""
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(make_row, job, bug, keep) for job, bug in asked]
        for number, future in enumerate(as_completed(running), 1):
            row = future.result()
            keep_row(row)
            line = f"{number}/{len(asked)} {row.job} {row.bug}: {row.outcome} ({row.seconds:.0f} s)"
            print(f"{line}: {row.headline or (row.statements or ('',))[0][-300:]}", flush=True)
    PAGE.write_text(page_of(read_rows()), "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the rows that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted.table", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(JOBS), help="a job; repeat it")
    parser.add_argument("--bug", action="append", choices=[SOUND, *BY_ID], help="a bug; repeat it")
    parser.add_argument("--jobs", type=int, default=2, help="rows at a time, each on a core")
    parser.add_argument("--again", action="store_true", help="run rows that are kept, too")
    parser.add_argument("--keep", type=Path, help="where the runs of rows are kept that are not right")
    options = parser.parse_args(arguments)
    asked = [
        (job, bug) for job, bug in ALL if job in (options.only or JOBS) and bug in (options.bug or (SOUND, *BY_ID))
    ]
    kept = {} if options.again else {key: row for key, row in read_rows().items() if row.is_right}
    make_table([key for key in asked if key not in kept], options.jobs, options.keep)
    rows = read_rows()
    wrong = [key for key in asked if key not in rows or not rows[key].is_right]
    print(
        f"{len(asked) - len(wrong)} of {len(asked)} rows are right", *(f"{job} {bug}" for job, bug in wrong), sep="\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
