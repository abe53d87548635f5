"""A stand-in for scheduler and kubelet: pods are processes of this host, each pod in a PID namespace of its own.

When a pod's first process ends, the kernel kills what is left in it, as in a container. There is no image, network or
volume of its own: a pod sees this host's files and network, and has an address of the loopback network.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from chaos.platforms.kubernetes.client.api import STRATEGIC, Api, ApiError
from chaos.platforms.kubernetes.client.watching import Change, Gap, Watcher, watch
from chaos.platforms.kubernetes.names import RUN_LABEL
from tests.cluster.ws_frames import Frames, accept_key

ADDRESS = "127.0.0.1"
_PODS = "/api/v1/pods"


def missing() -> str | None:
    """Why no pods can run here; None where they can."""
    tried = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, check=False)
    if tried.returncode:
        return f"no PID namespaces here: {tried.stderr.decode().strip()}"
    return None if shutil.which("nsenter") else "nsenter is missing"


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class _Running:
    """A pod that runs: its outer process, and the first process of its namespace."""

    pod: dict[str, Any]
    process: subprocess.Popen[bytes]
    first: int
    address: str
    ending: bool = False
    ended: threading.Event = field(default_factory=threading.Event)


class Kubelet:
    """Runs the pods of the nodes ``names`` of a cluster."""

    def __init__(self, api: Api, names: tuple[str, ...], directory: Path) -> None:
        self._api = api
        self.nodes = names
        self._pods: dict[str, _Running] = {}
        self._started = 0
        self._lock = threading.RLock()
        self._server = self._serve(directory)
        for name in names:
            api.request(
                "post", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
            )
            self.report(name)
        self._watcher = Watcher("kubelet", lambda stopped: watch(api, _PODS, "", stopped), self._take)
        self._stopped = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, daemon=True)
        self._heartbeat.start()
        self.silent: set[str] = set()

    # Nodes.

    def report(self, name: str) -> None:
        """Say that a node is there, and where its kubelet listens."""
        status = {
            "capacity": {"pods": "20", "cpu": "8", "memory": "16Gi"},
            "allocatable": {"pods": "20", "cpu": "8", "memory": "16Gi"},
            "addresses": [{"type": "InternalIP", "address": ADDRESS}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_port}},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "stand-in",
                    "lastHeartbeatTime": _now(),
                    "lastTransitionTime": _now(),
                }
            ],
        }
        self._api.request("patch", f"/api/v1/nodes/{name}/status", {"status": status}, content_type=STRATEGIC)

    def _beat(self) -> None:
        while not self._stopped.wait(2.0):
            for name in self.nodes:
                if name not in self.silent:
                    with contextlib.suppress(ApiError):
                        self.report(name)

    # Pods.

    def _take(self, change: Change | Gap) -> None:
        if isinstance(change, Gap):
            return
        pod = change.object
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        with self._lock:
            running = self._pods.get(uid)
            if change.kind == "DELETED":
                if running is not None:
                    self._end(running, 0.0)
            elif pod["metadata"].get("deletionTimestamp"):
                if running is None:
                    self._forget(pod)
                elif not running.ending:
                    running.ending = True
                    grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
                    threading.Thread(target=self._end_and_forget, args=(running, grace), daemon=True).start()
            elif node is None:
                self._schedule(pod)
            elif running is None and node in self.nodes and (pod.get("status") or {}).get("phase") == "Pending":
                self._start(pod)

    def _schedule(self, pod: dict[str, Any]) -> None:
        """Bind a pod to the node with the fewest; those of one run to different ones, where they say so."""
        labels = pod["metadata"].get("labels") or {}
        apart = "affinity" in pod["spec"]
        listed = self._api.request("get", _PODS)["items"]
        placed = [one for one in listed if one["spec"].get("nodeName")]
        taken = {
            one["spec"]["nodeName"]
            for one in placed
            if apart and (one["metadata"].get("labels") or {}).get(RUN_LABEL) == labels.get(RUN_LABEL)
        }
        free = []
        for name in self.nodes:
            if name in taken:
                continue
            node = self._api.request("get", f"/api/v1/nodes/{name}")
            taints = [
                taint for taint in node["spec"].get("taints") or () if taint["effect"] in ("NoSchedule", "NoExecute")
            ]
            if not node["spec"].get("unschedulable") and not taints:
                free.append((sum(one["spec"]["nodeName"] == name for one in placed), name))
        if not free:
            threading.Timer(1.0, self._again, [pod["metadata"]["namespace"], pod["metadata"]["name"]]).start()
            return
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
        body = {"metadata": {"name": metadata["name"]}, "target": {"kind": "Node", "name": min(free)[1]}}
        with contextlib.suppress(ApiError):
            self._api.request("post", path, {"apiVersion": "v1", "kind": "Binding", **body})

    def _again(self, namespace: str, name: str) -> None:
        with contextlib.suppress(ApiError):
            found = self._api.request("get", f"/api/v1/namespaces/{namespace}/pods/{name}")
            if not self._stopped.is_set() and found["spec"].get("nodeName") is None:
                self._take(Change("MODIFIED", found))

    def _start(self, pod: dict[str, Any]) -> None:
        container = pod["spec"]["containers"][0]
        self._started += 1
        address = f"127.{1 + self._started // 250}.0.{1 + self._started % 250}"
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "POD_IP": address}
        environment |= {one["name"]: one["value"] for one in container.get("env") or () if "value" in one}
        argv = [*(container.get("command") or ["sleep", "1000"]), *(container.get("args") or ())]
        process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--", *argv],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        running = _Running(pod, process, _child(process.pid), address)
        self._pods[pod["metadata"]["uid"]] = running
        self._tell(running, "Running", {"running": {"startedAt": _now()}})
        threading.Thread(target=self._follow, args=(running,), daemon=True).start()

    def _follow(self, running: _Running) -> None:
        running.process.wait()
        running.ended.set()
        with self._lock:
            if not running.ending:
                self._tell_end(running)

    def _tell_end(self, running: _Running) -> None:
        status = running.process.wait()
        code = 128 - status if status < 0 else status
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": _now()}
        self._tell(running, "Failed" if code else "Succeeded", {"terminated": ended})

    def _end(self, running: _Running, grace: float) -> None:
        if grace > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.first, signal.SIGTERM)
            running.ended.wait(grace)
        running.process.kill()  # and with it, by --kill-child, the first process and all others
        running.ended.wait(30)

    def _end_and_forget(self, running: _Running, grace: float) -> None:
        """A kubelet writes how the containers ended into the status, and only then lets the object go."""
        self._end(running, grace)
        self._tell_end(running)
        self._forget(running.pod)
        with self._lock:
            self._pods.pop(running.pod["metadata"]["uid"], None)

    def _forget(self, pod: dict[str, Any]) -> None:
        """Confirm that a pod has ended: only then its object goes."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        with contextlib.suppress(ApiError):
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            self._api.request("delete", path, body)

    def _tell(self, running: _Running, phase: str, state: dict[str, Any]) -> None:
        pod = running.pod
        container = pod["spec"]["containers"][0]
        status = {
            "phase": phase,
            "podIP": running.address,
            "startTime": _now(),
            "conditions": [{"type": "Ready", "status": "True" if phase == "Running" else "False"}],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "ready": phase == "Running",
                    "restartCount": 0,
                    "image": container["image"],
                    "imageID": "",
                    "state": state,
                }
            ],
        }
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        with contextlib.suppress(ApiError):
            self._api.request("patch", path, {"status": status}, content_type=STRATEGIC)

    # Exec.

    def _serve(self, directory: Path) -> ThreadingHTTPServer:
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                kubelet._exec(self)

            do_POST = do_GET

        server = ThreadingHTTPServer((ADDRESS, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*_certificate(directory))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def _exec(self, handler: BaseHTTPRequestHandler) -> None:
        split = urlsplit(handler.path)
        _, what, namespace, name, *_ = split.path.split("/")
        with self._lock:
            found = [
                one
                for one in self._pods.values()
                if (one.pod["metadata"]["namespace"], one.pod["metadata"]["name"]) == (namespace, name)
                and not one.ended.is_set()
            ]
        if what != "exec" or not found:
            handler.send_error(404)
            return
        argv = parse_qs(split.query)["command"]
        handler.send_response(101)
        handler.send_header("Upgrade", "websocket")
        handler.send_header("Connection", "Upgrade")
        handler.send_header("Sec-WebSocket-Accept", accept_key(handler.headers["Sec-WebSocket-Key"]))
        handler.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
        handler.end_headers()
        handler.close_connection = True
        _stream(found[0], argv, Frames(handler.connection))

    def close(self) -> None:
        """End all pods, and the nodes."""
        self._stopped.set()
        self._watcher.close()
        with self._lock:
            running = list(self._pods.values())
        for one in running:
            one.ending = True
            self._end(one, 0.0)
        for name in self.nodes:
            with contextlib.suppress(ApiError):
                self._api.request("delete", f"/api/v1/nodes/{name}")
        self._server.shutdown()
        self._server.server_close()


def _stream(running: _Running, argv: list[str], frames: Frames) -> None:
    """Run a program in a pod, its streams on the channels of ``frames``."""
    environment = dict(
        one.split("=", 1) for one in Path(f"/proc/{running.first}/environ").read_text().split("\0") if "=" in one
    )
    process = subprocess.Popen(
        ["nsenter", "--target", str(running.first), "--pid", "--mount", "--", *argv],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    assert process.stdin and process.stdout and process.stderr

    def pump(pipe: Any, channel: bytes) -> None:
        with contextlib.suppress(OSError):
            while data := pipe.read(1 << 15):
                frames.send(channel + data)

    pumps = [
        threading.Thread(target=pump, args=one, daemon=True)
        for one in ((process.stdout, b"\x01"), (process.stderr, b"\x02"))
    ]
    for one in pumps:
        one.start()

    def finish() -> None:
        code = process.wait()
        for one in pumps:
            one.join(10)
        status: dict[str, Any] = {"status": "Success"}
        if code:
            causes = [{"reason": "ExitCode", "message": str(code if code > 0 else 128 - code)}]
            status = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
        with contextlib.suppress(OSError):
            frames.send(b"\x03" + json.dumps(status).encode())
        frames.close()

    threading.Thread(target=finish, daemon=True).start()
    with contextlib.suppress(OSError):
        while (data := frames.receive()) is not None:
            if data[:1] == b"\x00" and len(data) > 1:
                view = memoryview(data)[1:]
                while view:
                    view = view[process.stdin.write(view) or 0 :]
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.wait()


def _child(pid: int) -> int:
    """The one child of a process, once it is there."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    while not (found := path.read_text().split()):
        pass
    return int(found[0])


def _certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate of this kubelet's own, which nobody checks, and its key."""
    from datetime import timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubelet")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    certificate, private = directory / "kubelet.crt", directory / "kubelet.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.touch(mode=0o600)
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private


@contextlib.contextmanager
def kubelet(api: Api, names: tuple[str, ...], directory: Path) -> Iterator[Kubelet]:
    """Run pods until the end."""
    made = Kubelet(api, names, directory)
    try:
        yield made
    finally:
        made.close()
