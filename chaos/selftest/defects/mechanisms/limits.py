"""Defects of ends: the SDK has no part in an end that it should decide, or decides it too soon."""

from __future__ import annotations

import re

from chaos.selftest.defect import Defect, ExpectedVerdict, Mutate
from chaos.selftest.files import SDK_LOG, removed, rewritten
from chaos.selftest.records import Records, chain, recorded

SPARED = (0, 2, 3)


def _defect(
    name: str,
    what: str,
    base: str,
    mutate: Mutate,
    *reason: str,
    check: str = "mechanism",
    verdict: ExpectedVerdict = "fail",
) -> Defect:
    return Defect(name, what, "files", base, check, reason, verdict, mutate)


def _exit_not_called(*ranks: int) -> Mutate:
    """Return a mutation: handler ``exit``, which never returns, was not called on these ranks."""

    def change(records: Records) -> None:
        for rank in ranks:
            records.drop(records.all("handler.enter", name="exit", rank=rank))

    return recorded(change)


def _unsaid(text: str) -> Mutate:
    """Return a mutation: the SDK's log has no line with this text."""
    pattern = re.compile(rb"^.*" + re.escape(text.encode()) + rb".*\n", re.MULTILINE)
    return rewritten(SDK_LOG, lambda content: pattern.sub(b"", content))


def _given_up_at_once(records: Records) -> None:
    """Move all events behind the wait for a new process to the moment when the last rank was clean."""
    clean = max(record["mono"] for record in records.all("handler.exit", name="clean"))
    save = records.first("handler.enter", name="save_ckpt")["mono"]
    records.delay(save, clean + 1_000_000 - save)


def _reads_at_once(records: Records) -> None:
    """Let rank 0 read a checkpoint while it is paused."""
    paused = records.last("pause.enter", rank=0)
    path = "checkpoints/rank_0/mnist-1_4.ckpt"
    begun = records.insert(paused, event="load.begin", path=path)
    records.insert(begun, event="load.end", path=path, parameters=21)


DEFECTS = (
    _defect(
        "exit-silent-sdk",
        "The SDK called no rank and wrote nothing: the ranks ended by other means.",
        "exit",
        chain(_exit_not_called(*SPARED), removed("logs/train/ttp")),
        "the SDK itself ends the job",
        "neither a call of handler exit nor a log of the SDK",
        verdict="unknown",
    ),
    _defect(
        "exit-rank-not-told",
        "The SDK did not tell rank 2 to exit.",
        "exit",
        _exit_not_called(2),
        "no record shows that rank 2 was told to exit",
        verdict="unknown",
    ),
    _defect(
        "exit-agent-not-asked",
        "The SDK did not offer its strategies to the agent.",
        "exit",
        _unsaid("do action report_strategies"),
        "the cluster's agent is asked, and chooses exit",
        "shows no strategy that was offered",
        verdict="unknown",
    ),
    _defect(
        "exit-dump-not-offered",
        "The SDK did not offer to save, though it could have.",
        "exit",
        rewritten(SDK_LOG, lambda content: content.replace(b"'dump', ", b"")),
        "the SDK has not offered dump",
    ),
    _defect(
        "exit-controller-saves",
        "The controller went to save, though the agent chose to exit.",
        "exit",
        rewritten(SDK_LOG, lambda content: content.replace(b"STATE_OP_EXIT", b"STATE_OP_DUMP")),
        "its controller went to save an end-of-life checkpoint",
    ),
    _defect(
        "arf-replacement-given-up-at-once",
        "The SDK did not wait for the new process.",
        "in-vain",
        recorded(_given_up_at_once),
        "ARF is tried, no new process comes",
        "it was given up after 0.0",
    ),
    _defect(
        "tsp-reads-a-checkpoint",
        "Rank 0 read a checkpoint while it was paused.",
        "tsp",
        recorded(_reads_at_once),
        "after the first fault a checkpoint is read only",
        "rank 0 read checkpoints/rank_0/mnist-1_4.ckpt",
        check="resume",
    ),
)
