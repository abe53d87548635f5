"""Heal acts in the cluster of the run only: another one behind the same kubeconfig is refused, and said so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.heal.undo import UNDO_ACTIONS, CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.platforms.kubernetes import platform
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.identity import identity_of, refuse_another
from chaos.platforms.kubernetes.run_client import NotOurs


class Cluster:
    """A cluster that tells the UID of its oldest namespace, or refuses to (None)."""

    def __init__(self, server: str, uid: str | None, authority: Path | None = None) -> None:
        self.client = SimpleNamespace(configuration=SimpleNamespace(host=server, ssl_ca_cert=authority))
        self._uid = uid
        self.asked: list[str] = []

    def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        self.asked.append(f"{method} {path}")
        if self._uid is None:
            raise ApiError(403, "namespaces is forbidden")
        return {"metadata": {"uid": self._uid}}


def as_api(cluster: Cluster) -> Api:
    return cast("Api", cluster)


def test_the_uid_decides_whatever_the_address() -> None:
    recorded = identity_of(as_api(Cluster("https://a:6443/", "u1")))
    assert recorded == {"server": "https://a:6443", "authority": None, "uid": "u1"}
    refuse_another(recorded, as_api(Cluster("https://b:6443", "u1")))
    with pytest.raises(NotOurs, match=r"that was https://a:6443 \(kube-system u1\).*lead to https://a:6443 \(kube-sys"):
        refuse_another(recorded, as_api(Cluster("https://a:6443", "u2")))


def test_without_the_right_to_read_it_address_and_authority_decide(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    recorded = identity_of(as_api(Cluster("https://a", None, tmp_path / "one")))
    refuse_another(recorded, as_api(Cluster("https://a", "u1", tmp_path / "one")))
    for other in (Cluster("https://b", None, tmp_path / "one"), Cluster("https://a", None, tmp_path / "two")):
        with pytest.raises(NotOurs, match="another cluster"):
            refuse_another(recorded, as_api(other))


@pytest.mark.parametrize("action", ["release-cluster-node", "recover-public-fault", "end-nodes"])
def test_no_undo_step_acts_in_another_cluster(action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = Cluster("https://other", "u2")
    monkeypatch.setattr(platform, "connect", lambda *_: as_api(reached))
    arguments = {
        "platform": "kubernetes",
        "settings": {"namespace": "train", "image": "none", "nodes": ["worker-1"]},
        "kubeconfig": None,
        "cluster": {"server": "https://a", "authority": None, "uid": "u1"},
        "host": "worker-1",
        "fault": "f1",
    }
    step = UndoStep("s", None, action, arguments)
    with pytest.raises(CannotUndo, match="another cluster than the run's"):
        UNDO_ACTIONS[action](step, UndoContext("run-1", SYSTEM_CLOCK))
    assert reached.asked == ["get /api/v1/namespaces/kube-system"], "nothing else is even looked at"
