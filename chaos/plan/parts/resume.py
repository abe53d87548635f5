"""The job's new start after its end, and the checkpoints it starts from."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PlannedRestore:
    """Periodic checkpoints from which a job is started again that ended without an end-of-life checkpoint.

    ``step`` is the newest step of which every replica group has a file to go on from, None where there is none: then
    the job cannot be resumed. ``lost`` are the ranks whose files a fault removes. ``damaged`` maps ranks to the step of
    the file that a fault damages: no rank may go on from it. ``holders`` maps every rank to the ranks whose file it may
    load: itself or, where its own file is lost or damaged, others of its replica group. ``own`` says that a step will
    do only if every rank has a file of its own: a replica's file is no help. ``unrecorded`` is in plans of earlier
    versions only: without the one record that names the last checkpoint they expected the job to end, whatever files
    are left. ``stated`` says that the scenario states the step, since a fault damages files and only the user knows
    what the script makes of that: what lay in their places is then recorded before the resume.
    """

    step: int | None
    lost: tuple[int, ...]
    holders: dict[int, tuple[int, ...]]
    damaged: dict[int, int] = field(default_factory=dict)
    unrecorded: bool = False
    own: bool = False
    stated: bool = False


@dataclass(frozen=True)
class Resume:
    """Whether the job is started again after it has ended, and where it goes on.

    ``resume_step`` is the first step trained after that, None if open or if there is none. ``restore`` says from which
    periodic checkpoints, None where it is from an end-of-life checkpoint or not at all.
    """

    resumes: bool
    resume_step: int | None
    restore: PlannedRestore | None = None
