"""Healing: after the harness was killed, end what its runs have left and put back what their faults have changed."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.wait import DeadlineExpired
from chaos.faults.storage.undo import unmount_topmost
from chaos.heal import orphans
from chaos.heal.heal_record import HealRecord
from chaos.heal.heal_report import HealReport, as_proposed, private_left, would_do
from chaos.heal.interrupted_acts import find_cut_off, remove_cut_off
from chaos.heal.relocated import find_relocation
from chaos.heal.tidying import no_creation, tidy_reports
from chaos.heal.trust import seal_in, trust_in
from chaos.heal.undo import (
    UNDO_ACTIONS,
    CannotUndo,
    UndoAction,
    UndoContext,
    end_job,
    remove_directory,
    undo_open_steps,
)
from chaos.heal.undo_nodes import NodesByUndoSteps
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.processes import find_run_processes, runs_alive
from chaos.machine.linux.mounts import mounts_in
from chaos.machine.linux.process import state
from chaos.store import baselines as cache
from chaos.store.directory import ADOPTED, LEDGER_FILE, RunDirectoryError, read_run, unfinished_files
from chaos.store.ownership import RunIsLive, RunLock, is_live

_DAMAGED = (
    "only what identifies itself as part of the run was looked for; if the scenario changed anything else, undo that "
    "by hand, then delete the run's directory"
)


def heal_run(
    run_dir: Path, *, actions: Mapping[str, UndoAction] = UNDO_ACTIONS, clock: Clock = SYSTEM_CLOCK
) -> HealReport:
    """Heal one run: undo its open steps, the latest first, then end every process that still carries its identity.

    A run whose harness lives is reported and not touched. A copy of a run's directory is treated the same way: the
    processes, mounts and rules in its records belong to the original run. Steps without a proof of this user's key are
    not done; the report lists what they would do. The function can be called again at any time, also after it was
    killed itself: finished steps are not repeated, and leftovers are found again. Events go to
    ``history/heal-<pid>.jsonl``, only if there was something to do.
    """
    run_dir = run_dir.resolve()
    report = HealReport(run_dir.name, run_dir)
    if not run_dir.is_dir():
        report.failed.append(f"{run_dir}: there is no such run")
        return report
    if (moved := find_relocation(run_dir)) is not None:
        report.live, report.copy = moved.means == "live", moved.means == "copy"
        (report.failed if moved.means == "unknown" else report.leftovers).append(moved.why)
        return report
    try:
        if not is_live(run_dir) and _refuse(run_dir, report):
            return report
        with no_creation(run_dir.parent, clock):
            lock = RunLock.acquire(run_dir, clock=clock)
    except RunIsLive as error:
        report.live = True
        report.leftovers.append(_live(error))
        return report
    except (DeadlineExpired, OSError) as error:
        report.failed.append(f"{run_dir}: cannot be locked: {error}")
        return report
    with lock:
        try:
            _heal_owned(run_dir, report, actions, clock)
        except OSError as error:
            report.failed.append(f"{run_dir}: cannot be healed: {error}")
    return report


def heal_all(
    reports: Path, *, actions: Mapping[str, UndoAction] = UNDO_ACTIONS, clock: Clock = SYSTEM_CLOCK
) -> list[HealReport]:
    """Heal every run in ``reports`` that has something left.

    Returns reports of those and of live runs, in order of name. Half-written files in the cache of baselines are
    removed too, and reported first. A run that cannot even be inspected is reported as failed, and the others are
    healed all the same; runs of other users are passed over.
    """
    if not reports.is_dir():
        return []
    made = tidy_reports(reports, clock)
    carried, writing = runs_alive(), orphans.writers()
    healed = _heal_cache(reports)
    for run_dir in made:
        try:
            if is_live(run_dir) or orphans.into(run_dir.resolve(), writing) or _has_left_something(run_dir, carried):
                healed.append(heal_run(run_dir, actions=actions, clock=clock))
        except Exception as error:  # whatever is wrong with one run, the others have to be healed
            if not _is_none_of_ours(run_dir, error):
                what = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
                healed.append(HealReport(run_dir.name, run_dir, failed=[f"{run_dir}: cannot be healed: {what}"]))
    return healed


def _is_none_of_ours(run_dir: Path, error: Exception) -> bool:
    """Return whether the directory was removed meanwhile, or belongs to another user, the only one who may read it."""
    try:
        owner = run_dir.lstat().st_uid
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return isinstance(error, PermissionError) and owner != os.geteuid()


def _heal_cache(reports: Path) -> list[HealReport]:
    again = f"chaos heal --reports {reports}"
    report = HealReport(cache.DIRECTORY, reports / cache.DIRECTORY, again=again)
    for name, refused in cache.remove_abandoned(reports).items():
        report.leftovers.append(f"unfinished file {name}")
        if refused is None:
            report.done.append(f"removed unfinished file {name}")
        else:
            report.failed.append(f"unfinished file {name} cannot be removed: {refused}")
    return [report] if report.leftovers else []


def _refuse(run_dir: Path, report: HealReport) -> bool:
    """Return whether the run may not be healed here. Nothing of it is touched then, and the report says why."""
    try:
        trust = trust_in(run_dir)
    except RunDirectoryError as error:
        content = Ledger(run_dir / LEDGER_FILE).read()
        # Without open steps there is nothing to heal: a job's step is recorded before the job is started.
        if content.open or content.problems:
            report.leftovers += [f"open undo step {step.id}: {step.note or step.action}" for step in content.open]
            report.failed.append(f"open undo steps cannot be undone without the run's identity: {error}")
        return True
    if trust.refused is None:
        return False
    report.proposed += would_do(run_dir, trust)
    if report.proposed:
        report.refused.append(trust.refused)
    return True


def _heal_owned(run_dir: Path, report: HealReport, actions: Mapping[str, UndoAction], clock: Clock) -> None:
    if _refuse(run_dir, report):
        return
    trust = trust_in(run_dir)
    described = trust.described
    assert described is not None
    ledger = Ledger(run_dir / LEDGER_FILE, trust.seal)
    content = ledger.read()
    token, adopted = described["token"], ADOPTED in described
    report.failed += [f"the undo ledger is damaged: {text}; {_DAMAGED}" for text in content.problems]
    if content.unproven:
        report.refused += content.doubts
        report.proposed += [as_proposed(step) for step in content.unproven]
    processes = [] if adopted else find_run_processes(token)
    report.leftovers += [f"open undo step {step.id}: {step.note or step.action}" for step in content.open]
    report.leftovers += [f"{process.identity}: {' '.join(process.cmdline)}" for process in processes]
    known = {str(step.arguments.get("path")) for step in content.open}
    report.leftovers += [
        f"mounted at {mount.point}: {mount}" for mount in mounts_in(run_dir) if mount.point not in known
    ]
    report.leftovers += [f"private directory {path}" for path in private_left(token) if str(path) not in known]
    if not adopted:
        carrying = {process.identity for process in processes}
        writing = [writer for writer in orphans.into(run_dir, orphans.writers()) if writer.identity not in carrying]
        report.leftovers += [f"{writer}, which writes to {writer.path}" for writer in writing]
    leftovers = unfinished_files(run_dir)
    report.leftovers += [f"unfinished file {path.name}" for path in leftovers]
    report.leftovers += [f"left by an act that was cut off: {path}" for path in find_cut_off(run_dir, content.steps)]
    if not report.leftovers:
        return
    report.leftovers += content.doubts
    record = HealRecord(run_dir, token, report.failed, clock)
    with contextlib.closing(record):
        nodes, roots = NodesByUndoSteps(token, content.steps), _roots(described)
        context = UndoContext(token, clock, adopted, nodes=nodes, directory=run_dir, roots=roots)
        _undo(ledger, context, actions, report, record)
        _put_back_the_rest(run_dir, context, report)
        if not mounts_in(run_dir):  # a failed unmount is already in the report
            removed, left = remove_cut_off(run_dir, content.steps)
            report.done += removed
            report.failed += left
        for path in leftovers:
            try:
                path.unlink(missing_ok=True)
                report.done.append(f"removed unfinished file {path.name}")
            except OSError as error:
                report.failed.append(f"unfinished file {path.name} cannot be removed: {error.strerror}")
        record("heal.end", found=report.leftovers, done=report.done, failed=report.failed)


def _roots(described: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the directories of a job that was running already, as they were recorded when its ranks were found."""
    match described.get(ADOPTED):
        case {"directories": list(named)}:
            return tuple(Path(name) for name in named if isinstance(name, str))
        case _:
            return ()


