"""The job kind ``mindspeed``: a script of MindSpeed-LLM or Megatron under torchrun, on Ascend devices.

Its arguments say what is trained and which mechanisms are on, so the scenario need not. It is planned and not run: no
run of it on hardware has shown whether the rules that judge jobs of MindSpore hold for it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.jobs.kind import Configured, Examined
from chaos.jobs.mindspeed.reader import complete, examine
from chaos.jobs.torch.job import TorchJob
from chaos.plan.recovery.vendor import Vendor
from chaos.scenario.completion import Completion, Unfinished

if TYPE_CHECKING:
    from chaos.scenario.load import Cell


class MindSpeedJob(TorchJob, Configured):
    """Starts the scenario's script with its arguments, as the kind for PyTorch does."""

    name = "mindspeed"
    plans_only = (
        "no run of MindSpeed-LLM on hardware has shown that its judgement is right; chaos plan says what should "
        "happen, and chaos watch and chaos inject work on a running job"
    )
    traits = replace(
        TorchJob.traits,
        checkpoint_form="megatron",
        devices=frozenset({"Ascend"}),
        # Megatron's loop calls autograd itself, so no backward run of it is seen.
        observable=TorchJob.traits.observable - {"allreduce.enter"},
        alters=frozenset(),
        spikes=frozenset(),
        # TaskD starts ranks again in torchrun's place, where the job runs on a cluster.
        lacks={key: why for key, why in TorchJob.traits.lacks.items() if key != "job.agent"},
        vendor=Vendor(
            framework="MindSpeed-LLM",
            document="MindCluster, MindIO TFT with MindSpeed-LLM",
            losses="MindCluster, MindIO TFT, constraints",
            cleans_before_saving=True,
            exit_code=2,
        ),
    )

    def completed(self, cell: Unfinished) -> Completion:
        """Return the arguments' values of keys that the scenario may leave out."""
        return complete(cell)

    def examined(self, cell: Cell, scenario_file: Path) -> Examined:
        """Return the meaning of the arguments for the plan."""
        return examine(cell, scenario_file, self.traits)


KIND = MindSpeedJob()
