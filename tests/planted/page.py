"""The page of the table: which check found each bug in each job, and what the headline said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from chaos.manual.prose import bullet, markdown
from tests.documents.blocks import ROOT
from tests.planted.bugs import BUGS, SOUND, Bug
from tests.planted.catalogue import JOBS
from tests.planted.runs import Row

PAGE = ROOT / "docs" / "design" / "own-jobs.md"
COMMAND = "python -m tests.planted.table"
MOST_WORDS = 25

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

The reason is right where the check of the headline makes a statement that names the bug (`tests/planted/bugs.py`).
`tests/planted/jobs/` has the changes of each script, and `tests/planted/rows.json` every headline. Below, each bug has
the checks that found it, with the number of jobs, and the most frequent sentence as an example.

```sh unrun: it trains {trained} jobs on two cores, more than an hour
python -m tests.planted.table                                        # rows that are kept and still hold are not run
python -m tests.planted.table --only graph-mode --bug moments-lost   # one job, one bug
```

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
    return head + markdown(f"The jobs: {_jobs(rows)}") + "\n" + "".join(_section(bug, rows) for bug in BUGS)


def _jobs(rows: Rows) -> str:
    """Name the jobs, each with the verdict of the job as it is where that is no pass."""
    names = []
    for job in JOBS:
        sound = rows.get((job, SOUND))
        verdict = sound.verdict if sound else "not run"
        names.append(f"`{job}`" if verdict == "pass" else f"`{job}` (**{verdict}**)")
    return f"{', '.join(names)}."


def _section(bug: Bug, rows: Rows) -> str:
    found = {job: row for job in JOBS if (row := rows.get((job, bug.id))) is not None}
    checks = Counter(row.check if row.is_right else f"**{row.outcome}**" for row in found.values())
    if missing := len(JOBS) - len(found):
        checks["**not run**"] = missing
    lines = ["", f"## {bug.id}", "", markdown(f"{bug.what} Found by {_counts(checks)}."), ""]
    for note, jobs in _alike({name: job.plants[bug.id].note for name, job in JOBS.items()}).items():
        if note:
            lines += [markdown(f"In {' and '.join(f'`{job}`' for job in jobs)} {note}"), ""]
    groups = _alike({job: _form(row) for job, row in found.items()})
    if groups:
        lines.append(bullet(f"*{_sentence(found[max(groups.values(), key=len)[0]])}*"))
    return "\n".join(lines) + "\n"


def _counts(checks: Counter[str]) -> str:
    return ", ".join(f"{check} ({number})" for check, number in checks.most_common())


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
