"""Damage to a checkpoint: a job that trains on with it is blamed, and after a SIGKILL of the harness it is put back."""

from __future__ import annotations

import hashlib
import signal

import pytest

from tests.rehearsal.kit import SCENARIOS, Chaos, checks_of, said


def test_a_job_that_goes_on_from_a_flipped_bit_is_a_failure(chaos: Chaos) -> None:
    done = chaos.run(SCENARIOS / "unchecked-flip.yaml")
    assert done.code == 1, done.errors + done.output
    failed = checks_of(done.run.result, "fail")
    assert {check["name"] for check in failed} == {"resume", "loss"}
    assert "rank 0 loaded rank 0's file, the plan shows that of rank 2" in said(failed)
    assert "weights and optimizer state equal the fault-free run's" in said(failed)
    assert done.run.left() == []


@pytest.mark.nightly
def test_a_damaged_checkpoint_is_put_back_after_sigkill(chaos: Chaos) -> None:
    harness = chaos.start_run(SCENARIOS / "unchecked-flip.yaml")
    run = harness.run("unchecked-flip")
    landed = harness.event(run, "fault.landed", fault="flip")
    harness.signal(signal.SIGKILL)
    harness.end()
    (shown,) = landed.data["evidence"]
    file = run.path / "job" / "checkpoints" / shown["file"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == shown["after"]
    (healed,) = chaos.heal().json["runs"]
    assert any("flip-rank-0: put " in text for text in healed["done"]), healed
    assert hashlib.sha256(file.read_bytes()).hexdigest() == shown["before"]
    assert run.left() == []
    assert run.history.first("fault.healed", fault="flip") is not None
    assert not (run.path / "damaged").exists()


@pytest.mark.nightly
def test_mindspore_loads_a_flipped_bit_without_a_word_where_no_checksum_is_asked_for(chaos: Chaos) -> None:
    """``crc_check`` is off by default (MindSpore 2.10): then nothing tells, and the run must not be green."""
    done = chaos.run("damaged-checkpoint.yaml", "--cell", "damage=flip-checkpoint", "--set", "crc=0")
    assert done.code == 1, done.errors + done.output
    failed = checks_of(done.run.result, "fail")
    assert "rank 0 loaded rank 0's file, the plan shows that of rank 1" in said(failed)
    assert "every loss equals the fault-free run's" in said(failed)
