"""Healing a run that is not shown to be this user's: step by step, on the word of an operator who has seen each."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.wait import DeadlineExpired
from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.storage.undo import take_away
from chaos.heal.caller_access import with_caller_access
from chaos.heal.heal_record import HealRecord
from chaos.heal.heal_report import HealReport, as_proposed, private_left
from chaos.heal.relocated import why_not_here
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
    """One thing that a run's directory asks for. ``never`` says why it is done on nobody's word, if it is not.

    ``do`` does it and says how. Raises CannotUndo, OSError.
    """

    id: str
    what: str
    do: Callable[[], str]
    never: str = ""


@dataclass(frozen=True)
class ForeignRun:
    """What a run's directory asks for, and why it is not acted on without a word. Nothing was done yet."""

    acts: tuple[Act, ...]
    why: tuple[str, ...]
    token: str


def look_at(run_dir: Path, *, inventory: Path | None = None, clock: Clock = SYSTEM_CLOCK) -> ForeignRun:
    """What would be done of a run, each with what stands against it. Raises RunDirectoryError."""
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
        acts += _of_found(run_dir, steps, context)
    return ForeignRun(tuple(_named_once(acts)), tuple(why), token)


def heal_trusted(
    run_dir: Path,
    choose: Callable[[Act], bool],
    *,
    inventory: Path | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> HealReport:
    """Do what ``choose`` says yes to, one after the other. What it says no to stays, and is told.

    A live run and a copy are not touched on anybody's word. Nothing of a ledger is run: no program, key or kubeconfig
    that it names; what it does on other machines is done by the caller's own kubeconfig, engine and ``inventory``.
    """
    run_dir = run_dir.resolve()
    report = HealReport(run_dir.name, run_dir)
    if (moved := why_not_here(run_dir)) is not None:
        report.live, report.copy = moved.means == "live", moved.means == "copy"
        (report.failed if moved.means == "unknown" else report.found).append(moved.why)
        return report
    try:
        with RunLock.acquire(run_dir, clock=clock):
            _act(run_dir, look_at(run_dir, inventory=inventory, clock=clock), choose, report, clock)
    except RunIsLive as error:
        report.live = True
        report.found.append(str(error))
    except (RunDirectoryError, DeadlineExpired, OSError) as error:
        report.failed.append(f"{run_dir}: cannot be healed: {error}")
    return report


def _act(run_dir: Path, foreign: ForeignRun, choose: Callable[[Act], bool], report: HealReport, clock: Clock) -> None:
    report.found += [act.what for act in foreign.acts]
    for act in foreign.acts:
        if act.never:
            report.failed.append(f"{act.id}: {act.never}")
        elif not choose(act):
            report.would.append(act.what)
        else:
            try:
                report.done.append(f"{act.id}: {act.do()}")
            except (CannotUndo, OSError) as error:
                report.failed.append(f"{act.id}: {error}")
    if report.would:
        report.refused += foreign.why
    if report.done:
        with contextlib.closing(HealRecord(run_dir, foreign.token, report.failed, clock)) as record:
            record("heal.end", found=report.found, done=report.done, failed=report.failed, trusted=True)


def _of_step(step: UndoStep, ledger: Ledger, context: UndoContext, inventory: Path | None) -> Act:
    try:
        own = with_caller_access(step, inventory)
        if step.action == _ENDS_PROCESSES:
            _refuse_another_run(find_run_processes(context.token), context)
    except CannotUndo as error:
        return Act(step.id, as_proposed(step), lambda: "", str(error))

    def undo() -> str:
        undone = undo_step(ledger, own, UNDO_ACTIONS, context)
        if not undone.ok:
            raise CannotUndo(undone.how)
        return undone.how

    return Act(step.id, as_proposed(step), undo)


def _of_found(run_dir: Path, steps: Iterable[UndoStep], context: UndoContext) -> Iterator[Act]:
    """What is known to be a run's without a step: its processes, what is mounted in it, its private directories."""
    if not context.adopted and all(step.action != _ENDS_PROCESSES for step in steps):
        for process in find_run_processes(context.token):
            what = f"process: end {process.identity}: {' '.join(process.cmdline)}"
            yield Act("process", what, lambda: "", "its ledger has no step that ends it: end it yourself")
    named = {str(step.arguments.get("path")) for step in steps}
    for mount in reversed(mounts_in(run_dir)):
        if mount.point not in named:
            yield Act("mount", f"mount: unmount {mount.point}", functools.partial(take_away, Path(mount.point)))
    for path in private_left(context.token):
        if str(path) not in named:
            step = UndoStep("directory", None, "remove-directory", {"path": str(path)})
            remove = functools.partial(UNDO_ACTIONS[step.action], step, context)
            yield Act("directory", f"directory: remove the private directory {path}", remove)


def _refuse_another_run(processes: list[FoundProcess], context: UndoContext) -> None:
    """Raise CannotUndo where the processes of that identity are of another directory: it is that run's, copied here."""
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
    """Yield each with an identity of its own, by which an operator means it."""
    taken: set[str] = set()
    for act in acts:
        name, number = act.id, 1
        while name in taken:
            number += 1
            name = f"{act.id}-{number}"
        taken.add(name)
        yield Act(name, act.what, act.do, act.never)
