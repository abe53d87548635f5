"""A rank that is stopped with SIGSTOP lives on in silence: the mechanism acts on that, and the fault is undone."""

from __future__ import annotations

import signal

import pytest

from chaos.history.ledger import Ledger
from tests.rehearsal.kit import Chaos, said

SILENCE_SECONDS = 5.0
"""Age of the last heartbeat at which the stand-in's fast profile takes a rank for lost."""


@pytest.mark.nightly
def test_a_suspended_rank_is_lost_by_its_silence_and_continued_afterwards(chaos: Chaos) -> None:
    done = chaos.run("suspend-rank.yaml")
    assert done.code == 0, said([check for check in done.run.result["checks"] if check["verdict"] != "pass"])
    run, history = done.run, done.run.history
    (fault,) = run.result["faults"]
    assert fault["healed"] and fault["evidence"][0]["signal"] == signal.SIGSTOP
    assert fault["evidence"][0]["barrier"] == {"step": 4, "phase": "step.begin"}
    # Nothing but silence told of it; the last heartbeat may have been late itself. A broken link is seen within 1 s.
    assert run.result["recovery"]["phases"]["detection"] > SILENCE_SECONDS / 2
    (landed,), (healed,), (ended,) = (history.select(name) for name in ("fault.landed", "fault.healed", "run.end"))
    assert landed.mono < healed.mono < ended.mono
    assert healed.data["how"].startswith(f"continued process {fault['evidence'][0]['pid']} ")
    # The undo step was on disk before the fault, and its undoing before that of the job.
    ledger = Ledger(run.path / "undo.jsonl").read()
    assert next(iter(ledger.closed)) == "suspend-rank-1" and ledger.open == []
    (exited,) = history.select("rank.exit", attempt="train", rank=1)
    assert exited.mono > healed.mono
    assert run.left() == []
