"""A volume that is taken from a container of a real engine: from that one alone, and given back with all on it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.base.wait import wait_for
from chaos.faults.kind import FaultMissed
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.mount_namespace import do_in
from chaos.machine.linux.mounts import mount_removed, mounts_at
from chaos.platforms.docker.processes import first_process, process_here
from tests.cluster.docker_run import SECONDS, Made, StartOn, landed, left_of
from tests.kit.shipped import shipped
from tests.rehearsal.kit import Chaos

pytestmark = pytest.mark.processes


def kind() -> Any:
    return registry("faults").load("node-volume-gone")


def written(made: Made, node: int, name: str) -> str:
    """What a program in the node says when it writes a file there."""
    path = made.storage / name
    answer = made.nodes.all()[node].container.exec_run(["sh", "-c", f"echo 1 > '{path}' && echo done"])
    assert isinstance(answer.output, bytes)
    return answer.output.decode()


def test_it_is_taken_from_that_node_alone_and_given_back_with_all_that_was_on_it(made: Made) -> None:
    made.storage.mkdir(parents=True)
    (made.storage / "before").write_text("1")
    assert kind().evidence(made.job, made.victim(1)) is None
    evidence = landed(made, kind(), 1)
    assert evidence["refused"] == "ENOENT" and evidence["mount"]
    assert "done" not in written(made, 1, "lost")
    assert written(made, 0, "kept") == "done\n"
    assert kind().evidence(made.job, made.victim(0)) is None
    assert mounts_at(made.storage) == []
    assert sorted(path.name for path in made.storage.iterdir()) == ["before", "kept"]
    assert made.undo() == [f"node 1 has {made.storage} again"]
    assert written(made, 1, "after") == "done\n"
    assert sorted(path.name for path in made.storage.iterdir()) == ["after", "before", "kept"]
    assert kind().evidence(made.job, made.victim(1)) is None
    assert [made.job.state(launcher) for launcher in made.job.launchers] == ["alive", "alive"]
    assert made.nodes.all()[1].restore("directories") == "nothing is taken from node 1"


@pytest.mark.nightly
def test_a_node_that_has_lost_it_already_is_not_hit(made: Made) -> None:
    made.storage.mkdir(parents=True)
    made.nodes.all()[1].take_directory(made.storage)
    with pytest.raises(FaultMissed, match="was so before this fault was made"):
        landed(made, kind(), 1)


@pytest.mark.nightly
def test_a_node_that_was_started_again_has_it(made: Made) -> None:
    landed(made, kind(), 1)
    made.nodes.all()[1].kill()
    wait_for("end", lambda: made.nodes.all()[1].state() == "gone", seconds=SECONDS)
    assert made.undo() == ["node 1 has ended, and what was taken from it is there again with it"]
    made.nodes.ready()
    assert written(made, 1, "after") == "done\n"


@pytest.mark.nightly
def test_a_rank_that_has_ended_is_not_hit(made: Made) -> None:
    made.job.signal(made.job.launchers[1], 9)
    wait_for("end", lambda: made.job.exit_status(made.job.launchers[1]), seconds=SECONDS)
    with pytest.raises(FaultMissed, match="rank 1 has ended"):
        landed(made, kind(), 1)
    with pytest.raises(PlatformError, match="of it has ended"):
        process_here(made.nodes.all()[1].container, made.job.launchers[1].pid)


def test_nothing_is_mounted_where_this_host_would_see_it(made: Made, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no mount namespace of its own"):
        do_in(os.getpid(), lambda: mount_removed(tmp_path))
    assert mounts_at(tmp_path) == []
    here = process_here(made.nodes.all()[0].container, made.job.launchers[0].pid)
    assert here != first_process(made.nodes.all()[0].container)
    assert do_in(here, lambda: made.run.path.is_dir())


@pytest.mark.nightly
def test_heal_gives_it_back_after_the_harness_was_killed(start_on: StartOn, fresh: Chaos, engine: str) -> None:
    harness = start_on(shipped("plain-node-volume"), "--baseline", "none")
    run = harness.run("plain-node-volume")
    harness.event(run, "fault.landed", kind="node-volume-gone")
    harness.signal(signal.SIGKILL)
    harness.end()
    healed = fresh.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert left_of(run, engine) == []
