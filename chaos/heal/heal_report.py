"""What a heal has found and done, and what it would have done of a run that is not shown to be this user's."""

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
    """What was found and done in one run, in ``path``. ``failed`` says what could not be put back, and why.

    ``refused`` says why it, or a part of it, was not acted on, and ``would`` what would have been done, by step.

    What is no run's but of the reports directory itself, the cache of baselines, is told of in the same form. ``again``
    is the command that heals it when the cause is mended, if not by its path.
    """

    run: str
    path: Path
    found: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    would: list[str] = field(default_factory=list)
    live: bool = False
    copy: bool = False
    again: str = ""

    @property
    def outcome(self) -> Outcome:
        """ "live": its harness still runs and it was not touched. "copy": what is told in it is of another directory,
        and it was not touched. "refused": it was not shown to be this user's, or not all of it, and what was not shown
        to be was not touched. "nothing": nothing was left of it."""
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
    """What a run's directory asks for, in words, whoever has written it. Nothing is done."""
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
    """Return the private directories of a run that are there."""
    return [path for path in private_directories(token) if os.path.lexists(path)]
