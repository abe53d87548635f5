"""The CronJob of docs/guides/nightly.md is one object of that kind, and the command line reads each of its calls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.platforms.kubernetes.rbac import ACCOUNT
from tests.documents.blocks import ROOT, blocks_of
from tests.documents.test_pages import parse

PAGE = ROOT / "docs" / "guides" / "nightly.md"


@pytest.fixture
def job() -> dict[str, Any]:
    """The object."""
    (block,) = (block for block in blocks_of(PAGE) if block.file == "cronjob.yaml")
    read: dict[str, Any] = yaml.safe_load(block.text)
    return read


@pytest.fixture
def pod(job: dict[str, Any]) -> dict[str, Any]:
    """What the pod of a night is made of."""
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert job["spec"]["concurrencyPolicy"] == "Forbid" and job["spec"]["jobTemplate"]["spec"]["backoffLimit"] == 0
    found: dict[str, Any] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return found


def test_what_an_earlier_night_has_left_is_healed_in_the_same_reports_before_the_run(
    pod: dict[str, Any], place: Path
) -> None:
    (heal,), (run,) = pod["initContainers"], pod["containers"]
    assert (heal["args"][0], run["args"][0]) == ("heal", "run")
    for container in (heal, run):
        parse(container["args"], PAGE.name, place)
        assert container["args"][container["args"].index("--reports") + 1] == "/data/chaos/reports"
    assert (heal["image"], heal["env"], heal["volumeMounts"]) == (run["image"], run["env"], run["volumeMounts"])


def test_reports_and_key_are_on_the_volume(pod: dict[str, Any]) -> None:
    (volume,), (container,) = pod["volumes"], pod["containers"]
    (mount,) = container["volumeMounts"]
    assert mount == {"name": volume["name"], "mountPath": "/data/chaos"}
    places = {variable["name"]: Path(variable["value"]) for variable in container["env"]}
    assert places.keys() == {"HOME", "TMPDIR"}
    assert all(path.is_relative_to(mount["mountPath"]) for path in places.values())


def test_it_runs_as_the_user_of_the_image_with_the_rights_that_chaos_prints(pod: dict[str, Any]) -> None:
    assert pod["serviceAccountName"] == ACCOUNT
    user = f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    assert f"USER {user}" in (ROOT / "Dockerfile.cli").read_text().splitlines()
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_every_key_and_the_type_of_every_value_are_known_to_kubernetes(job: dict[str, Any]) -> None:
    models = pytest.importorskip("kubernetes.client.models", reason="the kubernetes client is not installed")
    assert _unknown(models, "V1CronJob", job) == []
    job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["enviroment"] = []
    job["spec"]["jobTemplate"]["spec"]["backoffLimit"] = "none"
    assert _unknown(models, "V1CronJob", job) == [
        "V1CronJob.spec.jobTemplate.spec.backoffLimit: 'none' is no int",
        "V1CronJob.spec.jobTemplate.spec.template.spec.containers.0.enviroment",
    ]


_PLAIN = {"str": str, "int": int, "bool": bool, "object": object}


def _unknown(models: Any, kind: str, value: Any, place: str = "") -> list[str]:
    """The places of a value that the API's own description of a kind does not know."""
    place = place or kind
    if (listed := re.fullmatch(r"[Ll]ist\[(.+)\]", kind)) is not None:
        assert isinstance(value, list), place
        return [
            one for index, item in enumerate(value) for one in _unknown(models, listed[1], item, f"{place}.{index}")
        ]
    if kind in _PLAIN:
        return [] if isinstance(value, _PLAIN[kind]) else [f"{place}: {value!r} is no {kind}"]
    described = getattr(models, kind)
    types = {described.attribute_map[name]: type_ for name, type_ in described.openapi_types.items()}
    found = []
    for key, item in value.items():
        found += _unknown(models, types[key], item, f"{place}.{key}") if key in types else [f"{place}.{key}"]
    return found
