"""A real control plane for tests: etcd, API server and controllers of Kubernetes, on loopback ports, from a directory.

The programs are looked for in the directory that CHAOS_KUBERNETES_BIN names, else on the PATH. Nothing is installed or
fetched here.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.machine.leases import Leases
from chaos.platforms.kubernetes.client.api import Api, connect

_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}],
}

VARIABLE = "CHAOS_KUBERNETES_BIN"
PROGRAMS = ("etcd", "kube-apiserver")
CONTROLLERS = "kube-controller-manager"
_READY_SECONDS = 120.0


def missing(*programs: str) -> str | None:
    """Why a control plane with these programs cannot be started here; None where one can."""
    absent = [name for name in programs or PROGRAMS if _program(name) is None]
    if absent:
        where = os.environ.get(VARIABLE)
        return f"no {', '.join(absent)} {f'in {where}' if where else f'on the PATH, and {VARIABLE} names no directory'}"
    return None


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get(VARIABLE) or None)


@dataclass(frozen=True)
class ControlPlane:
    """A control plane that answers. ``kubeconfig`` is its administrator's."""

    directory: Path
    server: str
    authority: Path
    kubeconfig: Path

    def api(self) -> Api:
        """The API, as its administrator."""
        return connect(None, self.kubeconfig)

    def done_by(self, namespace: str, account: str) -> set[tuple[str, str, str]]:
        """What an account has done, by the API server's own record: verb, resource with its part, namespace."""
        user = f"system:serviceaccount:{namespace}:{account}"
        found = set()
        for line in (self.directory / "audit.log").read_text("utf-8").splitlines():
            one = json.loads(line)
            allowed = one["annotations"].get("authorization.k8s.io/decision") == "allow"
            if allowed and one["user"]["username"] == user and (about := one.get("objectRef")) is not None:
                part = f"/{about['subresource']}" if about.get("subresource") else ""
                found.add((one["verb"], about["resource"] + part, about.get("namespace", "")))
        return found

    def kubeconfig_for(self, name: str, token: str) -> Path:
        """A kubeconfig for another identity."""
        path = self.directory / f"{name}.kubeconfig"
        _write_kubeconfig(path, self.server, self.authority, token)
        return path


@contextlib.contextmanager
def control_plane(directory: Path) -> Iterator[ControlPlane]:
    """Start one in ``directory`` and end it; what its programs say is beside it in ``*.log``."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = directory / "account.key"
    key.write_bytes(
        rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    key.chmod(0o600)
    token = secrets.token_hex(16)
    (directory / "audit.yaml").write_text(yaml.safe_dump(_AUDIT), "utf-8")
    tokens = directory / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(f'{token},admin,admin,"system:masters"\n', "utf-8")
    with Leases().take_ports(4) as ports, contextlib.ExitStack() as running:
        client, peer, secure, controllers = ports.numbers
        server = f"https://127.0.0.1:{secure}"
        made = ControlPlane(directory, server, directory / "certificates" / "apiserver.crt", directory / "kubeconfig")
        running.enter_context(
            _running(
                directory,
                "etcd",
                f"--data-dir={directory / 'etcd'}",
                f"--listen-client-urls=http://127.0.0.1:{client}",
                f"--advertise-client-urls=http://127.0.0.1:{client}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-cluster=default=http://127.0.0.1:{peer}",
            )
        )
        _await(f"http://127.0.0.1:{client}/health", lambda text: '"true"' in text)
        server_runs = running.enter_context(
            _running(
                directory,
                "kube-apiserver",
                f"--etcd-servers=http://127.0.0.1:{client}",
                "--bind-address=127.0.0.1",
                f"--secure-port={secure}",
                f"--cert-dir={directory / 'certificates'}",
                f"--token-auth-file={tokens}",
                "--authorization-mode=RBAC",
                f"--audit-policy-file={directory / 'audit.yaml'}",
                f"--audit-log-path={directory / 'audit.log'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-cluster-ip-range=10.96.0.0/24",
                "--kubelet-preferred-address-types=InternalIP",
                "--watch-cache=true",
            )
        )
        _until(made.authority.exists, server_runs)
        _write_kubeconfig(made.kubeconfig, server, made.authority, token)
        api = made.api()
        _until(lambda: bool(api.request("get", "/api/v1/namespaces/default")), server_runs)
        if missing(CONTROLLERS) is None:
            running.enter_context(
                _running(
                    directory,
                    CONTROLLERS,
                    f"--kubeconfig={made.kubeconfig}",
                    f"--service-account-private-key-file={key}",
                    "--use-service-account-credentials=false",
                    "--leader-elect=false",
                    f"--secure-port={controllers}",
                    "--bind-address=127.0.0.1",
                    "--port=0",
                    f"--cert-dir={directory / 'controller-certificates'}",
                    "--node-monitor-grace-period=8s",
                    "--node-monitor-period=1s",
                    "--pod-eviction-timeout=5s",
                )
            )
        yield made


@contextlib.contextmanager
def _running(directory: Path, name: str, *arguments: str) -> Iterator[Callable[[], None]]:
    """A program that runs; what is given back raises RuntimeError, with its last words, when it does no more."""
    program = _program(name)
    assert program is not None
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd=directory)

    def runs() -> None:
        if process.poll() is not None:
            said = (directory / f"{name}.log").read_text("utf-8", "replace")[-2000:]
            raise RuntimeError(f"{name} ended with {process.returncode}: {said}")

    try:
        yield runs
        runs()
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _write_kubeconfig(path: Path, server: str, authority: Path, token: str) -> None:
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content), "utf-8")


def _await(url: str, reached: Callable[[str], bool]) -> None:
    def asked() -> bool:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return reached(answer.read().decode())

    _until(asked)


def _until(condition: Callable[[], bool], runs: Callable[[], None] = lambda: None) -> None:
    """Wait for a condition, as long as the program does that it is about."""
    why = ["not yet"]

    def reached() -> bool:
        runs()
        try:
            return condition()
        except Exception as error:  # whatever is not up yet answers in its own way
            why[0] = str(error)
            return False

    wait_for("control plane", reached, seconds=_READY_SECONDS, clock=SYSTEM_CLOCK, detail=lambda: why[0])
