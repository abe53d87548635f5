"""The configuration that a run trains from: the user's, with what the run adds. The user's own file stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.jobs.mindformers.checkout_paths import from_checkout
from chaos.jobs.mindformers.configuration import Configuration, callbacks

CALLBACK = {"type": "ChaosAgent", "auto_register": "chaos_agent.ChaosAgent"}
"""The callback that loads the agent; ``REGISTERED`` is the directory that MindFormers finds it in."""

REGISTERED = Path(__file__).parents[2] / "agent" / "callback"

OUTPUT = "output"
"""Where the job writes, below its working directory; ``checkpoint`` in it is MindFormers' own name."""

CHECKPOINTS = f"{OUTPUT}/checkpoint"

STRATEGIES = f"{OUTPUT}/strategy"
"""Where MindFormers saves how the weights are spread over the ranks."""


def run_copy(
    configuration: Configuration,
    directory: Path,
    *,
    resume: bool,
    checkout: Path | None = None,
    protected: bool = False,
) -> dict[str, Any]:
    """The merged configuration as plain data, for a run in ``directory``.

    The output goes into the directory. With ``resume`` the job goes on from the newest checkpoint there, by the keys of
    the layout that it saves in; ``protected`` says that a mechanism is on with which it takes its own file or that of a
    replica, by the strategies that it has saved. Relative paths of what is in the checkout are made absolute, since the
    job does not run there.
    Source of the keys: MindFormers, resume training (1.x: ``load_checkpoint``, ``resume_training``,
    ``load_ckpt_format``) and checkpoint configuration (2.x: ``checkpoint.load_path``, ``no_load_optim``); Training High
    Availability, Saving and Restoring Configurations (``src_strategy_path_or_dir``).
    """
    data = configuration.plain() if checkout is None else from_checkout(configuration.plain(), checkout)
    data["output_dir"] = str(directory / OUTPUT)
    if not resume:
        return data
    checkpoints = str(directory / CHECKPOINTS)
    if is_new_layout(configuration):
        own = data.get("checkpoint")
        data["checkpoint"] = {**(own if isinstance(own, dict) else {}), "no_load_optim": False}
        data["checkpoint"]["load_path"] = data["checkpoint"].get("save_path") or checkpoints
        # With `ckpt`, the key's default, the path is read as a file of the legacy layout (MindFormers 2.1).
        return {**data, "load_ckpt_format": "safetensors"}
    strategies = {"src_strategy_path_or_dir": str(directory / STRATEGIES)} if protected else {}
    return {
        **data,
        **strategies,
        "load_checkpoint": checkpoints,
        "resume_training": True,
        "load_ckpt_format": saved_format(configuration),
    }


def is_new_layout(configuration: Configuration) -> bool:
    """Whether the job saves ``iteration_N`` directories: with the key ``checkpoint``, or without the legacy format."""
    own = configuration.get("checkpoint")
    if own is not None and own.data:
        return True
    legacy = configuration.get("use_legacy_format")
    return legacy is not None and legacy.data is False


def saved_format(configuration: Configuration) -> str:
    """``ckpt`` or ``safetensors``: models of the new kind (``use_legacy: False``) are saved as the latter in any case
    (MindFormers 2.1, base_trainer.py)."""
    legacy = configuration.get("use_legacy")
    if legacy is not None and legacy.data is False:
        return "safetensors"
    for one in callbacks(configuration):
        kind, form = one.data.get("type"), one.data.get("checkpoint_format")
        if kind is not None and kind.data == "CheckpointMonitor" and form is not None:
            return str(form.data)
    return "ckpt"
