"""Defects of leftovers in the job's directories, and of a save that only the SDK's log mentions."""

from __future__ import annotations

from pathlib import Path

from chaos.selftest.defect import Defect, Mutate
from chaos.selftest.records import Records, recorded

_CORE = b"\x7fELF\x02\x01\x01" + bytes(9) + (4).to_bytes(2, "little") + bytes(46)
"""The head of a dump, as Linux writes it."""


def _left(name: str, content: bytes) -> Mutate:
    def mutate(run_dir: Path) -> None:
        (run_dir / "job" / name).write_bytes(content)

    return mutate


def _lock_left(run_dir: Path) -> None:
    ended = Records(run_dir).last("rank.exit", attempt="resume", rank=1)
    _left("checkpoints/latest.lock", f"{ended['pid']}\n".encode())(run_dir)


def _nobody_renamed(records: Records) -> None:
    records.drop([record for record in records.all(name="rename") if record["event"].startswith("handler.")])


DEFECTS = (
    Defect(
        name="dump-left",
        what="A process has left a memory dump in the job's directory, and no fault ended a process with a dump.",
        layer="files",
        base="ttp",
        check="hygiene",
        reason=("a process has left a memory dump in job/core.77",),
        mutate=_left("core.77", _CORE),
    ),
    Defect(
        name="lock-left",
        what="A rank has ended in order and left a lock with its process id.",
        layer="files",
        base="ttp",
        check="hygiene",
        reason=("job/checkpoints/latest.lock holds the id of process", "which ended normally"),
        mutate=_lock_left,
    ),
    Defect(
        name="partial-file-left",
        what="Half a file is left under the name of an unfinished file.",
        layer="files",
        base="ttp",
        check="hygiene",
        reason=("unfinished files: job/checkpoints/mnist-1_9.ckpt.partial",),
        mutate=_left("checkpoints/mnist-1_9.ckpt.partial", b"half"),
    ),
    Defect(
        name="renamed-by-a-line-alone",
        what="The SDK's log mentions the rename, and no rank has recorded the call for it.",
        layer="files",
        base="ttp",
        check="mechanism",
        reason=("shows the rename, but no rank has recorded a call of its handler rename",),
        mutate=recorded(_nobody_renamed),
    ),
)
