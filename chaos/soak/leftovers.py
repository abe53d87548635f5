"""The search for a killed harness's leftovers, by other ways than those of the run itself and of ``heal``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from chaos.base.walking import walk
from chaos.checks.judge import judge
from chaos.faults.storage.storage import PROBE
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.reader import read_history
from chaos.machine.job.processes import find_run_processes
from chaos.machine.linux.memory_group import PREFIX
from chaos.machine.linux.mounts import REMOVED, mounts_in
from chaos.machine.linux.procfs import PROC, all_pids, lines_of
from chaos.observe.checkpoints.layout import UNFINISHED_DIGESTS
from chaos.soak.left_by_harness import described, left_by_harness, networks_of
from chaos.soak.left_on_platform import left_on_platform
from chaos.store.baselines import DIRECTORY as BASELINES
from chaos.store.directory import (
    LEDGER_FILE,
    RUN_FILE,
    RUN_NAME,
    RunDirectoryError,
    private_directories,
    read_run,
    unfinished_files,
)

_REMOVED = re.compile(re.escape(REMOVED).replace(r"\{\}", ".+"))

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Where the kernel shows the control groups of this host (cgroups(7))."""


def leftovers(reports: Path, *harnesses: int) -> list[str]:
    """Return the leftovers of the runs in ``reports``, in words. ``harnesses`` are the PIDs of the killed harnesses.

    Each of them must have led a session of its own: the session identifies the processes that it has started and that
    have to end with it, and the networks that these hold. The search also covers processes, by their identity and by
    the directory in their environment or arguments; mounts, private directories, control groups, locks (leases,
    ownership), open undo steps, files and directories that were never finished or belong to one act, the leftovers on
    the run's platform, histories that cannot be read, and a verdict *pass* of a run that was broken off. A search that
    fails is reported too.
    """
    reports = reports.resolve()
    started = left_by_harness(harnesses)
    texts = [f"{described(pid)}, which has to end with its harness" for pid in started]
    naming = _naming(reports)
    texts += [f"process {pid} names {reports}" for pid in naming]
    texts += networks_of([*started, *naming])
    texts += [f"mounted at {mount.point}: {mount}" for mount in mounts_in(reports)]
    texts += [f"lock {lock} of process {harness}" for harness in harnesses for lock in _locks_of(harness)]
    texts += [f"unfinished file {path.name}" for path in unfinished_files(reports)]
    texts += _cut_off(reports)
    for directory in sorted(path for path in reports.iterdir() if path.is_dir() and not path.is_symlink()):
        if (directory / RUN_FILE).exists():
            texts += [f"{directory.name}: {text}" for text in _of_run(directory)]
        elif RUN_NAME.fullmatch(directory.name):
            texts.append(f"{directory.name}: its making was cut off")
    return texts


def _of_run(run_dir: Path) -> list[str]:
    try:
        token = read_run(run_dir)["token"]
    except RunDirectoryError as error:
        return [str(error)]
    ledger = Ledger(run_dir / LEDGER_FILE).read()
    processes = find_run_processes(token)
    texts = [f"process {process.pid}: {' '.join(process.cmdline)}" for process in processes]
    texts += networks_of(process.pid for process in processes)
    texts += [f"private directory {path}" for path in private_directories(token) if os.path.lexists(path)]
    texts += [f"control group {path}" for path in _groups_of(token, ledger.steps)]
    texts += [f"open undo step {step.id}" for step in ledger.open]
    texts += left_on_platform(run_dir, token, ledger.steps)
    texts += list(ledger.problems)
    texts += [f"unfinished file {path.name}" for path in unfinished_files(run_dir)]
    texts += [f"files left aside: {path}" for path in (run_dir / "job").glob(".*.kept*")]
    history = read_history(run_dir / "history")
    texts += [str(problem) for problem in history.problems if problem.kind != "torn-last-line"]
    ended = history.first("run.end") is not None
    if not ended and (run_dir / "plan.json").exists() and (verdict := judge(run_dir).verdict) != "unknown":
        texts.append(f"it was broken off and is judged {verdict}")
    return texts


def _cut_off(reports: Path) -> list[str]:
    """Return the files and directories with names that the harness uses within one act only, wherever they are.

    ``heal`` looks where they were made.
    """
    unread: list[OSError] = []
    paths = list((reports / BASELINES).glob("*.new"))
    for directory, directories, files in walk(reports, unread.append):
        paths += [Path(directory, name) for name in files if name == PROBE or name.endswith(UNFINISHED_DIGESTS)]
        paths += [Path(directory, name) for name in directories if _REMOVED.fullmatch(name)]
    left = [f"left by an act that was cut off: {path}" for path in sorted(paths)]
    return left + [f"not searched: {error.filename}: {error.strerror}" for error in unread]


def _groups_of(token: str, steps: Sequence[UndoStep]) -> list[str]:
    """Return control groups that have the run in their name, or that a step names, whether it is open or closed."""
    named = {str(step.arguments.get("path")) for step in steps}
    groups = [Path(directory, name) for directory, names, _ in walk(CONTROL_GROUPS) for name in names]
    return sorted(
        str(group)
        for group in groups
        if group.name.startswith(f"chaos-{token}-") or (group.name.startswith(PREFIX) and str(group) in named)
    )


def _naming(directory: Path) -> list[int]:
    """Return processes that have the directory in their environment or arguments, or work in it.

    This process is left out.
    """
    path = os.fsencode(directory)
    pids = []
    for pid in all_pids():
        place = PROC / str(pid)
        try:
            texts = [(place / name).read_bytes() for name in ("environ", "cmdline")]
            content = b"".join([*texts, os.fsencode((place / "cwd").readlink())])
        except OSError:
            continue
        if path in content and pid != os.getpid():
            pids.append(pid)
    return pids


def _locks_of(pid: int) -> list[str]:
    """Return a process's locks that still count, by the kernel's list (proc(5))."""
    lines = lines_of(PROC / "locks")
    return [" ".join(fields[5:6]) for line in lines if len(fields := line.split()) > 5 and fields[4] == str(pid)]
