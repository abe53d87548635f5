"""The stand-in for the kubelet tells of a pod's end as a kubelet does: how it ended, then that it may go."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.platforms.kubernetes.client.api import Api
from chaos.platforms.kubernetes.client.watching import Change
from chaos.platforms.kubernetes.facts import pod_state
from tests.cluster.standin_kubelet import Kubelet, _Running

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "train", "uid": "u", "labels": {"chaos-ascend.io/node": "1"}},
    "spec": {"nodeName": "worker-1", "containers": [{"name": "ascend", "image": "none"}]},
}


class Asked:
    """An API that keeps what it was asked to change."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, Any]] = []

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        if method != "get":
            self.changes.append((method, path, body))
        return {"metadata": {"resourceVersion": "1"}, "items": []}

    def lines(self, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
        return iter(())


def test_a_pod_that_is_deleted_is_told_as_ended_before_its_object_may_go(tmp_path: Path) -> None:
    api = Asked()
    process = subprocess.Popen(["sleep", "1000"])
    kubelet = Kubelet(cast("Api", api), (), tmp_path)
    try:
        kubelet._pods["u"] = _Running(POD, process, process.pid, "127.1.0.1")
        follower = threading.Thread(target=kubelet._follow, args=(kubelet._pods["u"],))
        follower.start()
        deleting = {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 1}
        kubelet._take(Change("MODIFIED", {**POD, "metadata": deleting}))
        wait_for("the end", lambda: len(api.changes) >= 2, seconds=30, clock=SYSTEM_CLOCK)
        follower.join(30)
    finally:
        kubelet.close()
    (patched, _, status), (deleted, path, _) = api.changes
    assert (patched, deleted, path) == ("patch", "delete", "/api/v1/namespaces/train/pods/p")
    assert pod_state({**POD, **status}).exit == 128 + signal.SIGTERM
