"""Real restarts by torchrun from a damaged checkpoint: passed over, gone on from, and put back after a SIGKILL."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.kit.shipped import SHIPPED, shipped
from tests.rehearsal.kit import Chaos, checks_of, said

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here"),
]

SCENARIO = "torch-elastic-damaged-checkpoint"
UNVERIFIED = "torch-elastic-flip-checkpoint"


@pytest.mark.parametrize("kind", ["flip", "truncate", "partial", "stale", "remove"])
def test_a_script_that_compares_checksums_goes_on_from_the_checkpoint_before(chaos: Chaos, kind: str) -> None:
    done = chaos.run(shipped(SCENARIO), "--cell", f"damage={kind}-checkpoint")
    # A busy machine may leave times of the recovery unknown.
    assert {check["name"] for check in checks_of(done.run.result, "unknown")} <= {"recovery"}, done
    assert checks_of(done.run.result, "fail") == []
    (met,) = done.run.history.select("checkpoint.damage_met")
    (landed,) = done.run.history.select("fault.landed", fault="damage")
    assert (met.data["file"], met.data["content"]) == ("checkpoints/step-8.pt", landed.data["evidence"][0]["after"])
    loads = done.run.history.select("load.end", attempt="train")
    assert {(event.rank, Path(event.data["path"]).name) for event in loads} == {(0, "step-4.pt"), (1, "step-4.pt")}
    assert done.run.left() == []


def test_without_its_metadata_all_ranks_pass_a_directory_over(chaos: Chaos) -> None:
    done = chaos.run(shipped("torch-elastic-fsdp-damaged-metadata"), "--cell", "damage=remove-checkpoint")
    assert {check["name"] for check in checks_of(done.run.result, "unknown")} <= {"recovery"}, done
    assert checks_of(done.run.result, "fail") == []
    (met,) = done.run.history.select("checkpoint.damage_met")
    assert (met.data["file"], met.data["content"]) == ("checkpoints/step-8/.metadata", "absent")
    loads = done.run.history.select("load.end", attempt="train")
    assert {(event.rank, Path(event.data["path"]).name) for event in loads} == {(0, "step-4"), (1, "step-4")}
    assert done.run.left() == []


SCALED = {
    "        loss.backward()\n        optimizer.step()\n": (
        "        scaler.scale(2 * loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n"
    ),
    "    done = 0\n": (
        '    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=4)\n    done = 0\n'
    ),
    '        done = saved["step"]\n': (
        '        scaler.load_state_dict(saved["scaler"])\n        done = saved["step"]\n'
    ),
    '"step": step}\n': '"step": step, "scaler": scaler.state_dict()}\n',
}
"""The shipped script with a scaler whose scale begins so high that it leaves out the first updates."""


def test_the_damaged_file_is_the_planned_one_where_a_scaler_has_left_out_updates(chaos: Chaos, tmp_path: Path) -> None:
    source = (SHIPPED / "torch" / "jobs" / "train_ddp.py").read_text()
    for before, after in SCALED.items():
        assert source.count(before) == 1
        source = source.replace(before, after)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train_ddp.py").write_text(source)
    scenario = Path(shutil.copy(SHIPPED / "torch" / f"{SCENARIO}.yaml", tmp_path))
    done = chaos.run(scenario, "--cell", "damage=flip-checkpoint")
    assert done.code == 0, done.errors + done.output
    history = done.run.history
    assert {event.data["step"] for event in history.select("update.left_out", attempt="train")} & {1, 2, 3, 4}
    (landed,) = history.select("fault.landed", fault="damage")
    assert (landed.data["evidence"][0]["file"], landed.data["evidence"][0]["step"]) == ("checkpoints/step-8.pt", 8)


def test_a_script_that_goes_on_from_a_flipped_bit_is_a_failure(chaos: Chaos) -> None:
    done = chaos.run(shipped(UNVERIFIED))
    assert done.code == 1, done.errors + done.output
    failed = checks_of(done.run.result, "fail")
    assert "resume" in {check["name"] for check in failed}
    assert "loaded job/checkpoints/step-8.pt, which a fault had damaged" in said(failed)
    assert "step counter was 8, not 4" in said(failed)


def test_a_run_without_the_evidence_of_the_damage_is_unknown(chaos: Chaos) -> None:
    done = chaos.run(shipped(UNVERIFIED))
    (landed,) = done.run.history.select("fault.landed", fault="flip")
    path, number = landed.source.rsplit(":", 1)
    file = done.run.path / path
    lines = file.read_text().splitlines()
    lines[int(number) - 1] = json.dumps({**json.loads(lines[int(number) - 1]), "evidence": []})
    file.write_text("\n".join(lines) + "\n")
    judged = chaos.analyze(done.run)
    assert judged.code == 2, judged.errors + judged.output
    assert judged.json["verdict"] == "unknown"


def test_a_checkpoint_damaged_in_a_running_job_is_put_back_after_sigkill(chaos: Chaos) -> None:
    harness = chaos.start_run(shipped(UNVERIFIED))
    run = harness.run(UNVERIFIED)
    landed = harness.event(run, "fault.landed", fault="flip")
    harness.signal(signal.SIGKILL)
    harness.end()
    (shown,) = landed.data["evidence"]
    file = run.path / "job" / shown["file"]
    assert chaos.heal().code == 0
    assert hashlib.sha256(file.read_bytes()).hexdigest() == shown["before"]
    assert run.left() == []
