"""The job-wide step before a training's first one, from the optimizer's count.

The optimizer counts its updates, and a checkpoint restores the number. The training loop's own number starts anew in a
job that is started again, and after some repairs (F-01, F-06). With gradient accumulation an update takes several
steps, so the number of updates leaves open at which of these steps the training begins. A count of 0 in a job that has
read a checkpoint was not restored: the step is that of the save.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaos.agent.training import Training


def steps_done(updates: int, arguments: Any, training: Training) -> int:
    """Return the job-wide step before the next one, after ``updates`` updates.

    Within an accumulation the position in the data decides, else the checkpoint that was loaded, else the training
    loop's own number. Where none of them names a step of this accumulation, the accumulation begins anew.
    """
    first = updates * training.steps_per_update
    candidates = range(first, first + training.steps_per_update)
    if len(candidates) == 1:
        # A script that loads no optimizer leaves its count at 0; the step of the file is not lost with it.
        return first or training.saved_step() or 0
    size = int(arguments.batch_num or 0)
    for witness in _witnesses(arguments, training):
        candidate = _candidate(candidates, witness, size)
        if candidate is not None:
            return candidate
    return first


def _witnesses(arguments: Any, training: Training) -> Iterator[int]:
    position = getattr(arguments.train_dataset, "get_init_step", int)()
    if position:
        yield int(position)
    if training.loaded_step is not None:
        yield training.loaded_step
    yield int(arguments.cur_step_num)


def _candidate(candidates: range, witness: int, size: int) -> int | None:
    """Return the candidate that ``witness`` names, which may count within an epoch of ``size`` steps.

    None where it names none, or several.
    """
    if witness in candidates:
        return witness
    fitting = [step for step in candidates if size > 1 and (step - witness) % size == 0]
    return fitting[0] if len(fitting) == 1 else None
