"""The command line called for a cluster, by an account that has the rights which it prints itself and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from chaos.history.reader import History, read_history
from chaos.platforms.kubernetes import rbac
from chaos.platforms.kubernetes.client.api import MERGE, Api, ApiError
from chaos.platforms.kubernetes.names import HELD_ANNOTATION
from chaos.platforms.kubernetes.resources import CONFIGMAP, DNS_CHAOS, IO_CHAOS, JOB, NETWORK_CHAOS, NODE, POD
from tests.cluster.control_plane import ControlPlane

WAIT_SECONDS = 600.0

_GROUPS = {"Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles"}
_GROUPS["ClusterRoleBinding"] = "clusterrolebindings"


@dataclass(frozen=True)
class Cluster:
    """A cluster with pods, and the command line called for it. ``kubeconfig`` is that of the account."""

    plane: ControlPlane
    api: Api
    namespace: str
    volume: Path
    kubeconfig: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Call ``chaos``."""
        temporary = self.volume / "tmp"
        temporary.mkdir(exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-m", "chaos", *arguments],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.volume,
        )

    def run(self, scenario: Path, *arguments: str) -> subprocess.Popen[str]:
        """Give the account the rights that are printed for a scenario, and start a run of it."""
        own = self.settled(scenario)
        printed, said = self.start("kubernetes", "rbac", str(own)).communicate(timeout=WAIT_SECONDS)
        assert printed, said
        for document in yaml.safe_load_all(printed):
            apply(self.api, document)
        return self.start("run", str(own), "--reports", str(self.volume / "reports"), *arguments)

    def settled(self, scenario: Path) -> Path:
        """A copy of a scenario for this namespace, volume and Python."""
        said = {"namespace": self.namespace, "volume": str(self.volume), "python": sys.executable}
        content = yaml.safe_load(scenario.read_text("utf-8"))
        content["variables"] = {**content["variables"], **said}
        path = self.volume / scenario.name
        path.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
        return path

    def path(self) -> Path:
        """The directory of the latest run."""
        return (self.volume / "reports" / "latest").resolve()

    def history(self) -> History:
        """The history of the latest run."""
        return read_history(self.path() / "history")

    def left(self) -> list[str]:
        """What runs have left in the namespace."""
        found = []
        for resource in (POD, JOB, CONFIGMAP, NETWORK_CHAOS, IO_CHAOS, DNS_CHAOS):
            query = {"labelSelector": "chaos-ascend.io/run"}
            items = self.api.request("get", resource.path(self.namespace), query=query)["items"]
            found += [f"{resource.kind} {manifest['metadata']['name']}" for manifest in items]
        for node in self.api.request("get", NODE.path())["items"]:
            held = (node["metadata"].get("annotations") or {}).get(HELD_ANNOTATION)
            state = {"held": held, "cordoned": node["spec"].get("unschedulable")}
            found += [f"Node {node['metadata']['name']} {key}" for key, value in state.items() if value]
        return found


def apply(api: Api, manifest: dict[str, Any]) -> None:
    """Make one object of the printed rights, or give it the rules that are printed now."""
    namespace = manifest["metadata"].get("namespace")
    if manifest["kind"] == "ServiceAccount":
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    else:
        base = "/apis/rbac.authorization.k8s.io/v1"
        path = f"{base}/namespaces/{namespace}/" if namespace else f"{base}/"
        path += _GROUPS[manifest["kind"]]
    try:
        api.request("post", path, manifest)
    except ApiError as error:
        if error.status != 409:
            raise
        api.request("patch", f"{path}/{manifest['metadata']['name']}", manifest, content_type=MERGE)


def account(plane: ControlPlane, api: Api, namespace: str) -> Path:
    """The kubeconfig of the harness's account in a namespace; it has no rights yet."""
    apply(
        api, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": rbac.ACCOUNT, "namespace": namespace}}
    )
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{rbac.ACCOUNT}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    return plane.kubeconfig_for(namespace, api.request("post", path, asked)["status"]["token"])


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of a call; its exit code and what it said."""
    output, errors = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, output + errors
