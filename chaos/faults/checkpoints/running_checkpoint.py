"""Damage to a checkpoint of a job that runs already: the choice of the file, and the differences from a run's own job.

Nobody says where such a job saves, so only the job's own directories are searched: below the rank's working directory
and its log directory, and through no link. The file is chosen once, shown, and hit only as long as it is the same file.
The damage lasts until it is undone, also after the rank has ended: the next launch is to meet it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from chaos.base.walking import raise_too_deep, walk
from chaos.faults.behaviours import Aimed, StillShown
from chaos.faults.checkpoints.checkpoint_damage import RESTORE, Damage
from chaos.faults.checkpoints.checkpoint_parts import Hit, part_of
from chaos.faults.checkpoints.plan_damage import PARAMETERS
from chaos.faults.checkpoints.rename_checkpoint import RenameCheckpoint
from chaos.faults.checkpoints.saved_files import finished
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.running.directories import key_of
from chaos.machine.running.running import JobProcess, RunningJob, Survey, survey
from chaos.observe.checkpoints.layout import find_checkpoints
from chaos.plan.checkpoints.saved import MODEL
from chaos.plan.job_effect import JobEffect
from chaos.plan.rules.parameters import Parameter, Parameters

RESTORE_ADOPTED = f"{RESTORE}-adopted"
"""The undo action (chaos.faults.checkpoints.undo) for a file that is not the run's."""

MAX_FILES = 20_000
"""Files and directories below a directory of the job; one with more is not searched for checkpoints."""

_OF_A_RUN = "run.json"
"""A file that marks its surroundings as a run's of chaos, with the originals that it keeps: they are not the job's."""

_SHOWN = 3

STEP = Parameter("the step that the checkpoint holds; without it the newest", most=1e18, whole=True)

CheckpointKind: TypeAlias = "Damage | RenameCheckpoint"

Identity = tuple[int, int, int, int]
"""Device, inode, size, and time of change; another file, or other content, differs in one of them."""


@dataclass(frozen=True)
class Aim:
    """The file of a rank that is to be hit, as it was when it was chosen, and its directory of the job.

    ``older`` identifies the rank's file before it.
    """

    hit: Hit
    root: Path
    identity: Identity
    older: Identity | None

    def to_json(self, rank: int) -> dict[str, Any]:
        return {"rank": rank, "path": str(self.hit.path), "step": self.hit.step, "bytes": self.identity[2]}


@dataclass(frozen=True)
class RunningCheckpoint(Aimed, StillShown):
    """A kind of damage in a job that runs already. ``aims`` are the chosen files by rank.

    Its parameters are those of the kind, and the choice of the checkpoint.
    """

    kind: CheckpointKind
    name: str
    effect: JobEffect
    parameters: Parameters
    aims: Mapping[int, Aim] = field(default_factory=dict)
    landed: dict[int, Identity | None] = field(default_factory=dict)

    from_outside = True
    outlives_ranks = True
    evidence_source = "the file itself"
    surface = "files"

    def aim_at(self, ranks: Sequence[JobProcess], parameters: Mapping[str, Any]) -> RunningCheckpoint:
        """Return the kind with a file of each rank. Raises FaultMissed where there is none, or it cannot be hit."""
        running = survey()
        step, part = parameters.get("step"), parameters.get("part", MODEL)
        return replace(
            self,
            aims={process.rank: _aim(process, step, part, running) for process in ranks if process.rank is not None},
        )

    def aim_records(self) -> list[dict[str, Any]]:
        """Return the files that would be hit."""
        return [aim.to_json(rank) for rank, aim in sorted(self.aims.items())]

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return the kind's steps, for a file in a directory that is not the run's."""
        return [self._undo_step(fault, victim) for victim in victims]

    def _undo_step(self, fault: str, victim: Victim) -> UndoStep:
        aim = self.aims[victim.rank]
        self._check(aim.hit, victim)
        (step,) = self._bound.undo_steps(fault, [self._placed(victim)])
        at = aim.hit.path.parent.lstat()
        arguments = {**step.arguments, "root": str(aim.root), "directory": [at.st_dev, at.st_ino]}
        return replace(step, action=RESTORE_ADOPTED, arguments=arguments)

    def inject(self, job: Job, victim: Victim) -> None:
        """Damage the file.

        Raises FaultMissed where the job has saved another one under that name since it was chosen.
        """
        self._bound.inject(job, self._placed(victim))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kind's evidence: the digests of the kept original and of the file in its place."""
        shown = self._bound.evidence(job, self._placed(victim))
        if shown is not None:
            if shown.get("step") is None:  # a part of a directory does not hold its step
                shown["step"] = self.aims[victim.rank].hit.step
            self.landed[victim.rank] = _identity(self._path_left(victim))
        return shown

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return an empty proof as long as the file is the damaged one.

        Raises FaultMissed where it is another, or none. It is checked often, so the content is not read again.
        """
        del job
        now = _identity(self._path_left(victim))
        if now != self.landed.get(victim.rank):
            raise FaultMissed("another file is there, or none")
        return {}

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return False: a file is there without its rank."""
        del job, victim
        return False

    @property
    def _bound(self) -> CheckpointKind:
        return replace(self.kind, find=lambda victim: self.aims[victim.rank].hit, check=self._check)

    def _check(self, hit: Hit, victim: Victim) -> None:
        aim = self.aims[victim.rank]
        same = _identity(aim.hit.path) == aim.identity and _of_older(aim.hit) == aim.older
        if not same or not _leads_straight(aim.hit.path):
            raise FaultMissed(
                f"rank {victim.rank}: {aim.hit.path}, or the one before it, is not the file any more that was "
                "chosen: the job has saved or removed it meanwhile; call chaos again"
            )

    def _placed(self, victim: Victim) -> Victim:
        return replace(victim, storage=self.aims[victim.rank].root)

    def _path_left(self, victim: Victim) -> Path:
        return self.kind.left_at(self.aims[victim.rank].hit.path)


