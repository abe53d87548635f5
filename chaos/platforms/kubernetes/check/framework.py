"""Part of the check of a manifest: the frameworks of AscendJobs whose recovery is known here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.documents import Placed

WORKER = "Worker"


@dataclass(frozen=True)
class Framework:
    """A framework: its name for readers, and the replica type that leads its job, of which there is one.

    ``leads_alone`` says why the leader may be missing only where the job has one NPU; None where it may never be.
    ``leader_trains`` says that ranks run in the leader's pod, too.
    """

    spoken: str
    leader: str
    leader_trains: bool
    leads_alone: str | None = None

    @property
    def types(self) -> tuple[str, str]:
        """The replica types that Ascend Operator takes."""
        return self.leader, WORKER


FRAMEWORKS: Mapping[str, Framework] = MappingProxyType(
    {
        names.MINDSPORE: Framework(
            "MindSpore",
            "Scheduler",
            leader_trains=False,
            leads_alone="MindSpore's ranks find each other through it, and Ascend Operator refuses more than one NPU "
            "without it",
        ),
        names.PYTORCH: Framework("PyTorch", "Master", leader_trains=True),
    }
)
"""Framework by the label of the job. Ascend Operator also knows TensorFlow, whose jobs it recovers by no strategy."""


def framework_of(job: Placed) -> Framework | None:
    """Return the framework that the job's label names; None where there is no label, or an unknown framework."""
    label = job.at("metadata", "labels", names.FRAMEWORK)
    return FRAMEWORKS.get(str(label.data)) if label is not None else None
