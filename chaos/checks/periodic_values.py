"""Part of check ``checkpoint``: a periodic checkpoint holds what its rank held, whether or not it was ever loaded.

The next fault may need it: one that was saved after a recovery with another content would spoil the next one.
"""

from __future__ import annotations

from chaos.checks.artifacts import Artifacts
from chaos.checks.collect import Collector
from chaos.checks.facts import text_list
from chaos.checks.parameters import is_appended, is_flag
from chaos.checks.periodic import periodic
from chaos.checks.twin import Twin, origin
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoint import CheckpointError
from chaos.observe.layout import FoundCheckpoint
from chaos.observe.saved_state import SavedState

EXPECTED = "every periodic checkpoint holds what its rank held after the stored step"


def judge_periodic_values(history: History, artifacts: Artifacts, twin: Twin, found: Collector) -> None:
    """Compare the periodic files that are left with the digests of their ranks.

    A step may have been trained more than once: any of its states will do. Says nothing of files whose step has no
    digest; that every file can be read is not asked here, since nobody may need it.
    """
    compared = 0
    for file in periodic(history, artifacts):
        try:
            state = artifacts.read_checkpoint(file.path)
        except CheckpointError:
            continue
        step = state.numbers.get("global_step", state.numbers.get("step_num"))
        recorded = [
            one
            for one in history.select("digest", rank=file.rank, step=step)
            if isinstance(one.data.get("parameters"), dict)
        ]
        if step is not None and recorded:
            compared += 1
            _judge(file, state, step, recorded, twin, found)
    if compared:
        found.settle(EXPECTED, f"{compared} files compared by digest")


def _judge(
    file: FoundCheckpoint, state: SavedState, step: int, recorded: list[Event], twin: Twin, found: Collector
) -> None:
    unequal: list[str] = []
    shared: list[str] = []
    for one in recorded:
        theirs = one.data["parameters"]
        shared = [name for name in state.digests if name in theirs and not (is_flag(name) or is_appended(name))]
        unequal = sorted(name for name in shared if theirs[name] != state.digests[name])
        if not unequal:
            return
    count = f"{len(unequal)} of {len(shared)} parameters in rank {file.rank}'s file of step {step}"
    seen = f"{count} differ: {text_list(unequal)}"
    seen += origin(twin, file.rank, unequal[0], state.digests, step)
    where = twin.artifacts.relative(file.path)
    # Both are of one run, so they are equal bit for bit, whatever the tolerance is between two.
    found.fail(EXPECTED, seen, where, recorded[-1].source)
