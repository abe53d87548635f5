"""Evidence that may be missing from a good run without a doubt, by base, with the reason.

The evidence that replaces it exists in one kind of recovery and not in another: the end of a launcher proves nothing
where the launch must fail, and everything where it must go on. So an allowed gap names its bases. A gap that a base no
longer needs is reported: a check now reads what no check had to read before, or the run no longer holds it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

OF_BASELINE = "the baseline's "
"""Prefix of the events of the fault-free run."""

AllowedGaps = Mapping[str, Mapping[str, str]]
"""Maps a reason to events, as named by :func:`kind_of`, and these to the bases that pass without them.

Bases are separated by spaces. Events ``of rank R`` are those of that rank alone: the events of the other ranks are

needed, and the events of this rank never are. All others are of any rank.
"""

_ELASTIC = "live-torch-elastic live-torch-elastic-damage live-torch-fsdp live-torch-hsdp live-torch-zero"
_RESUMED = "live-torch-damage live-torch-resume"
_UNNOTICED = "live-torch-spike"
_TORCH = f"{_ELASTIC} {_RESUMED} {_UNNOTICED}"

_ALL = (
    "arf exit harmless hcce held host-reboot in-vain live-plain-damage "
    f"{_TORCH} pods rsc slices tolerant tre tsp ttp uce"
)
"""All bases with a fault-free run beside them, but for that of replica groups."""

_STOPPED, _ALONE = "torchft-suspend-between-steps", "torchft-kill-lighthouse"
_FT = f"torchft-kill-group {_STOPPED}"
"""Their groups 0 and 2 train on in their processes, and the group that is stopped for a time in its own."""
_TORCHFT = f"{_FT} {_ALONE}"
"""Where the lighthouse is killed all groups train in one process each, and end."""

ALLOWED_GAPS: AllowedGaps = MappingProxyType(
    {
        "The end of a save counts; a beginning alone is the trace of a broken-off save.": {
            "checkpoint.begin in attempt train": "held host-reboot in-vain live-plain-damage pods rsc slices tolerant "
            f"tre ttp {_TORCH}",
            "checkpoint.begin in attempt resume": f"live-plain-damage {_RESUMED} slices ttp",
        },
        "Saves have their last names already when a history is read; only a save without an end needs the renaming.": {
            "checkpoint.renamed in attempt train": _TORCH,
            "checkpoint.renamed in attempt resume": _RESUMED,
        },
        "The states of the fault-free run are compared, and not its files.": {
            "the baseline's checkpoint.begin in attempt train": f"live-plain-damage rsc slices tre ttp {_TORCH}",
            "the baseline's checkpoint.end in attempt train": _TORCH,
        },
        "No rank of the resumed job saves over a file from which it could have gone on.": {
            "checkpoint.remembered in attempt resume": _RESUMED,
        },
        "The plan says that the optimizer's state is spread over the ranks.": {
            "state.sharded in attempt train": "live-torch-zero",
        },
        "Without it the phase import lasts until the load of the checkpoint.": {
            "group.ready in attempt train": _ELASTIC,
        },
        "Only a group that is started again has a phase import.": {
            "group.ready of rank 0 in attempt train": _FT,
            "group.ready of rank 1 in attempt train": _STOPPED,
            "group.ready of rank 2 in attempt train": _FT,
        },
        "The file holds the saved state, and the loaded state is compared with it.": {
            "checkpoint.end in attempt train": "held host-reboot in-vain pods tolerant",
        },
        "The last error of a rank only adds suspicion: its exit status shows how it ended.": {
            "error.reported in attempt train": _ALL,
            "error.uncaught in attempt train": _TORCH,
        },
        "The handler's return proves a pause; the file and the save's own end prove a save.": {
            "handler.enter in attempt train": "tsp ttp",
            "handler.enter of rank 1 in attempt train": "held host-reboot",
        },
        "The states after every step before the fault are compared, too.": {
            "initial in attempt train": f"exit harmless held host-reboot in-vain live-plain-damage {_RESUMED} "
            f"{_UNNOTICED} slices tsp ttp",
            "initial of rank 0 in attempt train": _TORCHFT,
            "initial of rank 1 in attempt train": _ALONE,
            "initial of rank 2 in attempt train": _TORCHFT,
            "the baseline's initial in attempt train": f"{_ALL} {_TORCHFT}",
        },
        "The harness records a rank's exit status, too; only a restart of all ranks needs the launcher's record.": {
            "child.exit in attempt train": f"arf exit {_RESUMED} {_UNNOTICED} {_TORCHFT} uce",
            "child.exit in attempt resume": _RESUMED,
        },
        "In a launch that must fail the ranks' own exits count.": {
            "launcher.exit in attempt train": f"held host-reboot in-vain live-plain-damage {_RESUMED} pods "
            "slices tolerant ttp",
        },
        "A rank is known by its identification and its agent; this event only adds suspicion.": {
            "launcher.found in attempt train": " ".join(
                base for base in _ALL.split() if base not in {*_ELASTIC.split(), "rsc", "tolerant"}
            ),
            "launcher.found in attempt resume": f"held host-reboot in-vain live-plain-damage {_RESUMED} pods "
            "slices ttp",
        },
        "The steps of the first launch begin with 1.": {
            "train.begin in attempt train": f"held host-reboot in-vain live-plain-damage {_RESUMED} {_UNNOTICED} "
            "slices ttp",
            "train.begin of rank 0 in attempt train": _TORCHFT,
            "train.begin of rank 1 in attempt train": _ALONE,
            "train.begin of rank 2 in attempt train": _TORCHFT,
        },
        "The record of the cluster shows, too, that the job ran in pods.": {
            "ranks.placed": "pods",
        },
        "The last step shows that a rank trained to its end; this event adds that a last save was due after it.": {
            "train.end in attempt train": f"{_ELASTIC} {_UNNOTICED} rsc tre",
            "train.end in attempt resume": f"live-plain-damage {_RESUMED} slices ttp",
        },
        "The number of updates in a step only adds suspicion if the scenario says that it is one.": {
            "the baseline's train.begin in attempt train": f"{_ALL} {_TORCHFT}",
        },
        "The end and the digest of a step show that it was trained.": {
            "the baseline's step.begin in attempt train": f"{_ALL} {_TORCHFT}",
        },
        "The first line of a file: a file without it is refused as a whole.": {
            "writer.start": f"{_ALL} {_TORCHFT}",
            "writer.start in attempt train": f"{_ALL.replace('host-reboot ', '')} {_TORCHFT}",
            "writer.start of rank 0 in attempt train": "host-reboot",
            "writer.start of rank 1 in attempt train": "host-reboot",
            "writer.start in attempt resume": f"held host-reboot in-vain live-plain-damage {_RESUMED} pods "
            "slices tolerant ttp",
            "the baseline's writer.start": f"{_ALL} {_TORCHFT}",
            "the baseline's writer.start in attempt train": f"{_ALL} {_TORCHFT}",
        },
    }
)
"""Kinds of events that good runs of these bases do not need for green, and why."""


def kind_of(event: str, attempt: str | None, rank: int | None = None, *, baseline: bool = False) -> str:
    """Return the name of the events of one kind in one launch, of one rank or of any rank."""
    of_rank, where = "" if rank is None else f" of rank {rank}", "" if attempt is None else f" in attempt {attempt}"
    return f"{OF_BASELINE if baseline else ''}{event}{of_rank}{where}"


def gap_reason(base: str, kinds: Collection[str], allowed: AllowedGaps = ALLOWED_GAPS) -> str:
    """Return why the run of this base may be green without events of these names; empty if it may not."""
    for reason, kinds_allowed in allowed.items():
        if any(base in kinds_allowed.get(kind, "").split() for kind in kinds):
            return reason
    return ""


def stale_gaps(
    taken: Collection[tuple[str, str]], needed: Collection[tuple[str, str]], allowed: AllowedGaps = ALLOWED_GAPS
) -> tuple[str, ...]:
    """Return the allowed gaps that were not needed, in words.

    ``taken`` are all pairs of base and kind of event that were taken away, ``needed`` the pairs without which a run was
    green. An allowed gap is stale if its events were taken away and were missed; or if all of its bases were swept and
    none of them holds such events, for an event that is recorded by chance may be in one base and not in another.
    """
    swept = {base for base, _ in taken}
    lines = []
    for reason, kinds in allowed.items():
        for kind, bases in kinds.items():
            gaps = {(base, kind) for base in bases.split()}
            nowhere = gaps.isdisjoint(taken) and swept.issuperset(bases.split())
            stale = gaps if nowhere else gaps.intersection(taken).difference(needed)
            lines += [f"base {base}: {kind} ({reason})" for base, _ in sorted(stale)]
    return tuple(lines)
