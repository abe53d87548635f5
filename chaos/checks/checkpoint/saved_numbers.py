"""Part of check ``checkpoint``: every number in a periodic checkpoint matches the step at which it was saved.

A file holds one step. A file in which one number says another step, or has been lost, sends the next resume to a wrong
place. The rank's record of the save says which step it is. Where there is none, MindFormers' name of the directory
does, and another name gives only the least step that a file may hold, since names may count anew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Literal

from chaos.checks.history.torn_tails import GONE
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.begun_with import begun_with
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, before
from chaos.evidence.checkpoints.saved import end_of_life
from chaos.evidence.checkpoints.stored import COUNTER, SCRIPT, STEP, steps_by_name
from chaos.evidence.checkpoints.whole import is_of_weights
from chaos.evidence.collect import Collector
from chaos.evidence.facts import step_of, text_list
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.mindformers_layout import ITERATION
from chaos.observe.checkpoints.saved_state import SavedState
from chaos.plan.model import Plan

ONE_STEP = "every number in a periodic checkpoint matches the step at which it was saved"
HOST_GONE = "a host has gone, and what it had not written to its disk with it"

EPOCH, BATCHES = "epoch_num", "batch_num"
_WORDS = {SCRIPT: "the script's own step"}

States = Mapping[OwnedCheckpoint, SavedState]
_Doubt = tuple[Literal["fail", "unknown"], str]

_COUNTED = re.compile(r"(?:_\d+)*-\d+_\d+$")
"""The end of a name, which differs in every save."""


def steps_of(file: OwnedCheckpoint, state: SavedState, every: int) -> frozenset[int]:
    """Return the step whose state a file has to hold; several possible steps where its numbers leave it open.

    That is so for a save within a step, and within an update of several steps. Empty where neither a record nor a
    number gives the step.
    """
    possible_steps = steps_by_name(state.numbers, every)
    if known := _known(file):
        return next((steps & known for steps in possible_steps.values() if steps & known), known)
    counted = possible_steps.get(COUNTER, possible_steps.get(STEP))
    if counted is None:
        return file.steps
    return counted & possible_steps.get(STEP, counted) or counted


def steps_text(steps: Iterable[int]) -> str:
    """Return steps in words: ``8``, ``8 or 12``."""
    return " or ".join(map(str, sorted(steps)))


def judge_numbers(plan: Plan, history: History, artifacts: Artifacts, states: States, collector: Collector) -> None:
    """Judge the numbers of all readable periodic files. Says nothing where there are none."""
    gone = any(history.first(event) is not None for event in GONE)
    every = artifacts.steps_per_update
    for file, state in states.items():
        for verdict, observation in (
            *_steps(plan, file, state, history, every),
            *_epochs(plan, file, state, history, every),
        ):
            say = collector.unknown if gone or verdict == "unknown" else collector.fail
            text = f"{observation}; {HOST_GONE}" if gone else observation
            data = about(file.rank, file=artifacts.relative(file.path))
            say(ONE_STEP, f"{text}: {file.path.name}", artifacts.relative(file.path), data=data)
    ends = _readable(
        [checkpoint for checkpoint in end_of_life(history, artifacts) if checkpoint.kind == "either"], artifacts
    )
    _judge_lost(history, artifacts, {**states, **ends}, collector)
    _judge_alike(history, artifacts, states, collector)
    if states:
        collector.settle(ONE_STEP, f"the numbers in {len(states)} files match")


def _readable(files: Iterable[OwnedCheckpoint], artifacts: Artifacts) -> dict[OwnedCheckpoint, SavedState]:
    states = {}
    for file in files:
        with suppress(CheckpointError):  # chaos.checks.checkpoint.check says so
            states[file] = artifacts.read_checkpoint(file.path)
    return states


def _known(file: OwnedCheckpoint) -> frozenset[int]:
    """Return the possible steps of a file by its record or, without a record, by the directory of its save."""
    return file.held or frozenset(() if file.step is None else {file.step})


def _steps(plan: Plan, file: OwnedCheckpoint, state: SavedState, history: History, every: int) -> Iterator[_Doubt]:
    """Yield the step numbers that differ from the step at which the file was saved."""
    possible_steps = steps_by_name(state.numbers, every)
    if not possible_steps:
        return
    known = _known(file)
    begun = None if known else begun_with(history, file)
    if known:
        steps = steps_of(file, state, every)
    elif begun is not None:
        known = steps = frozenset({step_of(begun)})
    else:
        steps = possible_steps.get(STEP, possible_steps.get(COUNTER, frozenset()))
    wrong = {name: stored for name, stored in possible_steps.items() if not stored & steps}
    holds = f"rank {file.rank}'s file holds {_numbers_text(state, every)}"
    if wrong:
        observation = f"{holds}, which are two steps"
        if known:
            by = "the name of its directory says"
            if file.held or begun is not None:
                by = "by its record the rank has saved"
            observation = f"{holds}, and {by} step {steps_text(steps)}"
        if set(wrong) == {COUNTER} and max(wrong[COUNTER]) < min(steps):
            yield from _behind(file, state, wrong[COUNTER], steps, history, observation)
        else:
            yield "fail", observation
    elif not known and (least := _named(plan, file)) is not None and max(steps) < least:
        yield ("fail" if STEP in possible_steps else "unknown"), f"{holds}, and its name says step {least}"
    elif not known and file.epoch is None and not file.steps:
        observation = f"neither the name of rank {file.rank}'s file nor its record tells at which step it was saved"
        yield "unknown", observation


def _numbers_text(state: SavedState, every: int) -> str:
    stored = {name: state.numbers[name] for name in (STEP, COUNTER) if name in state.numbers}
    if every > 1:
        return text_list(f"{name} {number}" for name, number in stored.items()) + f" ({every} steps an update)"
    if len(set(stored.values())) == 1:
        return f"step {next(iter(stored.values()))}"
    return text_list(f"{name} {step}" for name, step in stored.items())


def _behind(
    file: OwnedCheckpoint,
    state: SavedState,
    counted: Iterable[int],
    steps: Iterable[int],
    history: History,
    observation: str,
) -> Iterator[_Doubt]:
    """Yield reasons to doubt a file in which only the optimizer's count is behind: it counts no skipped update.

    The rank's digest after the step shows how far it had counted. Without a digest the finding is unknown, unless an
    earlier digest shows that the rank had counted every step up to there.
    """
    digest = state.digests.get(COUNTER)
    after = _counters(history, file.rank, steps)
    if digest is not None and digest in after:
        return
    if after or digest is None or digest in _counters(history, file.rank, counted):
        yield "fail", observation
    else:
        yield "unknown", f"{observation}; the optimizer may have skipped updates"


def _counters(history: History, rank: int, steps: Iterable[int]) -> set[str]:
    """Return the digests of the optimizer's count that a rank has recorded after these steps."""
    recorded = (
        event.data.get("parameters") for step in steps for event in history.select("digest", rank=rank, step=step)
    )
    return {parameters[COUNTER] for parameters in recorded if isinstance(parameters, dict) and COUNTER in parameters}


