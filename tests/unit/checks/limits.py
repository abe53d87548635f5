"""The good run turned into one that nothing can save: the SDK ends the job, as the plan says."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun, good_run


def nothing_can_be_saved(run: GoodRun) -> None:
    """Both ranks of a group are gone: the plan says that no mechanism acts and nothing is saved."""
    run.without_resume()
    run.replan(mechanism="none", recoveries=(), checkpoint=None)
    run.saved.clear()
    for event in ("checkpoint.begin", "checkpoint.end"):
        run.drop(event)
    for name in ("save_ckpt", "rename"):
        run.drop("handler.enter", name=name)
        run.drop("handler.exit", name=name)
    run.log = [(at, text) for at, text in run.log if "rename" not in text and "dump" not in text.lower()]
    run.others["job/checkpoints/ttp_saved_checkpoints-step_5_tmp/rank_0/half.ckpt"] = b"half"


def ended_run() -> GoodRun:
    """A whole record of it; the controller is outside the ranks."""
    run = good_run()
    nothing_can_be_saved(run)
    text = "Init controller success, rank:-1, world size:4, is master controller:1, arf:1, zit:0 FrameworkType:1"
    run.log.insert(0, (2.1, text))
    return run
