"""``public-fault``: tells MindCluster of a fault of a node's NPUs, as an outside monitor would; no NPU is touched.

A ConfigMap of the run sends ClusterD *occur*, and *recover* at the end. Without ``devices`` it is about NPU 0. The
code's level decides MindCluster's reaction, and the plan expects none: use a code of level NotHandle or SubHealth, or
write the reaction in ``expect``.

On Ascend: a fault reported by CCAE or pingmesh.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.cluster.cluster_condition import ClusterCondition
from chaos.faults.cluster.in_cluster import NEEDS_CLUSTER, RECOVER_PUBLIC_FAULT, host_of, pod_node
from chaos.faults.condition import LASTS
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.rules.hazard import Hazard
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.kubernetes.client.asking import answer_if_any, ask_with_retries
from chaos.platforms.kubernetes.fault_message import RIGHTS, is_listed, is_sent, send
from chaos.platforms.kubernetes.public_fault import InvalidPublicFault, PublicFault, fault_id, public_fault
from chaos.platforms.kubernetes.run_client import RunClient

DEFAULT_CODE = "010001001"
"""A code of level SubHealth in ClusterD's shipped configuration: it is reported, and moves no job by itself."""


def described(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fault's fields in a message, with defaults for those that the scenario leaves open."""
    devices = parameters.get("devices", [0])
    return {
        "code": str(parameters.get("code", DEFAULT_CODE)),
        "type": str(parameters.get("type", "NPU")),
        "devices": devices if isinstance(devices, list) else [],
        "sender": str(parameters.get("sender", "fd-online")),
    }


class PublicFaultKind(ClusterCondition):
    """Sends ClusterD the message *occur*, and *recover* at the end."""

    name = "public-fault"
    surface = "cluster"
    needs_from_start = NEEDS_CLUSTER
    rights = RIGHTS
    parameters = MappingProxyType(
        {
            "code": Parameter("fault code, 9 digits, known to ClusterD", text=True, default=DEFAULT_CODE),
            "type": Parameter("what is at fault", words=("NPU", "Node", "Network", "Storage"), default="NPU"),
            "devices": Parameter("physical numbers of the NPUs", least=0, most=31, several=True),
            "sender": Parameter("name of the sender, known to ClusterD", text=True, default="fd-online"),
            **LASTS,
        }
    )
    hazard = Hazard(
        "high",
        "makes the cluster take NPUs of a node for faulty, and perhaps keep jobs off them",
        "a recovery message, which ClusterD must heed",
        device=False,
    )

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Tell ClusterD that the fault has recovered."""
        return [
            UndoStep(
                f"{fault}-{host}",
                fault,
                RECOVER_PUBLIC_FAULT,
                {**victim.place, "fault": fault, "message": described(victim.parameters)},
                f"tell ClusterD that fault {fault} of node {host} has recovered",
            )
            for host, victim in sorted({host_of(victim): victim for victim in victims}.items())
        ]

    def inject(self, job: Job, victim: Victim) -> None:
        """Check the message as ClusterD would, and send it in a ConfigMap of the run, once for each node."""
        run_client, host = pod_node(job, victim).run_client, host_of(victim)
        fields = described(victim.parameters)
        now = SYSTEM_CLOCK.wall() // 1_000_000
        try:
            message = public_fault(
                run_client.run,
                victim.fault,
                node=host,
                devices=tuple(fields["devices"]),
                code=fields["code"],
                kind=fields["type"],
                began_ms=now,
                now_ms=now,
                assertion="occur",
                sender=fields["sender"],
            )
            ask_with_retries(lambda: _send_once(run_client, victim.fault, host, message))
        except InvalidPublicFault as error:
            raise FaultMissed(str(error)) from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the fault's entry in ClusterD's statistics, by its id and node."""
        return answer_if_any(lambda: self.shown(job, victim))

    def shown(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the API's record of the fault. Raises ApiError."""
        run_client, host = pod_node(job, victim).run_client, host_of(victim)
        identity = fault_id(run_client.run, victim.fault)
        if not is_listed(run_client.api, host, identity):
            return None
        return {"signal": None, "host": host, "fault id": identity}

    def over(self, job: Job, victim: Victim) -> bool:
        """Return whether ClusterD no longer lists the fault."""
        run_client = pod_node(job, victim).run_client
        return not is_listed(run_client.api, host_of(victim), fault_id(run_client.run, victim.fault))


def _send_once(run_client: RunClient, fault: str, host: str, message: PublicFault) -> None:
    """Send the message unless it is there, also by a request that got no answer."""
    if not is_sent(run_client, fault, host):
        send(run_client, fault, host, message)


KIND = PublicFaultKind()
"""The kind."""