def _named(plan: Plan, file: OwnedCheckpoint) -> int | None:
    """Return the job's step by a name that counts from the job's beginning; otherwise the step is a later one."""
    if file.epoch is None or file.step_in_epoch is None or (file.epoch > 1 and not _knows_epochs(plan)):
        return None
    return (file.epoch - 1) * plan.training.steps_per_epoch + file.step_in_epoch


def _knows_epochs(plan: Plan) -> bool:
    """Return whether the plan knows the steps of an epoch; otherwise it takes all steps for one epoch."""
    return plan.training.steps_per_epoch < plan.training.last_step


def _epochs(plan: Plan, file: OwnedCheckpoint, state: SavedState, history: History, every: int) -> Iterator[_Doubt]:
    """Yield the doubts about the epoch, and about the number of batches in it.

    Where a step is counted as an epoch of its own (data that is sunk, MindSpore 2.7 to 2.10), it is the step's number.
    """
    sizes = {plan.training.steps_per_epoch, plan.training.sink_size} if _knows_epochs(plan) else set()
    epoch, batches = state.numbers.get(EPOCH), state.numbers.get(BATCHES)
    named = set() if file.epoch is None or ITERATION.fullmatch(file.path.parent.name) else {file.epoch}
    steps = steps_of(file, state, every)
    planned = {(step - 1) // size + 1 for step in steps for size in sizes if size > 0}
    anew = _counts_anew(file, history)
    allowed = planned if planned and not anew else planned | named
    if epoch is not None and allowed and epoch not in allowed:
        observation = f"rank {file.rank}'s file of step {steps_text(steps)} holds epoch {epoch}, and"
        observation += f" {'its name says' if allowed == named else 'that step is in'} epoch {steps_text(allowed)}"
        # Epochs trained before may have been added to the epochs in a name.
        yield ("unknown" if anew and not planned and epoch > max(allowed) else "fail"), observation
    if batches is not None and sizes and batches not in sizes:
        observation = (
            f"rank {file.rank}'s file holds {BATCHES} {batches}, and an epoch has {plan.training.steps_per_epoch} steps"
        )
        yield "fail", observation


def _counts_anew(file: OwnedCheckpoint, history: History) -> bool:
    """Return whether the save's training did not begin with the job's first step, or its beginning is not known."""
    begin = None if file.made is None else before(file.made, "train.begin", history)
    return begin is None or begin.data.get("initial_step") != 0


# Numbers of several files


def _family(file: OwnedCheckpoint) -> str:
    """Return the common part of the names of one kind of file."""
    return re.sub(r"\d+", "#", _COUNTED.sub("", file.saved_as.stem)) + file.saved_as.suffix


def _judge_lost(history: History, artifacts: Artifacts, states: States, collector: Collector) -> None:
    """Judge numbers that a file lacks and other files of its kind hold.

    Files of a kind without the number have none by design. Nor has a file of the job's beginning a number of updates.
    """
    families: dict[str, dict[OwnedCheckpoint, SavedState]] = defaultdict(dict)
    for file, state in states.items():
        if not is_of_weights(file):
            families[_family(file)][file] = state
    for family in families.values():
        for name in (STEP, COUNTER, EPOCH):
            holders = [file for file, state in family.items() if name in state.numbers]
            for file, state in family.items():
                # The parameter of this name, if it is one, may be among the other ranks' files.
                if name == COUNTER and (state.partial or _is_of_beginning(history, file)):
                    continue
                if holders and name not in state.numbers:
                    observation = f"rank {file.rank}'s file holds no {name}, as others of its kind do: {file.path.name}"
                    collector.fail(
                        ONE_STEP,
                        observation,
                        artifacts.relative(file.path),
                        artifacts.relative(holders[0].path),
                        data=about(file.rank, file=artifacts.relative(file.path), parameters=(name,)),
                    )


def _is_of_beginning(history: History, file: OwnedCheckpoint) -> bool:
    begun = begun_with(history, file)
    return begun is not None and step_of(begun) == 0


def _judge_alike(history: History, artifacts: Artifacts, states: States, collector: Collector) -> None:
    """Judge that all ranks give a step the same epoch and the same number of the script's own.

    Only ranks that count from the same step on are compared.
    """
    groups: dict[object, list[OwnedCheckpoint]] = defaultdict(list)
    every = artifacts.steps_per_update
    for file, state in states.items():
        begin = None if file.made is None else before(file.made, "train.begin", history)
        if begin is not None and file.made is not None:
            origin = (file.made.attempt, begin.data.get("initial_step"))
            groups[_family(file), steps_of(file, state, every), origin].append(file)
    for group in groups.values():
        for name in (EPOCH, BATCHES, SCRIPT):
            numbers = {file: number for file in group if (number := states[file].numbers.get(name)) is not None}
            if len(set(numbers.values())) > 1:
                numbers_text = text_list(f"rank {file.rank}: {number}" for file, number in numbers.items())
                step = steps_text(steps_of(group[0], states[group[0]], every))
                where = [artifacts.relative(file.path) for file in numbers]
                collector.fail(
                    ONE_STEP,
                    f"{_WORDS.get(name, name)} is not the same in the files of step {step}: {numbers_text}",
                    *where[:5],
                    data=about((file.rank for file in numbers), file=where[0], parameters=(name,), quantity=name),
                )
