"""The page of the table: which check found each bug in each job, and what the headline said."""

from __future__ import annotations

import re
from collections.abc import Mapping

from chaos.manual.prose import bullet, markdown
from tests.documents.blocks import ROOT
from tests.planted.bugs import BUGS, SOUND, Bug
from tests.planted.catalogue import JOBS
from tests.planted.runs import Row

PAGE = ROOT / "docs" / "design" / "own-jobs.md"
COMMAND = "python -m tests.planted.table"
MOST_WORDS = 25
MOST_NAMED = 3
"""Jobs with one sentence that a section names; of more it gives the number."""

Rows = Mapping[tuple[str, str], Row]

_HEAD = """\
# Bugs in jobs of users

Made by `{command}` from real runs with chaos {chaos} and MindSpore {mindspore} on a CPU. Do not edit.

Sound training jobs of different habits (`tests/habits/`) go from `chaos init` to a verdict: {sound} of {jobs} pass.
Then a bug is planted into the script, one at a time, as a careless author would write it. It acts in the resumed
process or in the saved file only, so the fault-free run stays sound. `chaos` knows nothing about the bug.

| {rows} jobs with a bug | number |
|---|---|
| *fail* for the right reason | {right} |
| *fail* for another reason | {wrong} |
| *unknown* | {unknown} |
| *pass* | {passed} |

The reason is right where the check of the headline makes a statement that names the bug; `tests/planted/bugs.py` has
a pattern for each. `tests/planted/jobs/` has the changes of each script, and `tests/planted/rows.json` every headline.
Below, jobs with the same sentence, but for numbers and names of parameters, share an example.

```sh unrun: it trains {trained} jobs on two cores, more than an hour
python -m tests.planted.table                                        # rows that are kept and still hold are not run
python -m tests.planted.table --only graph-mode --bug moments-lost   # one job, one bug
```

## The check that found it

The column *sound* is the verdict of the job as it is.

"""


def page_of(rows: Rows) -> str:
    """The text of the page."""
    planted = [row for row in rows.values() if row.bug != SOUND]
    sound = [row for row in rows.values() if row.bug == SOUND]
    head = _HEAD.format(
        command=COMMAND,
        chaos=", ".join(sorted({row.chaos for row in rows.values()})),
        mindspore=", ".join(sorted({row.mindspore for row in rows.values()})),
        sound=sum(row.is_right for row in sound),
        jobs=len(JOBS),
        right=sum(row.is_right for row in planted),
        rows=len(JOBS) * len(BUGS),
        wrong=sum(row.outcome == "wrong reason" for row in planted),
        unknown=sum(row.outcome == "unknown" for row in planted),
        passed=sum(row.outcome == "passed" for row in planted),
        trained=len(JOBS) * (len(BUGS) + 1),
    )
    return head + _checks(rows) + "".join(_section(bug, rows) for bug in BUGS)


def _checks(rows: Rows) -> str:
    bugs = [bug.id for bug in BUGS]
    lines = [f"| job | {SOUND} | {' | '.join(bugs)} |", "|---" * (len(bugs) + 2) + "|"]
    for job in JOBS:
        cells = [_check(rows.get((job, bug))) for bug in bugs]
        sound = rows.get((job, SOUND))
        lines.append(f"| {job} | {sound.verdict if sound else 'not run'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _check(row: Row | None) -> str:
    if row is None:
        return "not run"
    return row.check if row.is_right else f"**{row.outcome}**"


def _section(bug: Bug, rows: Rows) -> str:
    lines = ["", f"## {bug.id}", "", bug.what, ""]
    for note, habits in _alike({habit: job.plants[bug.id].note for habit, job in JOBS.items()}).items():
        if note:
            lines += [markdown(f"In {' and '.join(f'`{habit}`' for habit in habits)} {note}"), ""]
    found = {habit: row for habit in JOBS if (row := rows.get((habit, bug.id))) is not None}
    groups = _alike({habit: _form(row) for habit, row in found.items()})
    for habits in sorted(groups.values(), key=len, reverse=True):
        named = ", ".join(habits) if len(habits) <= MOST_NAMED else f"{len(habits)} jobs"
        lines.append(bullet(f"{named}: *{_sentence(found[habits[0]])}*"))
    if missing := [habit for habit in JOBS if habit not in found]:
        lines.append(f"- {', '.join(missing)}: not run")
    return "\n".join(lines) + "\n"


def _alike(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of each text, in their order."""
    alike: dict[str, list[str]] = {}
    for name, text in texts.items():
        alike.setdefault(text, []).append(name)
    return alike


def _form(row: Row) -> str:
    """A headline without what differs from job to job: numbers, names of parameters, the consequence."""
    text = re.sub(r"; (?:losses differ|then) .*$", "", _sentence(row))
    text = re.sub(r"(lacks optimizer state|differ): .*$", r"\1", re.sub(r" of step \d+(?= lacks)", "", text))
    return re.sub(r"\d+", "N", text)


def _sentence(row: Row) -> str:
    """The headline in at most 25 words: without its expectation, then without its consequence, then cut off."""
    if not row.headline:
        return f"none: {row.outcome}"
    text = re.sub(r" \((?:expected: .*?|and \d+ alike)\)(?=;|$| \()", "", row.headline)
    if len(text.split()) > MOST_WORDS:
        text = re.sub(r"; (?:losses differ|then) .*$", "", text)
    words = text.split()
    text = " ".join(words[:MOST_WORDS]) + (" …" if len(words) > MOST_WORDS else "")
    return text.replace("|", "/").replace("<", "&lt;").replace("*", "\\*")
