"""The good distributed recovery of a job that saves elsewhere than in a directory for each rank."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tests.kit.runs.damaged_run import damaged_run, evidence
from tests.kit.runs.good_run import GROUPS, SAVED, VICTIM, GoodRun
from tests.kit.runs.restored_run import restored_run, saves_again

Place = Callable[[int, int], str]
"""Where a rank saves a step, below the job's directory."""

_USUAL = re.compile(r"checkpoints/rank_(?P<rank>\d+)/sliced-1_(?P<step>\d+)\.ckpt")

DIRECTORY = "abcd"
"""What this job calls the directory of a rank: nobody knows whose it is without the ranks' records."""


def moved_run(place: Place, *, again: bool = False) -> GoodRun:
    """Every rank has saved step 5. Rank 2's file was damaged before the resume, and put back; rank 2 has loaded that of
    rank 0, which holds the same, as any script may that is told to go on from periodic checkpoints. Where both have one
    file, rank 2 has saved none, and the evidence is of the loss of another. ``again``: the resumed job saves, too."""
    shared = place(0, SAVED) == place(VICTIM, SAVED)
    run = restored_run() if shared else damaged_run()
    if again:
        saves_again(run)

    def there(path: str) -> str:
        return _USUAL.sub(lambda match: place(int(match["rank"]), int(match["step"])), path)

    for saved in run.saved.values():
        saved.path = there(saved.path)
    for records in run.files.values():
        for record in records:
            if isinstance(record.get("path"), str):
                record["path"] = there(record["path"])
    if not shared:
        shown = evidence(run)
        shown["file"] = there(f"checkpoints/{shown['file']}")
    assert run.plan.resume.restore is not None
    holders: dict[int, tuple[int, ...]] = {rank: members for members in GROUPS for rank in members}
    run.replan(restore=replace(run.plan.resume.restore, holders=holders))
    return run
