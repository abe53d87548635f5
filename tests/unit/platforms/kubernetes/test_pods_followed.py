"""What a run's history tells of its pods: played back from what a real API server answered.

The pods and their replacement are as recorded. No kubelet ran beside that server, so what one writes into a pod's
status, and the cluster's events about pods, are put in as Kubernetes describes them.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.history.event import Event
from chaos.history.reader import read_history
from chaos.platforms.kubernetes.pods import Pods
from chaos.platforms.kubernetes.resources import EVENT, POD
from chaos.platforms.kubernetes.run_client import RunClient
from tests.unit.platforms.kubernetes.playback import Line, playing
from tests.unit.platforms.kubernetes.test_recorded_api import LIFE, LISTED, api_of

pytest.importorskip("kubernetes", reason="the kubernetes client is not installed")

PODS, EVENTS = POD.path("train"), EVENT.path("train")
FIRST: dict[str, Any] = LISTED["body"]["items"][0]
DELETING, DELETED, ANOTHER = LIFE["watch"]
NO_EVENTS = {
    "method": "get",
    "path": EVENTS,
    "status": 200,
    "body": {"metadata": {"resourceVersion": "1"}, "items": []},
}


def with_status(line: dict[str, Any], **container: Any) -> dict[str, Any]:
    """The same line, with what a kubelet says of the container."""
    made = copy.deepcopy(line)
    made["object"]["status"]["containerStatuses"] = [{"name": "ascend", "restartCount": 0, **container}]
    return made


def modified(version: str, **container: Any) -> dict[str, Any]:
    line = with_status({"type": "MODIFIED", "object": FIRST}, **container)
    line["object"]["metadata"]["resourceVersion"] = version
    return line


def event(uid: str, reason: str) -> dict[str, Any]:
    """An event as the API gives it (v1, ``involvedObject``)."""
    return {
        "type": "ADDED",
        "object": {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {
                "name": f"worker.{reason}",
                "namespace": "train",
                "uid": f"e-{reason}",
                "resourceVersion": "9",
            },
            "involvedObject": {"kind": "Pod", "namespace": "train", "name": "worker", "uid": uid},
            "type": "Warning",
            "reason": reason,
            "message": f"why {reason}",
            "count": 1,
        },
    }


class Followed:
    """Pods as they are followed, and what the history has of them."""

    def __init__(self, pods: Pods, directory: Path) -> None:
        self.pods, self._directory = pods, directory

    def told(self, name: str, count: int = 1) -> list[Event]:
        """The events of that name, once there are so many."""
        events: list[Event] = []

        def there() -> bool:
            events[:] = read_history(self._directory).select(name)
            return len(events) >= count

        wait_for(name, there, seconds=30, clock=SYSTEM_CLOCK)
        return events


@contextlib.contextmanager
def following(directory: Path, pods: list[Line], events: list[Line] | None = None) -> Iterator[Followed]:
    watches = {PODS: [pods], EVENTS: [events or []]}
    with playing([LISTED, NO_EVENTS], watches) as played:
        made = Pods(RunClient(api_of(played), "train", "run-recorded"), directory, "job", SYSTEM_CLOCK)
        try:
            yield Followed(made, directory)
        finally:
            made.close()


def test_the_cluster_s_events_about_the_run_s_pods_are_kept_and_no_others(tmp_path: Path) -> None:
    seen = threading.Event()
    own, gone = event(FIRST["metadata"]["uid"], "BackOff"), event(FIRST["metadata"]["uid"], "Killing")
    events: list[Line] = [seen, event("another pod", "FailedScheduling"), own, {**own, "type": "DELETED"}, gone]
    with following(tmp_path, [DELETING, DELETED, ANOTHER], events) as followed:
        followed.told("pod.rescheduled")
        seen.set()
        answer = followed.told("cluster.event", 2)
    (end,) = read_history(tmp_path).select("kubernetes.followed")
    assert end.data == {"unfollowed": []}, "the record goes on to its end"
    assert [(fact.data["uid"], fact.data["reason"]) for fact in answer] == [
        (FIRST["metadata"]["uid"], "BackOff"),
        (FIRST["metadata"]["uid"], "Killing"),
    ]
    first = {key: answer[0].data[key] for key in ("pod", "type", "message", "count")}
    assert first == {"pod": "worker", "type": "Warning", "message": "why BackOff", "count": 1}


def test_a_container_that_is_started_again_in_its_pod_is_told_with_how_it_ended(tmp_path: Path) -> None:
    before = {"terminated": {"exitCode": 137, "reason": "Error"}}
    lines: list[Line] = [modified("206", ready=True), modified("207", restartCount=1, lastState=before)]
    with following(tmp_path, lines) as followed:
        (told,) = followed.told("pod.restarted")
        uid = FIRST["metadata"]["uid"]
        state = followed.pods.state(uid)
        assert followed.pods.is_there(uid)
    assert (told.data["uid"], told.data["before"], told.data["restarts"]) == (uid, 0, 1)
    assert (told.data["exit"], told.data["exit_before"]) == (None, 137), "the new one has not ended"
    assert state is not None and (state.exit, state.exit_before) == (None, 137)
    assert read_history(tmp_path).select("pod.rescheduled") == []


@pytest.mark.parametrize("ended", [True, False])
def test_how_a_pod_ended_is_known_from_its_last_object(tmp_path: Path, ended: bool) -> None:
    last = with_status(DELETED, state={"terminated": {"exitCode": 143, "reason": "Error"}}) if ended else DELETED
    with following(tmp_path, [DELETING, last, ANOTHER]) as followed:
        (rescheduled,) = followed.told("pod.rescheduled")
        (gone,) = followed.told("pod.gone")
        state, uid = followed.pods.state(FIRST["metadata"]["uid"]), ANOTHER["object"]["metadata"]["uid"]
        after = [pod_state.uid for pod_state in followed.pods.successors(FIRST["metadata"]["uid"])]
        assert not followed.pods.is_there(FIRST["metadata"]["uid"])
        now = followed.pods.of_node(0)
    assert state is not None and state.exit == gone.data["exit"] == (143 if ended else None)
    assert (rescheduled.data["before"]["uid"], rescheduled.data["uid"]) == (FIRST["metadata"]["uid"], uid)
    assert after == [uid] and now is not None and now.uid == uid
