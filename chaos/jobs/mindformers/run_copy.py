"""The configuration from which a run trains: the user's, with the run's additions. The user's file stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.jobs.mindformers.checkout_paths import from_checkout
from chaos.jobs.mindformers.configuration import Configuration
from chaos.jobs.mindformers.saving import is_new_layout, saved_format
from chaos.jobs.mindformers.version import NEWEST, Release

CALLBACK = {"type": "ChaosAgent", "auto_register": "chaos_agent.ChaosAgent"}
"""The callback that loads the agent; ``REGISTERED`` is the directory in which MindFormers finds it."""

REGISTERED = Path(__file__).parents[2] / "agent" / "callback"

OUTPUT = "output"
"""The job's output, below its working directory; ``checkpoint`` in it is MindFormers' own name."""

CHECKPOINTS = f"{OUTPUT}/checkpoint"

STRATEGIES = f"{OUTPUT}/strategy"
"""Directory where MindFormers saves the distribution of the weights over the ranks."""


def run_copy(
    configuration: Configuration,
    directory: Path,
    *,
    resume: bool,
    checkout: Path | None = None,
    protected: bool = False,
    release: Release = NEWEST,
) -> dict[str, Any]:
    """Return the merged configuration as plain data, for a run in ``directory``.

    The output goes into the directory. With ``resume`` the job goes on from the newest checkpoint there, by the keys of
    the layout in which it saves; ``protected`` says that a mechanism is on, so a rank loads its own file or a
    replica's, by the saved strategies. Relative paths into the checkout are made absolute, since the
    job does not run there.
    Source of the keys: MindFormers, resume training (1.x: ``load_checkpoint``, ``resume_training``,
    ``load_ckpt_format``) and checkpoint configuration (2.x: ``checkpoint.load_path``, ``no_load_optim``); Training High
    Availability, Saving and Restoring Configurations (``src_strategy_path_or_dir``); trainer/trainer.py (1.7:
    ``ckpt_use_legacy_format``).
    """
    data = configuration.plain() if checkout is None else from_checkout(configuration.plain(), checkout)
    data["output_dir"] = str(directory / OUTPUT)
    if not resume:
        return data
    checkpoints = str(directory / CHECKPOINTS)
    loaded: dict[str, Any] = {"load_checkpoint": checkpoints, "resume_training": True}
    if is_new_layout(configuration, release):
        # With `ckpt`, the key's default, the path is read as a file of the legacy layout (MindFormers 2.1).
        loaded["load_ckpt_format"] = "safetensors"
        if release.layout == "callback":
            return {**data, **loaded, "ckpt_use_legacy_format": False}
        if release.layout == "top":
            return {**data, **loaded}
        checkpoint = data.get("checkpoint")
        section = {**(checkpoint if isinstance(checkpoint, dict) else {}), "no_load_optim": False}
        section["load_path"] = section.get("save_path") or checkpoints
        # Where the job's MindFormers is that of another machine it may be 1.8, which passes the section over.
        others = loaded if release.version is None else {"load_ckpt_format": "safetensors"}
        return {**data, **others, "checkpoint": section}
    strategies = {"src_strategy_path_or_dir": str(directory / STRATEGIES)} if protected else {}
    return {
        **data,
        **strategies,
        **loaded,
        "load_ckpt_format": saved_format(configuration, release),
    }
