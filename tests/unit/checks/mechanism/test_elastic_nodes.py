"""ELASTIC on two nodes: each torchrun is judged with its own ranks; a node that is lost ends the job for its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.mechanisms.elastic.lost_node import judge_lost_node
from chaos.plan.job_effect import DEATH
from chaos.plan.parts.fault import PlannedFault
from tests.kit.plans import changed
from tests.unit.checks.mechanism.test_elastic_rule import PLAN, good, spoilt
from tests.unit.checks.mechanism.test_rsc_rule import AT, LAUNCHER, RANKS, Story

SECOND = LAUNCHER + 1
"""The torchrun of node 1, which has ranks 2 and 3."""


def on_two_nodes(story: Story) -> Story:
    """Put ranks 2 and 3 of a story on node 1, with a torchrun of its own."""
    story.events = [
        replace(
            event,
            data={
                **event.data,
                **({"node": event.rank // 2} if event.rank is not None else {}),
                **({"ppid": SECOND} if event.event == "rank.found" and (event.rank or 0) > 1 else {}),
                **({"node": 0} if event.event == "launcher.found" else {}),
            },
        )
        for event in story.events
    ]
    story.add(0.1, "launcher.found", pid=SECOND, role="launcher", node=1)
    return story


def test_a_restart_by_two_torchruns_passes(tmp_path: Path) -> None:
    assert spoilt(on_two_nodes(good()), tmp_path) == []


def later_start_on_the_other_node(story: Story) -> None:
    story.add(AT + 0.1, "agent.start", 0, 200)


def swapped_launchers(story: Story) -> None:
    story.change("rank.found", 3, 1, ppid=LAUNCHER)


def third_launcher(story: Story) -> None:
    story.add(AT + 1, "launcher.found", pid=60, role="launcher", node=1)


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (later_start_on_the_other_node, "rank 0 was started before rank 1 had ended"),
        (swapped_launchers, f"is a child of process {LAUNCHER}, not of launcher {SECOND} on node 1"),
        (third_launcher, "the launcher on node 1 was replaced"),
    ],
)
def test_each_defect_fails_for_its_reason(tmp_path: Path, spoil: Callable[[Story], None], seen: str) -> None:
    story = on_two_nodes(good())
    spoil(story)
    (finding,) = spoilt(story, tmp_path)
    assert finding[0] == "fail"
    assert seen in finding[1]


def test_a_launcher_that_was_not_found_on_its_node_is_unknown(tmp_path: Path) -> None:
    story = on_two_nodes(good())
    story.drop("launcher.found", node=1)
    assert spoilt(story, tmp_path) == [("unknown", "the launcher on node 1 was not identified")]


def test_a_start_on_a_node_may_come_before_the_last_end_of_another(tmp_path: Path) -> None:
    story = on_two_nodes(good())
    story.change("rank.exit", 3, 0)
    story.drop("child.exit", child_rank=3, child_pid=103)
    story.add(11.05, "child.exit", None, SECOND, child_pid=103, child_rank=3, signal=15, code=None)
    assert spoilt(story, tmp_path) == []
    assert spoilt(one_node(story), tmp_path) != []


def one_node(story: Story) -> Story:
    """Put all ranks of a story on one node."""
    story.drop("launcher.found", pid=SECOND)
    story.events = [
        replace(
            event,
            data={key: LAUNCHER if key == "ppid" else value for key, value in event.data.items() if key != "node"},
        )
        for event in story.events
    ]
    return story


LOST = changed(
    PLAN,
    faults=(PlannedFault("node", "kill", (2, 3), {"step": 7}, {"with": "launcher"}, None, 3, DEATH),),
    mechanism="none",
    recoveries=(),
)
TIMEOUT = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"


def lost(tmp_path: Path, *, log: str = TIMEOUT, code: int | None = 1, signal: int | None = None) -> Story:
    """Node 1 ends with its torchrun; the torchrun of node 0 ends with its log."""
    story = Story()
    for node, pid in ((0, LAUNCHER), (1, SECOND)):
        story.add(0.1, "launcher.found", pid=pid, role="launcher", node=node)
    for rank in range(RANKS):
        story.add(1, "agent.start", rank, 100 + rank)
        story.add(1.1, "rank.found", rank, 100 + rank, node=rank // 2)
    for rank in (2, 3):
        story.add(AT, "fault.injecting", rank, 100 + rank, fault="node", kind="kill")
    story.add(40, "launcher.exit", pid=LAUNCHER, role="launcher", signal=signal, code=code, node=0)
    story.add(40, "launcher.exit", pid=SECOND, role="launcher", signal=9, code=None, node=1)
    path = tmp_path / "logs" / "train" / "msrun.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    # A reader takes a log for torchrun's by its prefix.
    path.write_text(
        "E1128 16:32:21.880000 50 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) "
        f"local_rank: 0 (pid: 100) of binary: /usr/bin/python\n{log}\n"
    )
    return story


def verdicts(story: Story, tmp_path: Path) -> list[tuple[str, str]]:
    collector = Collector("mechanism")
    judge_lost_node(LOST, story.history(), Artifacts(tmp_path, None), collector)
    return [(finding.verdict, finding.seen) for finding in collector.findings()]


def test_the_torchrun_that_is_left_gives_up_by_the_join_timeout(tmp_path: Path) -> None:
    assert verdicts(lost(tmp_path), tmp_path) == [
        ("pass", "RendezvousTimeoutError of 1 torchrun, by lines of a log alone")
    ]


def test_another_plan_is_not_judged(tmp_path: Path) -> None:
    collector = Collector("mechanism")
    judge_lost_node(PLAN, lost(tmp_path).history(), Artifacts(tmp_path, None), collector)
    assert collector.findings() == []


@pytest.mark.parametrize(
    ("how", "seen"),
    [
        ({"log": TIMEOUT.replace("Timeout", "Closed")}, "ended by RendezvousClosedError"),
        ({"code": 0}, "exit code 0, not code 1"),
        ({"code": None, "signal": 15}, "ended by SIGTERM, not code 1"),
    ],
)
def test_another_end_of_the_torchrun_that_is_left_fails(tmp_path: Path, how: dict[str, object], seen: str) -> None:
    (finding,) = verdicts(lost(tmp_path, **how), tmp_path)  # type: ignore[arg-type]
    assert finding[0] == "fail"
    assert seen in finding[1]


def test_ranks_that_are_started_again_without_the_node_fail(tmp_path: Path) -> None:
    story = lost(tmp_path)
    story.add(AT + 5, "agent.start", 0, 200)
    assert verdicts(story, tmp_path) == [("fail", "rank 0 was started again")]


def no_exit(story: Story) -> None:
    story.drop("launcher.exit", pid=LAUNCHER)


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (no_exit, "how the torchrun of node 0 ended is not recorded"),
        (lambda story: story.drop("fault.injecting"), "nothing shows that fault node was made"),
        (lambda story: story.drop("rank.found"), "the nodes of the launchers and of the ranks are not recorded"),
    ],
)
def test_missing_evidence_is_unknown(tmp_path: Path, spoil: Callable[[Story], None], seen: str) -> None:
    story = lost(tmp_path)
    spoil(story)
    found = verdicts(story, tmp_path)
    assert ("unknown", seen) in found
    assert "fail" not in {verdict for verdict, _ in found} or spoil is not no_exit


def test_a_log_that_does_not_say_why_is_unknown(tmp_path: Path) -> None:
    (finding,) = verdicts(lost(tmp_path, log="Traceback"), tmp_path)
    assert finding == ("unknown", "the log of the torchrun of node 0 does not say why it ended with code 1")
