"""Part of check ``resume``: each rank loads a file of its replica group, and goes on with its content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import state_at_resume, step_at_resume
from chaos.evidence.checkpoints.beside import is_beside
from chaos.evidence.checkpoints.damage import is_damaged, loads_ended, loads_made
from chaos.evidence.checkpoints.frozen import made_anew
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, located
from chaos.evidence.checkpoints.parameters import is_appended, is_flag, is_replicated, is_slot
from chaos.evidence.checkpoints.periodic import by_path, counted, loadable
from chaos.evidence.checkpoints.save_parts import are_of_one_directory, are_of_one_save
from chaos.evidence.checkpoints.saved import end_of_life, unowned
from chaos.evidence.checkpoints.sharded import as_held
from chaos.evidence.checkpoints.whole import lacking
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, digests, is_of_this_run, places, ranks_text, text_list
from chaos.evidence.replica_loads import loaded_by_replica
from chaos.evidence.statement_data import STATE, StatementData, about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.plan.model import Plan

LOADED = "each rank loads the file of its own replica group"
RESTORED = "each rank goes on with the weights and optimizer state of the file that it loaded"


def judge_loads(plan: Plan, history: History, artifacts: Artifacts, saved: int, collector: Collector) -> None:
    """Judge the loads of every rank in attempt resume, and its state before the first step."""
    files_of_kind = end_of_life(history, artifacts) if plan.resume.restore is None else loadable(history, artifacts)
    files = by_path(files_of_kind)
    chosen: dict[int, list[OwnedCheckpoint]] = {}
    parts = {(file.rank, file.path.parent): file for file in files_of_kind}
    loaded = loaded_by_replica(plan, [*loads_made(history), *loads_ended(history)])
    for rank in range(plan.layout.ranks):
        loads = counted(plan, history, artifacts, files, rank)
        if not loads and rank not in loaded:
            collector.unknown(LOADED, f"no load of rank {rank} is recorded", data=about(rank))
        for load in loads:
            file = _judge_file(plan, history, artifacts, files, rank, load, saved, collector)
            if file is not None:
                file = parts.get((rank, file.path.parent), file) if file.shared else file
                chosen[rank] = [*_with(file, chosen.get(rank, [])), file]
        ends = loads_ended(history, rank)
        if len(ends) < len(made := loads_made(history, rank)):
            collector.fail(
                "each load comes to its end", f"a load of rank {rank} did not", *places(made[-1:]), data=about(rank)
            )
    observation = f"{plan.layout.ranks - len(loaded)} ranks did"
    observation += f", {ranks_text(sorted(loaded))} got theirs from one that did" if loaded else ""
    collector.settle(LOADED, observation)
    chosen |= {rank: chosen[giver] for rank, giver in loaded.items() if giver in chosen}
    for rank, save in chosen.items():
        state = [file for file in save if not is_beside(history, artifacts, file)] if len(save) > 1 else save
        _judge_initial(plan, history, artifacts, rank, state or save, saved, collector)
    if chosen:
        collector.settle(RESTORED, f"{len(chosen)} ranks compared by digest")


def _with(file: OwnedCheckpoint, loaded: list[OwnedCheckpoint]) -> list[OwnedCheckpoint]:
    """Return the other loaded files that are parts of the same save, or that another rank has saved beside it."""
    others = (part for part in loaded if part.path != file.path)
    return [part for part in others if are_of_one_save(part, file) or are_of_one_directory(part, file)]


def _judge_file(
    plan: Plan,
    history: History,
    artifacts: Artifacts,
    files: dict[Path, OwnedCheckpoint],
    rank: int,
    load: Event,
    saved: int,
    collector: Collector,
) -> OwnedCheckpoint | None:
    recorded = str(load.data.get("path"))
    path = located(history, artifacts, recorded)
    if path is None:
        collector.unknown(
            LOADED,
            f"rank {rank} loaded {artifacts.recorded(recorded)}, which was not kept",
            load.source,
            data=about(rank),
        )
        return None
    where = artifacts.relative(path)
    data = about(rank, file=where)
    of_this_run = is_of_this_run(history, recorded)
    if of_this_run is None:
        observation = f"it is not recorded in which run's directory rank {rank}'s file was to be, {where}"
        collector.unknown(LOADED, observation, load.source, data=about(rank))
        return None
    if not of_this_run:
        collector.fail(LOADED, f"rank {rank} loaded a file of another run, {where}", load.source, data=data)
        return None
    file = files.get(path)
    if file is None:
        kind = "an end-of-life" if plan.resume.restore is None else "a periodic"
        for stray in unowned(history, artifacts, "end-of-life" if plan.resume.restore is None else "periodic"):
            if stray.path == path:
                collector.unknown(LOADED, f"rank {rank} loaded {where}: {stray.reason}", load.source, where, data=data)
                return None
        collector.fail(
            LOADED, f"rank {rank} loaded {where}, which is not {kind} checkpoint", load.source, where, data=data
        )
        return None
    group = next((group for group in plan.layout.replica_groups if rank in group), (rank,))
    shared = file.shared
    if file.rank not in group and not shared:
        collector.fail(
            LOADED,
            f"rank {rank} loaded rank {file.rank}'s file, of another replica group",
            load.source,
            where,
            data=data,
        )
        return None
    if plan.resume.restore is not None and file.rank not in plan.resume.restore.holders.get(rank, ()) and not shared:
        who = ranks_text(plan.resume.restore.holders.get(rank, ()))
        observation = f"rank {rank} loaded rank {file.rank}'s file, the plan shows that of {who}"
        collector.fail(LOADED, observation, load.source, where, data=data)
        return None
    return _judge_step(history, artifacts, file, load, saved, data, collector)


def _judge_step(
    history: History,
    artifacts: Artifacts,
    file: OwnedCheckpoint,
    load: Event,
    saved: int,
    data: StatementData,
    collector: Collector,
) -> OwnedCheckpoint | None:
    """Judge that a loaded file is whole and holds the saved step. Returns the file; None for an unreadable one."""
    rank, where, recorded = load.rank, str(data.file), str(load.data.get("path"))
    try:
        step = step_at_resume(history, artifacts, file)
    except CheckpointError as error:
        collector.unknown(
            LOADED, f"the file that rank {rank} loaded cannot be read: {error.problem}", load.source, where, data=data
        )
        return None
    if is_damaged(history, recorded):
        collector.fail(LOADED, f"rank {rank} loaded {where}, which a fault had damaged", load.source, where, data=data)
    if step is None or saved not in (step, step - step % artifacts.steps_per_update):
        collector.fail(
            LOADED,
            f"rank {rank} loaded step {step}, not {saved}",
            load.source,
            where,
            data=replace(data, step=step, quantity="step", expected=saved, seen=step),
        )
    return file


def _judge_initial(
    plan: Plan,
    history: History,
    artifacts: Artifacts,
    rank: int,
    save: list[OwnedCheckpoint],
    saved: int,
    collector: Collector,
) -> None:
    """Judge the state with which a rank goes on. ``save`` are the files of one save that it has loaded."""
    file = save[-1]
    where = artifacts.relative(file.path)
    data = about(rank, file=where)
    initial = history.first("initial", attempt=RESUME, rank=rank)
    if initial is None:
        collector.unknown(RESTORED, f"no digests of rank {rank} before its first step", where, data=data)
        return
    last_load = max(loads_ended(history, rank), key=lambda load: load.mono, default=None)
    if last_load is not None and last_load.mono > initial.mono:
        observation = f"rank {rank} loaded after its state was recorded"
        collector.unknown(RESTORED, observation, initial.source, last_load.source, data=data)
        return
    parameters = initial.data.get("parameters") or {}
    then = digests(history, TRAIN).get(rank, {}).get(saved)
    at_save = None if then is None else then.data.get("parameters")
    states = [as_held(state_at_resume(history, artifacts, part), rank, parameters, at_save) for part in save]
    stored = {name: digest for state in states for name, digest in state.digests.items()}
    own = {name for part, state in zip(save, states, strict=True) if part.rank == rank for name in state.digests}
    same_rank = file.rank == rank
    shared = [
        name
        for name in stored
        if name in parameters and not is_flag(name) and not is_appended(name) and (name in own or is_replicated(name))
    ]
    right = {**stored, **_at_update(history, artifacts, rank, file, saved)}
    unequal = sorted(name for name in shared if parameters[name] != right[name])
    if parameters:
        _judge_recorded(plan, history, rank, set(stored) - set(parameters), (initial.source, where), collector)
    if not shared:
        collector.unknown(RESTORED, f"no parameter of rank {rank} can be compared", initial.source, data=about(rank))
    anew = made_anew(history, initial)
    asked = [name for name in parameters if name not in stored and name not in anew]
    missing = [name for name in lacking(file, states[-1], asked) if same_rank or is_replicated(name)]
    if missing:
        observation = f"rank {rank} goes on with parameters that its file does not hold: {text_list(missing)}"
        collector.fail(RESTORED, observation, initial.source, where, data=replace(data, parameters=tuple(missing)))
    if unequal:
        observation = (
            f"{len(unequal)} of {len(shared)} parameters of rank {rank} are not the file's: {text_list(unequal)}"
        )
        data = about(
            rank,
            file=where,
            parameters=unequal,
            compared=len(shared),
            quantity=STATE,
            expected=right[unequal[0]],
            seen=parameters[unequal[0]],
        )
        collector.fail(RESTORED, observation, initial.source, where, data=data)


def _judge_recorded(
    plan: Plan, history: History, rank: int, stored: set[str], where: tuple[str, str], collector: Collector
) -> None:
    """Judge names in a rank's file without a digest of the rank before its first step."""
    unrecorded = sorted(stored & _names_later(history, rank))
    if unrecorded:
        observation = f"rank {rank} has recorded no digests of {text_list(unrecorded)} before its first step"
        collector.unknown(RESTORED, observation, where[0], data=about(rank, parameters=unrecorded))
    unnamed = sorted(name for name in stored - set(unrecorded) if is_slot(name))
    # Of the optimizer's state in shards the file holds that of all ranks.
    if unnamed and plan.layout.shard != "optimizer":
        observation = f"rank {rank} records no such optimizer state as its file holds: {text_list(unnamed)}"
        collector.unknown(RESTORED, observation, *where, data=about(rank, parameters=unnamed))


def _at_update(history: History, artifacts: Artifacts, rank: int, file: OwnedCheckpoint, saved: int) -> dict[str, str]:
    """Return a rank's state after the last update, where the job goes back to it from a file of a later step.

    Gradients accumulated since then must be absent.
    """
    if step_at_resume(history, artifacts, file) == saved:
        return {}
    then = digests(history, TRAIN).get(rank, {}).get(saved)
    return {} if then is None else then.data.get("parameters") or {}


def _names_later(history: History, rank: int) -> set[str]:
    """Return the parameters of the resumed rank by its first record after a step."""
    recorded = (event.data.get("parameters") for event in history.select("digest", attempt=RESUME, rank=rank))
    return set(next((names for names in recorded if names), ()))
