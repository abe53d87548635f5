"""Real jobs with FSDP2, HSDP and ZeRO-1: a bug in the resume of one rank's shards fails for its own reason."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.kit.shipped import SHIPPED
from tests.rehearsal.kit import Chaos, Done

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here"),
]

LOADED = '        done = state["step"]\n'
BUGS = {
    "stale shard": (
        "torch-fsdp-kill-rank",
        "        state = state_of(model, optimizer, schedule, 0)\n",
        """        if rank == 0:
            import shutil
            shutil.copy(args.directory / "step-4" / "__1_0.distcp", path)
        distributed.barrier()
        state = state_of(model, optimizer, schedule, 0)
""",
        "rank 1",
    ),
    "moments lost": (
        "torch-fsdp-kill-rank",
        LOADED,
        LOADED
        + """        for slots in optimizer.state.values():
            slots["exp_avg"].zero_()
""",
        "optimizer.exp_avg",
    ),
    "other shard on one rank": (
        "torch-fsdp-kill-rank",
        LOADED,
        LOADED
        + """        if rank == 3:
            model[0].weight.to_local().data.add_(1e-3)
""",
        "rank 3",
    ),
    "other shard on one replica": (
        "torch-hsdp-kill-rank",
        LOADED,
        LOADED
        + """        if rank == 3:
            model[0].weight.to_local().data.add_(1e-3)
""",
        "ranks 1 and 3 disagree",
    ),
}


def run(fresh: Chaos, directory: Path, scenario: str, *change: str, at_step: int = 7) -> Done:
    """Run a shipped scenario with its script, changed by replacing a text, and its fault at another step."""
    jobs = directory / "jobs"
    jobs.mkdir()
    for script in (SHIPPED / "torch" / "jobs").glob("train_*.py"):
        shutil.copy(script, jobs)
    path = directory / f"{scenario}.yaml"
    text = (SHIPPED / "torch" / path.name).read_text()
    assert text.count("step: 7") == 1
    path.write_text(text.replace("step: 7", f"step: {at_step}"))
    if change:
        before, after = change
        script = next(script for script in jobs.iterdir() if script.name in text)
        source = script.read_text()
        assert source.count(before) == 1
        script.write_text(source.replace(before, after))
    return fresh.run(path)


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_resume_of_shards_fails_for_its_own_reason(fresh: Chaos, tmp_path: Path, bug: str) -> None:
    scenario, before, after, reason = BUGS[bug]
    done = run(fresh, tmp_path, scenario, before, after, at_step=10)
    assert done.code == 1, done
    failures = [said for said in done.run.result["checks"] if said["verdict"] == "fail"]
    assert any(reason in f"{said['seen']}" for said in failures), done


@pytest.mark.parametrize("shard", ["full", "optimizer"])
def test_shards_that_the_scenario_does_not_name_are_unknown_and_nobody_fails(
    fresh: Chaos, tmp_path: Path, shard: str
) -> None:
    scenario = {"full": "torch-fsdp-kill-rank", "optimizer": "torch-zero-kill-rank"}[shard]
    source = (SHIPPED / "torch" / f"{scenario}.yaml").read_text()
    stated = f"  parallel: {{data_parallel: 4, shard: {shard}}}\n"
    assert source.count(stated) == 1
    for script in (SHIPPED / "torch" / "jobs").glob("train_*.py"):
        (tmp_path / "jobs").mkdir(exist_ok=True)
        shutil.copy(script, tmp_path / "jobs")
    path = tmp_path / "unnamed.yaml"
    path.write_text(source.replace(stated, ""))
    done = fresh.run(path)
    assert done.code == 2, done
    assert f"write cluster.parallel.shard: {shard}" in done.run.result["headline"]["text"]


IN_THE_BACKGROUND = """            pending = checkpoint.async_save(
                state_of(model, optimizer, schedule, step),
                checkpoint_id=unfinished,
                process_group=distributed.new_group(backend="gloo"),
            )
            pending.result()
"""


def test_saves_in_the_background_of_several_ranks_are_good_to_go_on_from(fresh: Chaos, tmp_path: Path) -> None:
    saved = "            checkpoint.save(state_of(model, optimizer, schedule, step), checkpoint_id=unfinished)\n"
    done = run(fresh, tmp_path, "torch-fsdp-kill-rank", saved, IN_THE_BACKGROUND)
    assert done.code == 0, done
    written = done.run.history.select("checkpoint.written", attempt="train")
    assert {event.rank for event in written} == {0, 1, 2, 3}
    assert all(event.data["ok"] and event.data["asynchronous"] for event in written)
