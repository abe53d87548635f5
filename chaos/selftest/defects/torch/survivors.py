"""Defects of the ends of ranks that no fault hit, and of torchrun, when it starts all ranks again or ends the job."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.defects.torch.restart import ended, old_end
from chaos.selftest.files import rewritten
from chaos.selftest.records import Records, chain, recorded

_defect = partial(file_defect, base="live-torch-elastic", check="mechanism")
_of_ended = partial(file_defect, base="live-torch-resume", check="mechanism")


def _failed(error: str = "", base: str = "") -> Mutate:
    """Return a mutation: rank 0 ended with code 1 before the restart, by this error or without a record of it."""

    def change(records: Records) -> None:
        begun = records.all("step.begin", rank=0, pid=old_end(records, 0)["pid"])[-1]
        # In a good run it has an error, or is ended before.
        records.drop([record for record in records if (record["event"], record.get("rank")) == ("error.uncaught", 0)])
        if error:
            records.insert(begun, event="error.uncaught", error=error, base=base)
        records.first("child.exit", child_pid=begun["pid"]).update(signal=None, code=1)
        old_end(records, 0).update(signal=None, code=1)

    return recorded(change)


def _unclosed(content: bytes) -> bytes:
    """Return torchrun's log without the lines by which it ends ranks."""
    return b"".join(line for line in content.splitlines(keepends=True) if b"closing signal" not in line)


DEFECTS = (
    _defect(
        "elastic-survivor-killed-at-once",
        "torchrun kills rank 0 at once, without SIGTERM.",
        ended(0, signal=9, code=None),
        "rank 0: ended by SIGKILL, ",
        "torchrun had not yet come to that",
    ),
    _defect(
        "elastic-survivor-crashes",
        "Rank 0 loses its connection when rank 1 is killed, and ends by a segmentation fault.",
        chain(ended(0, signal=11, code=None), rewritten("logs/train/msrun.log", _unclosed)),
        "rank 0: ended by SIGSEGV, which neither torchrun nor an error of a collective does",
    ),
    _defect(
        "elastic-survivor-crashes-when-stopped",
        "torchrun stops rank 0 by SIGTERM, and it ends by a segmentation fault.",
        ended(0, signal=11, code=None),
        "rank 0: ended by SIGSEGV after torchrun's SIGTERM, and nothing shows why",
        verdict="unknown",
    ),
    _defect(
        "elastic-survivor-fails-silently",
        "Rank 0 ends with exit code 1. No error of it, no signal of torchrun and no log of it are left.",
        chain(
            _failed(),
            rewritten("logs/train/msrun.log", _unclosed),
            rewritten("logs/train/worker_0.before-1.log", lambda _: b""),
        ),
        "rank 0: exit code 1, and no error of it is recorded",
        verdict="unknown",
    ),
    _defect(
        "elastic-survivor-fails-by-its-own-program",
        "Rank 0 fails by a bug of the script when rank 1 is killed.",
        _failed("KeyError: 'labels'", "KeyError"),
        "rank 0: exit code 1, and its error is KeyError: 'labels', which no collective raises",
    ),
    _defect(
        "elastic-survivor-fails-by-another-error",
        "Rank 0 fails by an error of PyTorch that no collective raises.",
        _failed("RuntimeError: shapes cannot be multiplied", "RuntimeError"),
        "its error is RuntimeError: shapes cannot be multiplied: whether a collective raised it is not known",
        verdict="unknown",
    ),
    _of_ended(
        "torch-survivor-crashes",
        "Rank 0 loses its connection when rank 1 is killed, and ends by a segmentation fault.",
        chain(ended(0, signal=11, code=None), rewritten("logs/train/msrun.log", _unclosed)),
        "where torchrun ends the job, no rank that no fault hit crashes",
        "rank 0: ended by SIGSEGV, which neither torchrun nor an error of a collective does",
    ),
    _of_ended(
        "torch-launcher-ends-with-0",
        "torchrun ends the job after the fault with exit code 0, so that no scheduler would start it again.",
        recorded(lambda records: records.first("launcher.exit", attempt="train").update(code=0)),
        "where torchrun ends the job, it ends with an exit status that shows the failure",
        "torchrun: exit code 0",
    ),
    _of_ended(
        "torch-survivor-crashes-when-stopped",
        "torchrun stops rank 0 by SIGTERM, and it ends by a segmentation fault.",
        ended(0, signal=11, code=None),
        "rank 0: ended by SIGSEGV after torchrun's SIGTERM, and nothing shows why",
        verdict="unknown",
    ),
)
