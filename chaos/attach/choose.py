"""Choosing a running job and its processes by name. A missing or ambiguous name is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from chaos.base.rank_sets import spans
from chaos.jobs.kind import JobError
from chaos.machine.linux.procfs import PROC
from chaos.machine.running.directories import FileKey, key_of
from chaos.machine.running.running import Hidden, JobProcess, RunningJob, Survey

_LISTED = 10
_ONLY_LEFT = "no rank runs there any more; these processes were left behind by ranks:"


def named_job(survey: Survey, name: str, *, here: Path, proc_root: Path = PROC) -> RunningJob:
    """Return the job that ``name`` names: by the PID of one of its processes, or by a directory.

    The directory is the ranks' log directory (msrun's ``--log_dir``, torchrun's ``--log-dir`` or a directory in it),
    their working directory, or a directory between the two; it is compared as a file, so links and mounts of containers
    do not matter. A relative path starts from ``here``. Raises JobError where the name fits no job, or several.
    """
    if _is_pid(name):
        return _by_pid(survey, int(name), proc_root)
    key = key_of(here / name)
    if key is None:
        raise JobError(f"--job {name}: there is no such directory{_advice(survey)}")
    matching = without_leftovers(jobs_in(key, survey))
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise JobError(
            f"--job {name}: {len(matching)} jobs run there; name one by its log directory or a PID:{_list(matching)}"
        )
    if left := [process for process in survey.left if key in process.directories.keys]:
        forks = [job.ranks[0] for job in survey.forks if key in job.ranks[0].directories.keys]
        unless = f"\nIf one of them is a rank all the same, give its PID as --job:{_list(forks)}" if forks else ""
        raise JobError(f"--job {name}: {_ONLY_LEFT}{_list(left)}{unless}")
    raise JobError(f"--job {name}: no job on this host logs or works in that directory{_advice(survey)}")


def jobs_in(key: FileKey, survey: Survey) -> list[RunningJob]:
    """Keep the jobs that log or work in a directory, or in a directory between the two."""
    return [job for job in survey.jobs if any(key in process.directories.keys for process in job.processes)]


def without_leftovers(jobs: Sequence[RunningJob]) -> list[RunningJob]:
    """Keep the jobs whose ranks run, or may: a job just started counts, processes left by ranks do not.

    Keeps all jobs where no rank runs: a scheduler alone is no better choice than the other jobs.
    """
    clear = [job for job in jobs if not job.left_over]
    alone = all(process.role == "scheduler" for job in clear for process in job.processes)
    return list(jobs) if alone else clear


def chosen_ranks(
    job: RunningJob, ranks: Sequence[int], name: str, *, here: Path, all_jobs: Iterable[RunningJob] = ()
) -> list[JobProcess]:
    """Return the processes of these ranks. Raises JobError when a rank is not on this host, or is ambiguous.

    ``all_jobs`` are the jobs of this host: a refusal names the jobs that have such a rank. Where a directory names the
    job, each rank must itself log or work there, whatever else it has in common with the ranks that do.
    """
    if run := next((process.run for process in job.processes if process.run), None):
        raise JobError(
            f"--job {name}: `chaos run` has started this job (run {run}): write its faults into its scenario, or its "
            "verdict would blame the job. If its harness was killed, `chaos heal` ends the processes that are left."
        )
    clear = [process for process in job.ranks if not process.doubt]
    # A process just started shows nothing yet; the choice between the two is ambiguous all the same.
    living = [process for process in job.ranks if not process.doubt or process.early]
    numbers = Counter(process.rank for process in living if process.rank is not None)
    twice = [rank for rank, number in numbers.items() if number > 1]
    itself = [process for process in job.ranks if str(process.pid) == name]
    if [process.rank for process in itself] == list(ranks):
        return itself
    if twice:
        doubles = [process for process in living if process.rank in twice]
        launched = any(process.role == "launcher" for process in job.processes)
        why = (
            "the launcher has started the same rank twice. Give"
            if launched
            else "the same rank runs twice there, in two launches. End the processes of the earlier one, or give"
        )
        raise JobError(f"--job {name}: {why} the PID of the rank itself as --job:{_list(doubles)}")
    missing = [rank for rank in ranks if all(process.rank != rank for process in job.ranks)]
    if missing and (unknown := [process for process in job.ranks if process.rank is None]):
        raise JobError(
            f"--rank {missing[0]}: the rank numbers of these processes are unknown. Their launcher has set no "
            "MS_NODE_ID (like msrun on several nodes without --node_rank), so the RANK_ID in their environment is not "
            'their own. MindSpore logs the number ("This node … rank id: …") once all nodes are there, unless GLOG_v '
            f"is above 2, but has not logged it yet for:{_list(unknown)}"
        )
    if missing:
        size = f" of {job.size}" if job.size is not None else ""
        present = spans(process.rank for process in job.ranks if process.rank is not None) or "none"
        other = [
            running_job
            for running_job in all_jobs
            if running_job != job and any(process.rank == missing[0] for process in running_job.ranks)
        ]
        raise JobError(
            f"--rank {missing[0]}: not among the ranks of that job on this host ({present}{size}); for ranks of other "
            "nodes, call `chaos inject` there"
            + (f". That job, and the jobs that have such a rank:{_list([job, *other])}" if other else "")
        )
    if doubtful := [
        process for process in job.ranks if process.rank in ranks and process.rank not in {sure.rank for sure in clear}
    ]:
        raise JobError(
            f"--job {name}: this may be the rank, or a process left by a rank or its start script; if it is the rank, "
            f"give its PID as --job:{_list(doubtful)}"
        )
    chosen = [next(process for process in clear if process.rank == rank) for rank in dict.fromkeys(ranks)]
    elsewhere = (
        [] if _is_pid(name) else [process for process in chosen if key_of(here / name) not in process.directories.keys]
    )
    if elsewhere:
        raise JobError(f"--job {name}: this rank neither logs nor works there; name it by its PID:{_list(elsewhere)}")
    return chosen


def watchable_job(survey: Survey, name: str, *, here: Path) -> RunningJob:
    """Return the job that ``name`` names; one of its ranks is certain, or was itself named. Raises JobError."""
    job = named_job(survey, name, here=here)
    if job.doubtful and all(str(process.pid) != name for process in job.ranks):
        raise JobError(
            f"--job {name}: a rank may run there, or only processes left by ranks or their start script; if one is a "
            f"rank, give its PID as --job:{_list(job.ranks)}"
        )
    return job


def _is_pid(name: str) -> bool:
    return name.isascii() and name.isdecimal()


def _by_pid(survey: Survey, pid: int, proc_root: Path) -> RunningJob:
    if fork := [job for job in survey.forks if job.ranks[0].pid == pid]:
        return fork[0]
    # A job that was started from inside another job is named by its own processes, so the nearest process decides.
    for ancestor in (pid, *_ancestors(pid, survey)):
        matching = [job for job in survey.jobs if any(process.pid == ancestor for process in job.processes)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise JobError(
                f"--job {pid}: it has started processes that contradict each other about the job (size, scheduler or "
                f"rank table); give the PID of a rank:{_list(matching)}"
            )
    if hidden := [process for process in survey.hidden if process.pid == pid]:
        raise JobError(f"--job {pid}: {_cannot_look(hidden)}")
    if pid not in survey.parents:
        raise JobError(f"--job {pid}: there is no process {pid}{_advice(survey)}")
    if left := [process for process in survey.left if process.pid == pid]:
        raise JobError(f"--job {pid}: {_ONLY_LEFT}{_list(left)}")
    below = [job for job in survey.jobs if pid in _ancestors(job.processes[0].pid, survey)]
    listed = f"; started from it:{_list(below)}" if below else _advice(survey)
    raise JobError(
        f"--job {pid}: process {pid} does not belong to a job with ranks: by its environment it is neither a rank nor "
        f"a scheduler, and it has started no rank{listed}"
    )


def _ancestors(pid: int, survey: Survey) -> list[int]:
    """Return the ancestors of this process, its parent first."""
    ancestors: list[int] = []
    while (pid := survey.parents.get(pid, 0)) and pid not in ancestors:
        ancestors.append(pid)
    return ancestors


def _advice(survey: Survey) -> str:
    parts = []
    if survey.jobs:
        parts.append(f". Jobs on this host:{_list(survey.jobs)}")
    else:
        parts.append(
            ". No process on this host has MS_ROLE=MS_WORKER, RANK_ID with RANK_SIZE, or TORCHELASTIC_RUN_ID with "
            "LOCAL_RANK and RANK in its environment"
        )
    if survey.hidden:
        parts.append(("\n" if survey.jobs else ". ") + _cannot_look(survey.hidden))
    return "".join(parts)


def _cannot_look(hidden: Sequence[Hidden]) -> str:
    users = sorted({process.uid for process in hidden})
    pids = ", ".join(str(process.pid) for process in hidden[:_LISTED]) + (", …" if len(hidden) > _LISTED else "")
    who = ", ".join(map(str, users))
    return (
        f"This user may not read the environment of Python processes of user {who} (PID {pids}), so whether they are "
        f"ranks is unknown: call chaos as that user (`sudo -u '#{users[0]}' …`) or as root"
    )


def _list(items: Iterable[object]) -> str:
    lines = [f"\n  {item}" for item in items]
    more = [f"\n  … and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    return "".join([*lines[:_LISTED], *more])
