"""A run on two containers of a real engine, a process on each: what faults of whole nodes are tried on."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.faults.kind import Victim
from chaos.heal.heal import heal_run
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_step
from chaos.heal.undo_nodes import NodesByUndoSteps
from chaos.machine.job.protocol import LaunchSpec
from chaos.platforms.docker.engine import RUN_LABEL, connect, containers_of, remove_run_objects
from chaos.platforms.docker.platform import DockerNodes, DockerPlatform
from chaos.platforms.nodes import Site
from chaos.platforms.nodes_job import NodesJob
from chaos.run.launch.channel import Channel
from chaos.run.launch.setup import write_secret
from chaos.scenario.models.docker import Docker
from chaos.store.directory import RunDirectory, create_run, make_private_directory
from tests.rehearsal.kit import Chaos, Harness, Run

RANK = """
import signal
taken = []

def take(*_):
    while True:
        taken.append(bytearray(b"x" * (1 << 20)))

signal.signal(signal.SIGUSR1, take)
print("ready", flush=True)
while True:
    pass
"""
"""Stands for a rank: it uses processor time, and memory without end when it is told to."""
SECONDS = 60


@dataclass
class Made:
    """A run on two nodes, a process on each."""

    run: RunDirectory
    nodes: DockerNodes
    job: NodesJob
    engine: str

    def victim(self, node: int) -> Victim:
        given = {"cores": 0.05, "grace": 1}
        record = self.run.path / "record"
        return Victim(
            node, self.job.launchers[node], record, self.answer, self.storage, parameters=given, ranks=(node,)
        )

    @property
    def storage(self) -> Path:
        """Where its ranks would save."""
        return self.run.path.resolve() / "job" / "checkpoints"

    def undo(self) -> list[str]:
        """Put back what was done to nodes, as the harness does; how that went."""
        steps = self.run.ledger.open_steps()
        nodes = NodesByUndoSteps(self.run.token, steps, self.nodes.all())
        context = UndoContext(self.run.token, SYSTEM_CLOCK, nodes=nodes)
        done = [undo_step(self.run.ledger, step, UNDO_ACTIONS, context) for step in steps if step.fault is not None]
        assert all(outcome.ok for outcome in done), done
        return [outcome.how for outcome in done]

    def answer(self, message: dict[str, Any]) -> None:
        """The rank does what its agent would: it takes memory."""
        assert message["act"] == "oom"
        self.job.signal(self.job.launchers[1], signal.SIGUSR1)

    def left(self) -> list[str]:
        with closing(connect(self.engine)) as client:
            networks = client.networks.list(filters={"label": f"{RUN_LABEL}={self.run.token}"})
            return [str(container.name) for container in containers_of(client, self.run.token)] + [
                str(network.name) for network in networks
            ]


@pytest.fixture
def made(engine: str, tmp_path: Path) -> Iterator[Made]:
    run = create_run(tmp_path / "reports", "nodes")
    private = make_private_directory(run.ledger, run.token)
    with closing(Channel(private / "agents", run=run.token, secret=write_secret(private))) as channel:
        site = Site(
            run.token,
            2,
            run.path.resolve(),
            private,
            (),
            (),
            Docker(engine=engine),
            run.ledger,
            Path(sys.executable),
            channel,
            SYSTEM_CLOCK,
        )
        nodes = DockerPlatform().open(site)
        try:
            argv = (sys.executable, "-I", "-c", RANK)
            spec = LaunchSpec(run.token, "train", argv, {"PATH": "/usr/bin"}, run.path, run.path / "log")
            specs = [replace(spec, log=run.path / f"log-{number}") for number in range(2)]
            job = NodesJob(nodes.all(), specs, SYSTEM_CLOCK)
            wait_for("ranks", lambda: all("ready" in one.log.read_text("utf-8") for one in specs), seconds=SECONDS)
            yield Made(run, nodes, job, engine)
        finally:
            nodes.close()
            with closing(connect(engine)) as client:
                remove_run_objects(client, run.token)
            run.lock.release()
            heal_run(run.path)


def landed(made: Made, kind: Any, node: int) -> dict[str, Any]:
    for step in kind.undo_steps("fault", [made.victim(node)]):
        made.run.ledger.record(step)
    kind.inject(made.job, made.victim(node))
    found: dict[str, Any] = wait_for("evidence", lambda: kind.evidence(made.job, made.victim(node)), seconds=SECONDS)
    return found


StartOn = Callable[..., Harness]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Chaos]:
    """The command line with an empty reports directory."""
    place = tmp_path / "chaos"
    place.mkdir()
    chaos = Chaos(place / "reports", place)
    yield chaos
    chaos.close()


@pytest.fixture
def start_on(engine: str, fresh: Chaos) -> StartOn:
    """Start ``chaos run --platform docker`` on this engine."""

    def start(scenario: Path, *options: str) -> Harness:
        arguments = ("run", scenario, "--json", "--cores", "1", "--reports", fresh.reports, "--platform", "docker")
        return fresh.start(*arguments, *options, env={"DOCKER_HOST": engine})

    return start


def left_of(run: Run, engine: str) -> list[str]:
    """What is left of a run, also in the engine."""
    with closing(connect(engine)) as client:
        networks = client.networks.list(filters={"label": f"{RUN_LABEL}={run.token}"})
        made = [str(container.name) for container in containers_of(client, run.token)]
        return [*run.left(), *made, *(str(network.name) for network in networks)]
