"""Who saves periodic checkpoints: every rank, or at least one rank of each replica group."""

from __future__ import annotations

from chaos.plan.problems import Problems
from chaos.scenario.models.scenario import Scenario


def every_rank_saves(scenario: Scenario) -> bool:
    """Return whether each rank has to save its periodic checkpoints.

    In data parallelism usually rank 0 alone saves. So of a script of the scenario's own, nothing more is known than
    that a resume needs one file of every replica group.
    """
    asked = scenario.job
    return asked.savers == "every rank" if asked.savers is not None else asked.script is None


def check_savers(of_a_group: int | None, of_every_rank: int | None, key: str, problems: Problems) -> None:
    """Note that the step of the resume depends on the ranks that save, which the scenario does not name.

    A rank of a group is lost before it has finished a file that another rank of the group finishes, if both save.

    Args:
        of_a_group: the newest step of which every replica group may have a file.
        of_every_rank: the newest step of which every rank may have a file.
        key: the key that asks for the resume.
        problems: collects the problem.
    """
    if of_a_group == of_every_rank or of_a_group is None:
        return
    older = "an earlier step" if of_every_rank is None else f"step {of_every_rank}"
    steps = [f"{{step: {step + 1}}}" for step in (of_a_group, of_every_rank) if step is not None]
    problems.add(
        key,
        f"ranks are lost while step {of_a_group} is saved, so whether the job goes on from step {of_a_group} or from "
        f"{older} depends on the ranks that save, and on the file that the script takes",
        hint=f"write expect.resume: {' or '.join(steps)}, or let the ranks be lost at step.begin of another step",
    )
