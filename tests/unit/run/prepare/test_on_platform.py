"""What a platform cannot carry is refused before the start, by name and at its place."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.base.registry import registry
from chaos.platforms.docker.kind import KIND
from chaos.run.prepare.on_platform import on_platform, platform_problems
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import LoadedScenario, load_scenario

SCENARIO = """chaos: 1
name: nodes
cluster: {nodes: 2, ranks: 4, parallel: {data_parallel: 2, model_parallel: 2}}
job: {kind: plain, steps: 12, protection: [TTP]}
faults:
  - kind: KIND
    target: TARGET
    trigger: {step: 6, phase: forward}
"""


def scenario(path: Path, kind: str, target: str = "{node: 1}", platform: str = "docker") -> LoadedScenario:
    file = path / "nodes.yaml"
    file.write_text(SCENARIO.replace("KIND", kind).replace("TARGET", target), "utf-8")
    return on_platform(load_scenario(file, names=known_names()), platform)


def problems(loaded: LoadedScenario) -> list[str]:
    return [f"{problem.line}: {problem.message}" for problem in platform_problems(loaded, loaded.cells[0])]


NODE_KINDS = ("node-kill", "node-stop", "node-restart", "node-oom", "node-pause", "node-disconnect")


@pytest.mark.parametrize("kind", ["kill", "suspend", *NODE_KINDS])
def test_what_a_platform_can_carry_is_planned(tmp_path: Path, kind: str) -> None:
    loaded = scenario(tmp_path, kind)
    assert problems(loaded) == []
    assert plan_cell(loaded, loaded.cells[0], 1).faults[0].kind == kind
    assert loaded.cells[0].scenario.cluster.platform == "docker"


@pytest.mark.parametrize(
    ("kind", "platform", "surface"),
    [
        ("disk-full", "docker", "mounts of the job's directory"),
        ("node-reboot", "docker", "a machine's boot"),
        ("node-kill", "local-nodes", "a whole node"),
        ("node-pause", "local", "a whole node"),
    ],
)
def test_what_it_cannot_is_refused_by_name(tmp_path: Path, kind: str, platform: str, surface: str) -> None:
    loaded = scenario(tmp_path, kind, platform=platform)
    expected = f"the platform {platform} cannot carry the fault kind {kind!r}: it cannot act on {surface}"
    assert problems(loaded) == [f"6: {expected}"]
    with pytest.raises(ScenarioError, match="cannot carry the fault kind"):
        plan_cell(loaded, loaded.cells[0], 1)


@pytest.mark.parametrize(
    ("kinds", "platform", "on", "why"),
    [
        (["dns-gone"], "local", "local", "there a job gets addresses only"),
        (["dns-gone"], "local-nodes", "local-nodes", "no resolver of their own that could be lost"),
        (["dns-gone", "network-rate"], "local", "local-networks", "network namespaces that reach no resolver"),
        (["dns-gone", "network-rate"], "docker", "docker-networks", "has no network of the engine's"),
        (["dns-gone"], "ssh", "ssh", "are those of all that runs on it"),
        (["dns-gone"], "kubernetes", "kubernetes", "Chaos Mesh takes names from one pod"),
    ],
)
def test_where_no_names_can_be_taken_the_refusal_says_why_and_what_to_use(
    tmp_path: Path, kinds: list[str], platform: str, on: str, why: str
) -> None:
    loaded = scenario(tmp_path, kinds[0], platform=platform)
    cell = loaded.cells[0]
    faults = tuple(cell.scenario.faults[0].model_copy(update={"kind": kind}) for kind in kinds)
    changed = replace(cell, scenario=cell.scenario.model_copy(update={"faults": faults}))
    entries = [problem for problem in platform_problems(loaded, changed) if "'dns-gone'" in problem.message]
    (refused,) = entries
    assert refused.message.startswith(f"the platform {on} cannot carry the fault kind 'dns-gone': it cannot act on ")
    assert why in refused.message
    assert all(word in refused.hint for word in ("docker", "pod-dns-gone", "port-blocked", "partition"))


def test_a_node_of_this_host_reaches_no_resolver(tmp_path: Path) -> None:
    """What the refusal says of local-networks: a namespace of its own has no way to a resolver."""
    if os.geteuid():
        pytest.skip("a network namespace needs root")
    look_up = "import socket; socket.getaddrinfo('a-name-of-nobody.example', 80)"
    argv = ("unshare", "--net", "--", sys.executable, "-I", "-c", look_up)
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "socket.gaierror" in done.stderr


def test_a_fault_of_whole_nodes_on_some_ranks_of_one_is_refused(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, "node-kill", "{rank: 2}")
    assert problems(loaded) == ["7: node-kill hits whole nodes, with all of their ranks"]


def test_without_a_platform_of_the_command_line_the_file_counts(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, "kill")
    assert on_platform(loaded, None) is loaded


def test_no_kind_that_nodes_carry_takes_a_pid_of_a_node_for_one_of_this_host() -> None:
    """A process of a container has a PID of its own there: here it is another process's."""
    asks_the_job = {"terminate"}  # where the job knows its processes' signals
    asks_the_node = {"node-volume-gone"}  # which process of this host it is
    faults = registry("faults")
    for name in faults.names():
        kind = faults.load(name)
        if kind.surface in KIND.carries and name not in asks_the_job | asks_the_node:
            source = Path(inspect.getfile(type(kind))).read_text("utf-8")
            assert "identity.pid" not in source, name


@pytest.mark.parametrize(("platform", "refused"), [("ssh", True), ("kubernetes", True), ("docker", False)])
def test_a_store_in_memory_is_refused_by_name_where_nodes_have_memory_of_their_own(
    tmp_path: Path, platform: str, refused: bool
) -> None:
    file = tmp_path / "nodes.yaml"
    text = SCENARIO.replace("KIND", "kill").replace("TARGET", "{node: 1}")
    file.write_text(text.replace("protection: [TTP]", "protection: [TTP], storage: {memory: true}"), "utf-8")
    loaded = on_platform(load_scenario(file, names=known_names()), platform)
    entries = [
        problem for problem in platform_problems(loaded, loaded.cells[0]) if "memory of its own" in problem.message
    ]
    assert [(problem.line, f"the platform {platform}" in problem.message) for problem in entries] == (
        [(4, True)] if refused else []
    )


@pytest.mark.parametrize(
    ("subnet", "why"),
    [
        ("10.99.1.7/24", "is no IPv4 subnet"),
        ("nonsense", "is no IPv4 subnet"),
        ("8.8.8.0/24", "has public addresses"),
        ("10.99.1.0/30", "has no addresses for 2 nodes"),
    ],
)
def test_a_subnet_that_does_not_do_is_told_at_its_place(tmp_path: Path, subnet: str, why: str) -> None:
    file = tmp_path / "nodes.yaml"
    text = SCENARIO.replace("KIND", "kill").replace("TARGET", "{node: 1}")
    cluster = f"cluster: {{platform: docker, docker: {{subnets: [10.99.0.0/29, {subnet}]}}, nodes: 2,"
    file.write_text(text.replace("cluster: {nodes: 2,", cluster), "utf-8")
    loaded = load_scenario(file, names=known_names())
    (problem,) = platform_problems(loaded, loaded.cells[0])
    assert (problem.line, why in problem.message) == (3, True)
    with pytest.raises(ScenarioError, match=why):
        plan_cell(loaded, loaded.cells[0], 1)
