"""The client's side, against what a real API server answered once: identities, refusals, broken watches."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.client.watching import Change, Gap, watch
from chaos.platforms.kubernetes.facts import FaultConfigMapFacts, PodFacts, PodGroupFacts
from chaos.platforms.kubernetes.resources import POD
from chaos.platforms.kubernetes.run_client import NotOurs, RunClient
from tests.unit.platforms.kubernetes.playback import Playback, playing, recording

pytestmark = pytest.mark.processes

kubernetes = pytest.importorskip("kubernetes", reason="the kubernetes client is not installed")

LIFE = recording("pod-life")
PODS = POD.path("train")
RUN = "chaos-ascend.io/run=run-recorded"


def api_of(playback: Playback) -> Api:
    from kubernetes.client import ApiClient, Configuration

    configuration = Configuration()
    configuration.host = playback.url
    return Api(ApiClient(configuration))


def test_a_pod_s_life_is_read_as_it_was_recorded() -> None:
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker"}}
    with playing(LIFE["exchanges"], []) as played:
        run_client = RunClient(api_of(played), "train", "run-recorded")
        first = run_client.create(pod)
        with pytest.raises(ApiError, match="already exists") as refused:
            run_client.create(pod)
        assert refused.value.status == 409
        assert [one.uid for one in run_client.list(POD)] == [first.uid]
        assert run_client.delete(first, grace_seconds=0)
        assert run_client.find(POD, "worker") is None
        second = run_client.create(pod)
        assert second.uid != first.uid
        assert not run_client.delete(first, grace_seconds=0), "another pod has the name now"
        assert [one.uid for one in run_client.list(POD)] == [second.uid]
        selectors = {query["labelSelector"] for method, path, query in played.asked if method == "get" and path == PODS}
        assert selectors == {RUN}


def test_an_answer_that_is_another_run_s_is_refused() -> None:
    with playing(LIFE["exchanges"][2:3], []) as played, pytest.raises(NotOurs, match="does not carry this run's label"):
        list(RunClient(api_of(played), "train", "another-run").list(POD))


def test_a_server_that_is_not_there_is_an_error_without_a_status() -> None:
    with playing([], []) as played:
        api = api_of(played)
    with pytest.raises(ApiError) as refused:
        api.request("get", PODS, seconds=1.0)
    assert refused.value.status is None


def followed(
    exchanges: list[dict[str, Any]], watches: list[list[dict[str, Any] | None]], until: int
) -> tuple[Any, ...]:
    """What a watch tells until ``until`` things were told, and what it asked."""
    stopped = threading.Event()
    entries: list[Change | Gap] = []
    with playing(exchanges, watches) as played:
        for change in watch(api_of(played), PODS, RUN, stopped, silence=5.0):
            entries.append(change)
            if len(entries) == until:
                stopped.set()
                break
        return entries, played.asked


LISTED, LISTED_LATER = LIFE["exchanges"][2], LIFE["exchanges"][7]


def test_a_watch_goes_on_where_a_broken_connection_left_it() -> None:
    changed, deleted, added = LIFE["watch"]
    told, asked = followed([LISTED], [[changed, None], [deleted, added]], 4)
    assert [one.kind for one in told] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    assert [change.listed for change in told] == [True, False, False, False]
    versions = [query["resourceVersion"] for _, _, query in asked if "watch" in query]
    assert versions == [LISTED["body"]["metadata"]["resourceVersion"], changed["object"]["metadata"]["resourceVersion"]]


def test_a_version_that_the_server_has_forgotten_is_told_as_a_gap_and_all_is_listed_again() -> None:
    too_old = {
        "type": "ERROR",
        "object": {"kind": "Status", "code": 410, "message": "too old resource version: 1 (201)"},
    }
    told, _ = followed([LISTED, LISTED_LATER], [[too_old]], 4)
    assert isinstance(told[1], Gap)
    assert [change.kind for change in told if isinstance(change, Change)] == ["ADDED", "DELETED", "ADDED"]
    assert all(change.listed for change in told if isinstance(change, Change))


def test_a_watch_that_is_not_allowed_ends() -> None:
    refusal = {**LIFE["exchanges"][4], "path": PODS, "status": 403}
    with pytest.raises(ApiError) as refused:
        followed([refusal], [], 1)
    assert refused.value.status == 403


def changes_of(pod: dict[str, Any]) -> Change:
    return Change("MODIFIED", pod)


def a_pod(uid: str, *, restarts: int = 0, host: str = "worker-1", going: bool = False, **status: Any) -> Change:
    deleting = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}
    return Change(
        "MODIFIED",
        {
            "metadata": {"name": f"pod-{uid}", "uid": uid, "labels": {"chaos-ascend.io/node": "1"}, **deleting},
            "spec": {"nodeName": host},
            "status": {
                "phase": "Running",
                "containerStatuses": [{"name": "ascend", "restartCount": restarts}],
                **status,
            },
        },
    )


def test_a_rescheduled_pod_is_told_from_one_that_was_restarted_in_place() -> None:
    facts = PodFacts()
    said = [name for change in (a_pod("a"), a_pod("a"), a_pod("a", restarts=1)) for name, _ in facts.take(change)]
    assert said == ["pod.state", "pod.state", "pod.restarted"]
    again = dict(facts.take(a_pod("b", host="worker-2")))
    assert again["pod.rescheduled"]["before"] == {"pod": "pod-a", "uid": "a", "host": "worker-1"}
    assert again["pod.rescheduled"]["host"] == "worker-2"
    assert "pod.restarted" not in again


def test_one_replacement_is_told_once_and_never_backwards() -> None:
    facts = PodFacts()
    changes = [
        a_pod("a"),
        a_pod("a", going=True),
        a_pod("b", host="worker-2", phase="Pending"),
        a_pod("a", going=True, phase="Failed"),
        a_pod("b", host="worker-2"),
    ]
    entries = [fields for change in changes for name, fields in facts.take(change) if name == "pod.rescheduled"]
    assert [(one["before"]["uid"], one["uid"]) for one in entries] == [("a", "b")]


def test_a_pod_whose_number_is_told_later_takes_its_place_then() -> None:
    facts = PodFacts()
    list(facts.take(a_pod("a")))
    unnumbered = a_pod("b")
    del unnumbered.object["metadata"]["labels"]
    assert [name for name, _ in facts.take(unnumbered)] == ["pod.state"]
    assert [name for name, _ in facts.take(a_pod("b"))] == ["pod.state", "pod.rescheduled"]


def test_the_recorded_replacement_is_a_rescheduling() -> None:
    facts = PodFacts()
    changes = [Change("ADDED", LISTED["body"]["items"][0] | {"apiVersion": "v1", "kind": "Pod"}, listed=True)]
    changes += [Change(one["type"], one["object"]) for one in LIFE["watch"]]
    names = [name for change in changes for name, _ in facts.take(change)]
    assert names[-3:] == ["pod.gone", "pod.state", "pod.rescheduled"]


def test_what_clusterd_writes_is_told_when_it_changes() -> None:
    groups = PodGroupFacts()

    def group(**annotations: str) -> Change:
        labels = {"process-recover-enable": "on"}
        metadata = {"name": "g", "uid": "u", "annotations": annotations, "labels": labels}
        return Change("MODIFIED", {"metadata": metadata, "status": {"phase": "Running"}})

    first = [fields["key"] for _, fields in groups.take(group())]
    second = [fields for _, fields in groups.take(group(ProcessRecoverStatus="recover-success", other="x"))]
    assert first == ["process-recover-enable", "phase"]
    assert second == [{"podgroup": "g", "key": "ProcessRecoverStatus", "value": "recover-success"}]
    maps = FaultConfigMapFacts()

    def configmap(name: str, text: str) -> Change:
        return Change("MODIFIED", {"metadata": {"name": name, "uid": name}, "data": {"DeviceInfoCfg": text}})

    assert [name for name, _ in maps.take(configmap("cluster-info-device-0", "{}"))] == ["cluster.fault"]
    assert list(maps.take(configmap("cluster-info-device-0", "{}"))) == []
    assert list(maps.take(configmap("anything", "{}"))) == []