def _undo(
    ledger: Ledger, context: UndoContext, actions: Mapping[str, UndoAction], report: HealReport, record: HealRecord
) -> None:
    for undone in undo_open_steps(ledger, actions, context):
        text = f"{undone.step.id}: {undone.how}"
        if undone.ok:
            report.done.append(text)
            if undone.step.fault is not None:
                record("fault.healed", fault=undone.step.fault, how=undone.how)
        else:
            report.failed.append(text)
        if undone.unrecorded is not None:
            record.failed(undone.unrecorded)


def _put_back_the_rest(run_dir: Path, context: UndoContext, report: HealReport) -> None:
    """Put back everything that is recognisably the run's, whatever the ledger says.

    An attached job has nothing of this kind: its processes are neither searched for nor ended.

    The run's leftovers are every process with its identity, every mount in its directory (nobody else mounts there),
    and its private directories, known by their names and markers.
    """
    if not context.adopted and find_run_processes(context.token):
        _try(lambda: end_job(UndoStep("processes", None, "end-job", {"run": context.token}), context), report)
    if not context.adopted:
        ended, left = orphans.end_orphans(run_dir, context.clock)
        report.done += ended
        report.failed += left
    for mount in reversed(mounts_in(run_dir)):
        _try(functools.partial(unmount_topmost, Path(mount.point)), report)
    for path in private_left(context.token):
        step = UndoStep("directory", None, "remove-directory", {"path": str(path)})
        _try(functools.partial(remove_directory, step, context), report)


def _try(act: Callable[[], str], report: HealReport) -> None:
    try:
        report.done.append(act())
    except (CannotUndo, OSError) as error:
        if str(error) not in " ".join(report.failed):  # its undo step may have reported it already
            report.failed.append(str(error))


def _live(error: RunIsLive) -> str:
    if error.owner is None or state(error.owner) != "stopped":
        return str(error)
    pid = error.owner.pid
    return f"{error}, which is stopped (SIGSTOP): `kill -CONT {pid}` lets it go on, `kill -KILL {pid}` ends it"


def _has_left_something(run_dir: Path, carried: set[str]) -> bool:
    content, proved = Ledger(run_dir / LEDGER_FILE).read(), Ledger(run_dir / LEDGER_FILE, seal_in(run_dir)).read()
    if content.open or proved.open or content.problems or unfinished_files(run_dir) or mounts_in(run_dir.resolve()):
        return True
    if find_cut_off(run_dir, content.steps):
        return True
    try:
        token = read_run(run_dir)["token"]
    except RunDirectoryError:
        return False
    return token in carried or bool(private_left(token))
