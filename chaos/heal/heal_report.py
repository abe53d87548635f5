"""The report of a heal: what it found and did, and what it would have done of a run not shown to be this user's."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chaos.heal.trust import Trust
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.processes import find_run_processes
from chaos.machine.linux.mounts import mounts_in
from chaos.store.directory import ADOPTED, LEDGER_FILE, private_directories, unfinished_files

Outcome = Literal["nothing", "healed", "failed", "live", "copy", "refused"]


@dataclass
class HealReport:
    """The leftovers of one run, in ``path``, and what was done. ``failed`` says what could not be put back, and why.

    ``refused`` says why the run, or a part of it, was not acted on, and ``proposed`` lists the acts not done, by step.

    Leftovers of the reports directory itself (the cache of baselines) are reported in the same form. ``again`` is the
    command that heals them once the cause is mended; empty where their path is enough.
    """

    run: str
    path: Path
    leftovers: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)
    live: bool = False
    copy: bool = False
    again: str = ""

    @property
    def outcome(self) -> Outcome:
        """The outcome of the heal, in one word.

        "live": the harness still runs, and the run was not touched. "copy": the directory's records are of another
        directory, and it was not touched. "refused": the run, or a part of it, was not shown to be this user's, and
        that part was not touched. "nothing": nothing was left of the run.
        """
        if self.live:
            return "live"
        if self.copy:
            return "copy"
        if self.refused:
            return "refused"
        if self.failed:
            return "failed"
        return "healed" if self.done else "nothing"

    @property
    def ok(self) -> bool:
        """Whether nothing is left to be put back. A live run or a copy was not healed, so it is not ok."""
        return self.outcome in ("nothing", "healed")


def would_do(run_dir: Path, trust: Trust) -> list[str]:
    """Return the acts that a run's directory asks for, in words, whoever wrote it. Nothing is done."""
    content = Ledger(run_dir / LEDGER_FILE).read()
    would = [as_proposed(step) for step in content.open]
    would += [f"the undo ledger is damaged: {text}" for text in content.problems]
    if trust.described is not None and ADOPTED not in trust.described:
        processes = find_run_processes(trust.described["token"])
        would += [f"processes: end {process.identity}: {' '.join(process.cmdline)}" for process in processes]
        would += [f"directory: remove the private directory {path}" for path in private_left(trust.described["token"])]
    named = {str(step.arguments.get("path")) for step in content.open}
    would += [f"mount: unmount {mount.point}: {mount}" for mount in mounts_in(run_dir) if mount.point not in named]
    would += [f"file: remove the unfinished file {path.name}" for path in unfinished_files(run_dir)]
    return would


def as_proposed(step: UndoStep) -> str:
    """Return a step in words, with everything that it would act on."""
    return f"{step.id}: {step.note or step.action} ({step.action} {json.dumps(step.arguments, ensure_ascii=True)})"


def private_left(token: str) -> list[Path]:
    """Return the private directories of a run that still exist."""
    return [path for path in private_directories(token) if os.path.lexists(path)]
