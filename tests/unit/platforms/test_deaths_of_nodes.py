"""How a node ended is the word of whoever runs it, and a want of memory is no kill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.faults.cluster import pod_delete, pod_evict
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.nodes import node_disconnect, node_kill
from chaos.faults.signals import kill
from chaos.machine.job.protocol import Job
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.docker.death import how_it_ended
from chaos.platforms.kubernetes.client.api import ApiError
from chaos.platforms.kubernetes.facts import PodState
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import POD
from chaos.platforms.kubernetes.run_client import RunObject

STARTED = "2026-08-01T10:00:00.123456789Z"


class Container:
    """A container as the engine shows it, with the events that it tells."""

    name, short_id, id = "node-0", "c0ffee", "c0ffee00"

    def __init__(self, *events: dict[str, Any], **state: Any) -> None:
        self.attrs = {"State": {"Status": "exited", "ExitCode": 137, "OOMKilled": False, **state}}
        self.client = SimpleNamespace(events=self._events)
        self._told = events

    def reload(self) -> None:
        """Nothing has changed."""

    def _events(self, since: str, **_: Any) -> list[dict[str, Any]]:
        assert since == "1785578400.123456789"
        return list(self._told)


def event(action: str, **attributes: str) -> dict[str, Any]:
    return {"Action": action, "Actor": {"Attributes": attributes}}


DIED = event("die", exitCode="137")


@pytest.mark.parametrize(
    ("container", "signal", "told"),
    [
        (Container(DIED), 9, "ended with exit code 137"),
        (Container(), 9, "ended with exit code 137"),
        (Container(DIED, Status="running", ExitCode=0), 9, "ended with exit code 137"),
        (Container(event("die", exitCode="0")), None, "ended with exit code 0"),
        (Container(DIED, OOMKilled=True), None, "was out of memory"),
        (Container(event("oom"), DIED), None, "was out of memory"),
        (Container(DIED, event("oom")), 9, "ended with exit code 137"),
        (Container(Status="running"), None, "nobody: the engine says that the container is running"),
    ],
)
def test_the_engine_says_how_a_container_ended(container: Container, signal: int | None, told: str) -> None:
    status = how_it_ended(cast("Any", container), STARTED)
    assert (status.signal, status.code) == (signal, None)
    assert told in status.told_by


class ANode:
    """A node of an engine, as faults see it."""

    def __init__(self, **shown: Any) -> None:
        self.acts: set[str] = set()
        self.done: list[str] = []
        self._shown = {"status": "running", "connected": True, "exit_code": 0, "oom_killed": False, **shown}

    def shown(self) -> dict[str, Any]:
        return dict(self._shown)

    def kill(self) -> None:
        self.done.append("kill")
        self._shown.update(status="exited", exit_code=137)

    def pause(self) -> None:
        """It is not asked for."""

    def disconnect(self) -> None:
        self.done.append("disconnect")
        self._shown["connected"] = False


class OnANode:
    """A job on that node."""

    def __init__(self, node: Any, status: ExitStatus | None = None) -> None:
        self._node, self._status = node, status

    def node(self, number: int) -> Any:
        assert number == 1
        return self._node

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus | None:
        del identity
        return self._status


def job(node: Any, status: ExitStatus | None = None) -> Job:
    return cast("Job", OnANode(node, status))


def victim(rank: int) -> Victim:
    return Victim(rank, ProcessIdentity(7, 1, "boot", 1), Path("none"), fault="f1")


@pytest.mark.parametrize(
    ("kind", "before"),
    [(node_disconnect.KIND, {"connected": False}), (node_kill.KIND, {"status": "exited", "exit_code": 137})],
)
def test_what_was_so_before_is_not_taken_for_the_fault(kind: FaultKind, before: dict[str, Any]) -> None:
    with pytest.raises(FaultMissed, match="was so before this fault was made"):
        kind.inject(job(ANode(**before)), victim(2))
    node = ANode()
    for rank in (2, 3):
        kind.inject(job(node), victim(rank))
    assert len(node.done) == 1, "once for all of its ranks"


@pytest.mark.parametrize("other", [{"oom_killed": True}, {"exit_code": 0}])
def test_a_node_that_ended_otherwise_was_not_killed(other: dict[str, Any]) -> None:
    node = ANode(**{"status": "exited", "exit_code": 137, **other})
    with pytest.raises(FaultMissed, match="ended otherwise"):
        node_kill.KIND.evidence(job(node, ExitStatus(signal=9)), victim(2))


def test_a_rank_that_ended_with_its_node_was_not_hit_by_a_signal_of_its_own() -> None:
    assert kill.KIND.evidence(job(ANode(), ExitStatus(signal=9)), victim(2)) == {"signal": 9}
    with pytest.raises(FaultMissed, match="ended with its node"):
        kill.KIND.evidence(job(ANode(), ExitStatus(signal=9, told_by="the engine")), victim(2))


def pod(
    state: PodState | None,
    *,
    there: bool = False,
    told: bool = True,
    lost: str | None = None,
    restarts: int = 0,
    order: Callable[[], bool] | None = None,
) -> PodNode:
    """A pod as it was last told of. ``there``: the API has it. ``told``: those who follow it know that it went."""
    found = RunObject(POD, "p", "u", {"metadata": {"name": "p", "uid": "u"}})
    pods = SimpleNamespace(state=lambda uid: state, is_there=lambda uid: not told, lost=lost, successors=lambda uid: [])
    act = order or (lambda: there)
    own = SimpleNamespace(
        find=lambda *_: found if there else None, delete=lambda *_, **__: act(), evict=lambda *_: act()
    )
    first = PodState("p", "u", 1, "worker-1", "Running", True, restarts, False, None, None)
    return PodNode(1, found, first, "", Path(), cast("Any", None), cast("Any", own), cast("Any", pods), {})


def last(**changed: Any) -> PodState:
    state = PodState("p", "u", 1, "worker-1", "Failed", False, 0, True, 143, "Error")
    return replace(state, **changed)


RUNS = last(exit=None, reason=None, phase="Running")


@pytest.mark.parametrize(
    ("node", "signal", "told"),
    [
        (pod(last()), 9, "exit code 143, Error"),
        (pod(last(), told=False), 9, "exit code 143, Error"),
        (pod(last(exit=137, reason="OOMKilled")), None, "exit code 137, OOMKilled"),
        (pod(last(exit=137, reason="ContainerStatusUnknown")), None, "exit code 137, ContainerStatusUnknown"),
        (pod(None), None, "nobody: the cluster has never shown"),
        # Deleted by somebody else while its node was cut off, after this run had ordered it.
        (pod(RUNS), None, "its node had not reported the end of its container"),
        (pod(replace(RUNS, phase="Failed"), told=False), None, "its node had not reported the end"),
        (pod(RUNS, told=False, lost="403"), None, "its node had not reported the end"),
        # Started again in place: what ran in it ended with the container before.
        (pod(replace(RUNS, restarts=1, exit_before=1, reason_before="Error")), 9, "exit code 1, Error"),
        (pod(replace(RUNS, restarts=1, exit_before=137, reason_before="OOMKilled")), None, "OOMKilled"),
        (pod(replace(RUNS, restarts=2, exit_before=1, reason_before="Error")), None, "more than once"),
        (
            pod(replace(RUNS, restarts=1, exit_before=1, reason_before="Error"), restarts=1),
            None,
            "had not reported the end",
        ),
    ],
)
def test_the_status_of_a_pod_says_how_it_ended(node: PodNode, signal: int | None, told: str) -> None:
    status = node.ended()
    assert status is not None
    assert status.signal == signal
    assert told in status.told_by


def test_a_pod_whose_end_was_not_told_yet_is_waited_for() -> None:
    assert pod(RUNS, told=False).ended() is None, "the API has it no more, and the watch has not said so"


@pytest.mark.parametrize("kind", [pod_delete.KIND, pod_evict.KIND])
def test_a_pod_that_goes_by_anothers_act_is_no_fault(kind: FaultKind) -> None:
    node = pod(last())
    with pytest.raises(FaultMissed, match="not by this run's order"):
        kind.evidence(job(node, node.ended()), victim(2))
    with pytest.raises(FaultMissed, match="being deleted already"):
        kind.inject(job(pod(last(), there=True)), victim(2))
    with pytest.raises(FaultMissed, match="had gone before"):
        kind.inject(job(pod(last(deleting=False))), victim(2))
    node.ordered = "f1"
    status = node.ended()
    shown = kind.evidence(job(node, status), victim(2))
    assert shown is not None and status is not None
    assert (shown["by"], shown["told_by"]) == ("this run's order", status.told_by)


@pytest.mark.parametrize("kind", [pod_delete.KIND, pod_evict.KIND])
def test_a_pod_that_was_forgotten_before_its_node_told_its_end_proves_nothing(kind: FaultKind) -> None:
    node = pod(RUNS)
    node.ordered = "f1"
    with pytest.raises(FaultMissed, match="nobody: pod p went"):
        kind.evidence(job(node, node.ended()), victim(2))


@pytest.mark.parametrize("error", [ApiError(429, "a disruption budget"), ApiError(403, "forbidden")])
def test_a_refused_order_is_none(error: ApiError) -> None:
    answers: list[ApiError | bool] = [error, True]

    def order() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    node = pod(last(deleting=False), there=True, order=order)
    with pytest.raises((FaultMissed, ApiError)):
        pod_evict.KIND.inject(job(node), victim(2))
    gone = pod(last())
    gone.ordered = node.ordered
    with pytest.raises(FaultMissed, match="not by this run's order"):
        pod_evict.KIND.evidence(job(gone, gone.ended()), victim(2))
    for rank in (2, 3):
        pod_delete.KIND.inject(job(node), victim(rank))
    assert answers == [], "the next fault orders it, once for all of its ranks"


def test_what_one_fault_has_ordered_is_no_proof_of_another() -> None:
    node = pod(last())
    node.ordered = "f0"
    with pytest.raises(FaultMissed, match="not by this run's order"):
        pod_delete.KIND.evidence(job(node, node.ended()), victim(2))


@pytest.mark.parametrize(("status", "passes"), [(None, True), (429, True), (503, True), (403, False)])
def test_an_api_that_does_not_answer_just_now_proves_nothing(status: int | None, passes: bool) -> None:
    def find(*_: object) -> None:
        raise ApiError(status, "no answer")

    node = pod(last())
    node.run_client = cast("Any", SimpleNamespace(find=find))
    if passes:
        assert pod_delete.KIND.evidence(job(node), victim(2)) is None
        return
    with pytest.raises(ApiError):
        pod_delete.KIND.evidence(job(node), victim(2))
