"""Steps sunk to the device together: callbacks, and so the agent, see only the last step of each sink.

Source: MindSpore 2.10, ``Model._train_dataset_sink_process`` (``cur_step_num += sink_size``), and ``CheckpointConfig``:
the interval of checkpoints should be a multiple of the loop size.
"""

from __future__ import annotations

from chaos.plan.problems import Problems
from chaos.plan.triggers import parts
from chaos.scenario.models.scenario import Scenario


def check_sinking(scenario: Scenario, problems: Problems) -> None:
    """Note step numbers that are no whole number of sinks: such a step is never seen, and nothing is saved there."""
    job = scenario.job
    size = job.sink_size
    if size == 1:
        return
    why = f"{size} steps are sunk to the device at once ({problems.where('job.sink_size')})"
    reason = f"{why}, and callbacks see only the last of them (MindSpore, Model.train)"

    def note(path: str, steps: int, message: str) -> None:
        if steps % size:
            hint = f"use a multiple of {size}, or job.sink_size: 1"
            problems.add(path, f"{message}: {reason}", text=str(steps), hint=hint)

    note("job.steps", job.steps, f"{job.steps} steps are no whole number of sinks, so the last ones are not trained")
    if (interval := job.checkpoint_interval) is not None:
        note(
            "job.checkpoint_interval",
            interval,
            f"checkpoints are not saved every {interval} steps, but at the end of a sink",
        )
    for index, fault in enumerate(scenario.faults):
        for path, trigger in parts(fault.trigger, f"faults.{index}.trigger"):
            if trigger.step is not None:
                note(f"{path}.step", trigger.step, f"step {trigger.step} never comes by itself")
