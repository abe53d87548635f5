"""Two jobs share a baseline only if they compute the same; what does not decide about losses does not count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.scenario.models.job import Job
from chaos.scenario.models.scenario import Cluster, Parallel, Scenario
from chaos.store.baseline_key import baseline_key, processor_model

BASE: dict[str, Any] = {
    "chaos": 1,
    "name": "n",
    "cluster": {"ranks": 4},
    "job": {"steps": 8, "environment": {"A": "1"}, "protection": ("TTP",), "arguments": ("--x", "1")},
}
FINGERPRINT = {"script": "aa", "rehearsal": "bb"}
VERSIONS = {"mindspore": "2.10.0", "numpy": "1.26.4"}


def key(
    scenario: Mapping[str, Any] | None = None,
    *,
    fingerprint: Mapping[str, str] = FINGERPRINT,
    versions: Mapping[str, str] = VERSIONS,
    sdk: str = "standin",
    cores: int = 2,
    same_losses: Collection[str] = (),
) -> str:
    return baseline_key(
        Scenario.model_validate(BASE | dict(scenario or {})),
        fingerprint=fingerprint,
        versions=versions,
        sdk=sdk,
        cores=cores,
        same_losses=same_losses,
    )


def job(**fields: Any) -> dict[str, Any]:
    return {"job": BASE["job"] | fields}


FAULT = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 2}}

SAME: dict[str, dict[str, Any]] = {
    "name": {"name": "another"},
    "description": {"description": "d"},
    "tags": {"tags": ("smoke",)},
    "variables": {"variables": {"victim": 1}},
    "matrix": {"matrix": {"victim": [1, 2]}},
    "faults": {"faults": (FAULT,)},
    "allow": {"allow": ("npu-link-down",)},
    "checks": {"checks": ("losses:falls",)},
    "hooks.after": {"hooks": {"after": ({"command": ("tidy",)},), "notify": ({"command": ("mail",)},)}},
    "job.resume_arguments": job(resume_arguments=("--resume",)),
    "job.savers": job(savers="replica groups"),
    "expect": {"expect": {"checkpoint": {"step": 4}}},
    "baseline": {"baseline": "none"},
    "deadlines": {"deadlines": {"run": 5.0}},
    "finding": {"finding": "F-01", "failing": ("loss",)},
    "failing": {"failing": ("loss",)},
    "compare": {"compare": {"axis": "victim", "at_most": {"load": 0.5}}},
    "job.resume": job(resume=False),
    "job.timings": job(timings="vendor"),
    "job.controller": job(controller="outside"),
    "job.hccl": job(hccl={"watchdog": False}),
    "job.torchrun": job(torchrun={"monitor_interval": 5.0}),
    "job.torchft": job(torchft={"join_timeout": 5.0}),
    "job.storage": job(storage={"mb_per_second": 1.0, "memory": True}),
    "job.compile_cache": job(compile_cache=True),
}
OTHER: dict[str, dict[str, Any]] = {
    "hooks": {"hooks": {"before": ({"command": ("prepare",)},)}},
    "cluster.platform": {"cluster": {"ranks": 4, "platform": "docker"}},
    "cluster.network": {"cluster": {"ranks": 4, "network": True}},
    "cluster.nodes": {"cluster": {"ranks": 4, "nodes": 2}},
    "cluster.docker": {"cluster": {"ranks": 4, "docker": {"image": "another"}}},
    "cluster.ssh": {"cluster": {"ranks": 4, "ssh": {"inventory": "hosts.yaml"}}},
    "cluster.kubernetes": {"cluster": {"ranks": 4, "kubernetes": {"namespace": "training", "image": "another"}}},
    "cluster.ranks": {"cluster": {"ranks": 8}},
    "cluster.parallel": {"cluster": {"ranks": 4, "parallel": {"data_parallel": 4}}},
    "job.kind": job(kind="command"),
    "job.script": job(script="train.py"),
    "job.command": job(command=("bash", "start.sh")),
    "job.supervised": job(supervised=True),
    "job.rank_variables": job(rank_variables={"RANK": "WORLD_SIZE"}),
    "job.python": job(python="/opt/torch/bin/python"),
    "job.arguments": job(arguments=("--x", "2")),
    "job.device": job(device="Ascend"),
    "job.config": job(config="another.yaml"),
    "job.overrides": job(overrides={"seed": 2}),
    "job.checkout": job(checkout="another"),
    "job.loading": job(loading="callback"),
    "job.steps": job(steps=9),
    "job.steps_per_epoch": job(steps_per_epoch=4),
    "job.steps_per_update": job(steps_per_update=2),
    "job.checkpoint_interval": job(checkpoint_interval=2),
    "job.sink_size": job(sink_size=2),
    "job.seed": job(seed=2),
    "job.environment": job(environment={"A": "2"}),
    "job.protection": job(protection=("UCE",)),
    "job.digest_interval": job(digest_interval=4),
    "job.seed_at_start": job(seed_at_start=True),
    "job.step_optimizer": job(step_optimizer=2),
    "job.exports": job(exports=("best.pt",)),
    "job.graph": job(graph=True),
    "job.agent": job(agent=True),
    "job.tre": job(tre={"threshold": 2.0}),
    "job.strategies": job(strategies=("exit",)),
    "job.restart_limit": job(restart_limit=1),
}


@pytest.mark.parametrize("what", SAME)
def test_what_does_not_decide_about_losses_is_left_out(what: str) -> None:
    assert key(SAME[what]) == key()


def test_what_the_kind_says_changes_no_loss_is_left_out_unless_the_script_is_the_scenarios() -> None:
    spared = ("protection", "restart_limit")
    one, other = {"protection": ("UCE",)}, {"protection": ("TTP",), "restart_limit": 1}
    assert key(job(**one), same_losses=spared) == key(job(**other), same_losses=spared)
    assert key(job(**one)) != key(job(**other))
    scripts = [key(job(script="train.py", **fields), same_losses=spared) for fields in (one, other)]
    assert scripts[0] != scripts[1]


@pytest.mark.parametrize("what", OTHER)
def test_what_decides_about_losses_makes_another_key(what: str) -> None:
    assert key(OTHER[what]) != key()


@pytest.mark.parametrize(
    "other",
    [
        {"fingerprint": {"script": "ab", "rehearsal": "bb"}},
        {"fingerprint": {"script": "aa"}},
        {"versions": {"mindspore": "2.9.0", "numpy": "1.26.4"}},
        {"versions": {"mindspore": "2.10.0"}},
        {"sdk": "vendor"},
        {"cores": 4},
    ],
)
def test_files_libraries_sdk_and_cores_make_another_key(other: dict[str, Any]) -> None:
    assert key(**other) != key()


def test_the_processor_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr("chaos.store.baseline_key.processor_model", lambda: "another one")
    assert key() != before


def test_no_field_of_the_scenario_was_forgotten() -> None:
    """A new field must be put on one side or the other on purpose."""
    known = {name.partition(".")[::2] for name in (*SAME, *OTHER)}
    assert {field for section, field in known if section == "job"} | {"launcher"} == set(Job.model_fields)
    assert {field for section, field in known if section == "cluster"} == set(Cluster.model_fields)
    top = {section for section, field in known if not field} | {"chaos", "cluster", "job", "keep_checkpoints_mb"}
    assert top == set(Scenario.model_fields)


PARALLEL = st.fixed_dictionaries({"data_parallel": st.integers(1, 64), "model_parallel": st.integers(1, 8)})
JOBS = st.fixed_dictionaries(
    {
        "steps": st.integers(1, 10**6),
        "seed": st.integers(0, 10**6),
        "environment": st.dictionaries(st.text(min_size=1), st.text(), max_size=3),
        "arguments": st.lists(st.text(), max_size=3).map(tuple),
        "protection": st.lists(st.sampled_from(["TTP", "UCE", "ARF"]), unique=True, max_size=3).map(tuple),
        "checkpoint_interval": st.none() | st.integers(1, 50),
    }
)


@given(JOBS, JOBS, PARALLEL, PARALLEL)
def test_keys_are_equal_exactly_where_jobs_are(
    one: dict[str, Any], two: dict[str, Any], here: dict[str, Any], there: dict[str, Any]
) -> None:
    first = key({"job": one, "cluster": {"ranks": 4, "parallel": here}})
    second = key({"job": two, "cluster": {"ranks": 4, "parallel": there}})
    same = Job.model_validate(one) == Job.model_validate(two) and Parallel(**here) == Parallel(**there)
    assert (first == second) is same


@given(st.permutations(sorted(FINGERPRINT.items())), st.permutations(sorted(VERSIONS.items())))
def test_the_order_of_entries_does_not_count(files: list[tuple[str, str]], versions: list[tuple[str, str]]) -> None:
    assert key(fingerprint=dict(files), versions=dict(versions)) == key()


def test_the_processor_is_read_from_what_the_kernel_tells(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Kunpeng\ncpu MHz\t: 2600.1\nflags\t\t: avx fma\n\n" * 2)
    here = processor_model(cpuinfo)
    assert "Kunpeng" in here
    cpuinfo.write_text(cpuinfo.read_text().replace("2600.1", "800.0"))
    assert processor_model(cpuinfo) == here
    cpuinfo.write_text(cpuinfo.read_text().replace("avx fma", "avx"))
    assert processor_model(cpuinfo) != here
    assert processor_model(tmp_path / "absent") == ""
