"""Healing a run that is not shown to be this user's: step by step, as an operator permits each step."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.wait import DeadlineExpired
from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.storage.undo import unmount_topmost
from chaos.heal.caller_access import with_caller_access
from chaos.heal.heal_record import HealRecord
from chaos.heal.heal_report import HealReport, as_proposed, private_left
from chaos.heal.relocated import find_relocation
from chaos.heal.trust import trust_in
from chaos.heal.undo import UNDO_ACTIONS, in_order, undo_step
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.processes import FoundProcess, find_run_processes
from chaos.machine.linux.mounts import mounts_in
from chaos.machine.linux.procfs import PROC
from chaos.machine.running.outputs import standard_outputs_of
from chaos.store.directory import ADOPTED, LEDGER_FILE, RunDirectoryError
from chaos.store.ownership import RunIsLive, RunLock

_ENDS_PROCESSES = "end-job"


@dataclass(frozen=True)
class Act:
    """One act that a run's directory asks for. ``never`` says why no permission allows it; empty where one may.

    ``do`` does the act and returns how it was done. Raises CannotUndo, OSError.
    """

    id: str
    what: str
    do: Callable[[], str]
    never: str = ""


@dataclass(frozen=True)
class ForeignRun:
    """The acts that a run's directory asks for, and why they need permission. Nothing has been done yet."""

    acts: tuple[Act, ...]
    why: tuple[str, ...]
    token: str


def look_at(run_dir: Path, *, inventory: Path | None = None, clock: Clock = SYSTEM_CLOCK) -> ForeignRun:
    """Return the acts that healing the run would take, each with the objection to it. Raises RunDirectoryError."""
    trust = trust_in(run_dir)
    assert trust.described is not None
    token, adopted = trust.described["token"], ADOPTED in trust.described
    context = UndoContext(token, clock, adopted, directory=run_dir, roots=())
    taken = Ledger(run_dir / LEDGER_FILE)
    if trust.refused is None:
        content = Ledger(run_dir / LEDGER_FILE, trust.seal).read()
        steps, why = list(content.unproven), content.doubts if content.unproven else ()
    else:
        steps, why = taken.read().open, (trust.refused,)
    acts = [_of_step(step, taken, context, inventory) for step in in_order(steps)]
    if trust.refused is not None:
        acts += _acts_without_step(run_dir, steps, context)
    return ForeignRun(tuple(_named_once(acts)), tuple(why), token)


def heal_trusted(
    run_dir: Path,
    choose: Callable[[Act], bool],
    *,
    inventory: Path | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> HealReport:
    """Do the acts that ``choose`` accepts, one after the other. Acts that it rejects are left and reported.

    A live run and a copy are not touched, whoever permits it. Nothing that a ledger names is used: no program, key or
    kubeconfig. Acts on other machines use the caller's own kubeconfig, engine and ``inventory``.
    """
    run_dir = run_dir.resolve()
    report = HealReport(run_dir.name, run_dir)
    if (moved := find_relocation(run_dir)) is not None:
        report.live, report.copy = moved.means == "live", moved.means == "copy"
        (report.failed if moved.means == "unknown" else report.leftovers).append(moved.why)
        return report
    try:
        with RunLock.acquire(run_dir, clock=clock):
            _act(run_dir, look_at(run_dir, inventory=inventory, clock=clock), choose, report, clock)
    except RunIsLive as error:
        report.live = True
        report.leftovers.append(str(error))
    except (RunDirectoryError, DeadlineExpired, OSError) as error:
        report.failed.append(f"{run_dir}: cannot be healed: {error}")
    return report


def _act(run_dir: Path, foreign: ForeignRun, choose: Callable[[Act], bool], report: HealReport, clock: Clock) -> None:
    report.leftovers += [act.what for act in foreign.acts]
    for act in foreign.acts:
        if act.never:
            report.failed.append(f"{act.id}: {act.never}")
        elif not choose(act):
            report.proposed.append(act.what)
        else:
            try:
                report.done.append(f"{act.id}: {act.do()}")
            except (CannotUndo, OSError) as error:
                report.failed.append(f"{act.id}: {error}")
    if report.proposed:
        report.refused += foreign.why
    if report.done:
        with contextlib.closing(HealRecord(run_dir, foreign.token, report.failed, clock)) as record:
            record("heal.end", found=report.leftovers, done=report.done, failed=report.failed, trusted=True)


def _of_step(step: UndoStep, ledger: Ledger, context: UndoContext, inventory: Path | None) -> Act:
    try:
        own_step = with_caller_access(step, inventory)
        if step.action == _ENDS_PROCESSES:
            _refuse_another_run(find_run_processes(context.token), context)
    except CannotUndo as error:
        return Act(step.id, as_proposed(step), lambda: "", str(error))

    def undo() -> str:
        undone = undo_step(ledger, own_step, UNDO_ACTIONS, context)
        if not undone.ok:
            raise CannotUndo(undone.how)
        return undone.how

    return Act(step.id, as_proposed(step), undo)


def _acts_without_step(run_dir: Path, steps: Iterable[UndoStep], context: UndoContext) -> Iterator[Act]:
    """Yield an act for everything that is the run's without a step: processes, mounts in it, private directories."""
    if not context.adopted and all(step.action != _ENDS_PROCESSES for step in steps):
        for process in find_run_processes(context.token):
            what = f"process: end {process.identity}: {' '.join(process.cmdline)}"
            yield Act("process", what, lambda: "", "no step of the ledger ends this process: end it yourself")
    named = {str(step.arguments.get("path")) for step in steps}
    for mount in reversed(mounts_in(run_dir)):
        if mount.point not in named:
            yield Act("mount", f"mount: unmount {mount.point}", functools.partial(unmount_topmost, Path(mount.point)))
    for path in private_left(context.token):
        if str(path) not in named:
            step = UndoStep("directory", None, "remove-directory", {"path": str(path)})
            remove = functools.partial(UNDO_ACTIONS[step.action], step, context)
            yield Act("directory", f"directory: remove the private directory {path}", remove)


def _refuse_another_run(processes: list[FoundProcess], context: UndoContext) -> None:
    """Raise CannotUndo where processes with the token are of another directory: the run was copied here from there."""
    assert context.directory is not None
    if processes and not any(_is_in(process.pid, context.directory) for process in processes):
        listed = ", ".join(str(process.pid) for process in processes[:5])
        raise CannotUndo(
            f"processes {listed} carry this identity, and none works in this directory: they are another run's"
        )


def _is_in(pid: int, directory: Path) -> bool:
    """Return whether a process works in a directory, or writes its output there."""
    places = [output.path for output in standard_outputs_of(pid)]
    with contextlib.suppress(OSError):
        places.append(str((PROC / str(pid) / "cwd").readlink()))
    return any(PurePath(place).is_relative_to(directory) for place in places)


def _named_once(acts: Iterable[Act]) -> Iterator[Act]:
    """Yield each act under an identity of its own, by which an operator names it."""
    taken: set[str] = set()
    for act in acts:
        name, number = act.id, 1
        while name in taken:
            number += 1
            name = f"{act.id}-{number}"
        taken.add(name)
        yield Act(name, act.what, act.do, act.never)
