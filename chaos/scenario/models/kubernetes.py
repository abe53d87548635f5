"""The keys of a scenario about the cluster of its job (``cluster.kubernetes``)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from chaos.scenario.models.terms import Model

NAMESPACE = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
NODE_NAME = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"


class Volume(Model):
    """Storage that the pods and this machine see at the same path; the run's directory must lie on it."""

    path: str = Field(pattern=r"^/", description="Its path for the pods and this machine.")
    claim: str | None = Field(None, pattern=NODE_NAME, description="PersistentVolumeClaim of the namespace.")
    host_path: str | None = Field(None, pattern=r"^/", description="Directory of every node.")
    nfs: str | None = Field(None, pattern=r"^[^:\s]+:/", description="NFS export, as server:/path.")

    @model_validator(mode="after")
    def _one_source(self) -> Volume:
        if sum(source is not None for source in (self.claim, self.host_path, self.nfs)) != 1:
            raise ValueError("give exactly one of claim, host_path and nfs")
        return self


class Kubernetes(Model):
    """The cluster and namespace of the job's pods, and their image."""

    namespace: str = Field(pattern=NAMESPACE, description="Namespace; outside it only the nodes below are touched.")
    context: str | None = Field(None, description="Context of the kubeconfig. Default: its current one.")
    workload: Literal["job", "vcjob", "ascendjob"] = Field(
        "job",
        description=(
            "job (a plain Job for each node, for trial), vcjob (Volcano) or ascendjob (MindCluster's Ascend Operator)."
        ),
    )
    image: str | None = Field(
        None, min_length=1, description="Image of the pods, with Python and all requirements of the job."
    )
    manifest: str | None = Field(
        None,
        min_length=1,
        description=(
            "A manifest of your own in place of image, from the scenario's directory. It is checked, "
            "and only labels are added."
        ),
    )
    python: str = Field("/usr/bin/python3", pattern=r"^/", description="Python in the image, by its path.")
    npus: int = Field(0, ge=0, le=64, description="NPUs that each pod asks for.")
    npu_resource: str = Field("huawei.com/Ascend910", description="Name of the NPU resource.")
    node_selector: dict[str, str] = Field({}, description="Labels of the pods' nodes.")
    spread: bool = Field(True, description="At most one pod of the run on a node.")
    volume: Volume | None = Field(None, description="Shared storage for the run's directory.")
    nodes: tuple[str, ...] = Field(
        (), strict=False, description="Nodes that faults may cordon or make NotReady, by name."
    )

    @model_validator(mode="after")
    def _one_description(self) -> Kubernetes:
        if (self.image is None) == (self.manifest is None):
            raise ValueError("give either image, or a manifest of your own")
        if self.manifest is not None:
            fields, pod_keys = type(self).model_fields, ("node_selector", "npu_resource", "npus", "spread")
            written = [name for name in pod_keys if getattr(self, name) != fields[name].default]
            if written:
                raise ValueError(f"{', '.join(written)} is what the manifest says itself")
        return self
