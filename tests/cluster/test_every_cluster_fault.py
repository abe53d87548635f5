"""Every fault of a cluster lands with evidence, heals, and heals after the harness was killed while it made it.

The scenarios are the shipped ones, run by an account with the rights that `chaos kubernetes rbac` prints for each. The
API server and its controllers are real; pods are processes of this host. ClusterD and Chaos Mesh are played: they tell
what they would have done, and do nothing. With ``--chaos-sdk vendor`` the ranks in the pods have the vendor's package.
"""

from __future__ import annotations

import json
import os
import signal

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.history.ledger import Ledger
from tests.cluster.command_line import WAIT_SECONDS, Cluster, ended
from tests.kit.every_fault import in_clusters, shown_by

pytestmark = [pytest.mark.processes, pytest.mark.nightly]


@pytest.mark.parametrize("kind", in_clusters())
def test_it_lands_and_heals(kind: str, cluster: Cluster, request: pytest.FixtureRequest) -> None:
    sdk: str = request.config.getoption("--chaos-sdk")
    code, said = ended(cluster.run(shown_by()[kind].path, "--sdk", sdk))
    result = json.loads((cluster.path() / "result.json").read_bytes())
    assert (code, result["verdict"]) == (0, "pass"), said
    landed = cluster.history().select("fault.landed", kind=kind)
    assert landed and all(event.data["evidence"] for event in landed)
    assert cluster.history().select("fault.healed")
    assert (cluster.left(), Ledger(cluster.path() / "undo.jsonl").open_steps()) == ([], [])


@pytest.mark.parametrize("kind", in_clusters())
def test_it_heals_after_sigkill(kind: str, cluster: Cluster) -> None:
    harness = cluster.run(shown_by()[kind].path, "--baseline", "none")

    def made() -> bool:
        assert harness.poll() is None, ended(harness)
        latest = cluster.volume / "reports" / "latest"
        return latest.exists() and bool(cluster.history().select("fault.injecting", kind=kind))

    wait_for("the fault", made, seconds=WAIT_SECONDS, clock=SYSTEM_CLOCK)
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    assert cluster.left() != []
    code, said = ended(cluster.start("heal", "--reports", str(cluster.volume / "reports")))
    assert code == 0, said
    assert (cluster.left(), Ledger(cluster.path() / "undo.jsonl").open_steps()) == ([], [])