def in_running_jobs(kind: CheckpointKind) -> RunningCheckpoint:
    """Return a kind of damage, for jobs that run already."""
    kind_parameters = PARAMETERS.get(kind.name, {})
    words = {name: Parameter(f"default {words[0]}", words=words) for name, words in kind_parameters.items()}
    return RunningCheckpoint(kind, kind.name, kind.effect, {**words, "step": STEP})


def _aim(process: JobProcess, step: int | None, part: str, running: Survey) -> Aim:
    assert process.rank is not None
    if process.container is not None:
        raise FaultMissed(f"rank {process.rank} is in container {process.container}: call chaos inside that container")
    roots = own_directories(process)
    checkpoints = sorted(checkpoint for root in roots for checkpoint in _checkpoints(root, process))
    if step is None and not checkpoints:
        raise FaultMissed(f"{_none_there(process, roots)}; {_links_and_others(roots)}")
    steps = sorted({number for number, _, _ in checkpoints})
    chosen = (
        checkpoints[-1]
        if step is None
        else next((checkpoint for checkpoint in reversed(checkpoints) if checkpoint[0] == step), None)
    )
    if chosen is None:
        listed = ", ".join(map(str, steps)) or "no step"
        raise FaultMissed(
            f"{_none_there(process, roots)} of step {step}; there are those of {listed}; {_links_and_others(roots)}"
        )
    held, path, root = chosen
    if not os.access(path.parent, os.W_OK | os.X_OK) or not os.access(path, os.R_OK):
        raise FaultMissed(
            f"rank {process.rank}: {path} cannot be replaced by this user: call chaos as its user or as root"
        )
    if (other_job := _other_job(path, process, running)) is not None:
        raise FaultMissed(f"rank {process.rank}: the owner of {path} is unknown, because {other_job} works there too")
    older = [file for earlier, file, where in checkpoints if earlier < held and where == root]
    hit = part_of(Hit(path, held, older[-1] if older else None), part, process.rank)
    identity = _identity(hit.path)
    assert identity is not None
    return Aim(hit, root, identity, _of_older(hit))


def _other_job(path: Path, process: JobProcess, running: Survey) -> RunningJob | None:
    """Return a job that may have saved a file too: it works or logs above it, and may have a rank of this number."""
    own_job = _job_of(process.identity, running)
    for job in running.jobs:
        if job is own_job:
            continue
        same = own_job is not None and own_job.marks == job.marks
        if same and all(other_process.rank != process.rank for other_process in job.ranks):
            continue  # one launch whose ranks log in directories of their own
        if any(path.is_relative_to(directory) for other in job.processes for directory in own_directories(other)):
            return job
    return None


def _job_of(identity: ProcessIdentity, running: Survey) -> RunningJob | None:
    """Return the job of a process."""
    return next((job for job in running.jobs if identity in {process.identity for process in job.processes}), None)


def own_directories(process: JobProcess) -> list[Path]:
    """Return the directories that a rank works and logs in, without those that are below another one of them.

    A path that leads to another directory here than in the process itself is left out.
    """
    paths = [
        Path(directory) for directory in (process.directories.cwd, process.directories.logs) if directory is not None
    ]
    real = sorted({path.resolve() for path in paths if key_of(path) in process.directories.keys})
    return [path for path in real if not any(path != other and path.is_relative_to(other) for other in real)]


def _checkpoints(root: Path, process: JobProcess) -> Iterable[tuple[int, Path, Path]]:
    """Yield the rank's finished checkpoints in a directory, with the steps that they hold."""
    count = 0
    for _, directories, files in walk(root, raise_too_deep):
        count += len(directories) + len(files)
        if count > MAX_FILES:
            raise FaultMissed(
                f"rank {process.rank} works or logs in {root}, which has more than {MAX_FILES} files: too many to "
                "identify its checkpoints; let the job work in a directory of its own"
            )
    assert process.rank is not None
    victim = Victim(process.rank, process.identity, root, storage=root)
    return [(step, path, root) for step, path in finished(victim) if not _is_of_a_run(path, root)]


def _is_of_a_run(path: Path, root: Path) -> bool:
    return any(
        (parent / _OF_A_RUN).exists() for parent in path.parents if parent != root and parent.is_relative_to(root)
    )


def _none_there(process: JobProcess, roots: Sequence[Path]) -> str:
    where = " and ".join(map(str, roots)) or "no directory that can be read"
    return f"rank {process.rank} works and logs in {where}, and has no finished checkpoint there"


def _links_and_others(roots: Sequence[Path]) -> str:
    """Return other places where it may save.

    A checkpoint is a rank's by ``rank_N`` in its path, and no link is followed.
    """
    links = [
        f"{link} is a link to {link.resolve()}"
        for root in roots
        for directory, names, _ in walk(root, None)
        for link in (Path(directory, name) for name in names)
        if link.is_symlink()
    ]
    unnumbered = [
        str(checkpoint.path) for root in roots for checkpoint in find_checkpoints(root, None) if checkpoint.rank is None
    ]
    places = [*links[:_SHOWN], *(f"{name} names no rank" for name in unnumbered[:_SHOWN])]
    return "; ".join([*places, "what lies elsewhere, or behind a link, is not touched"])


def _identity(path: Path) -> Identity | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _of_older(hit: Hit) -> Identity | None:
    return None if hit.older is None else _identity(hit.older)


def _leads_straight(path: Path) -> bool:
    return path.parent.resolve() == path.parent and not path.is_symlink()
