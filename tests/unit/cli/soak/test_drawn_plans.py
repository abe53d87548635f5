"""Plans of drawn scenarios agree with a reading of the vendor's rules that knows nothing of the plan's own code.

It reads the scenario's YAML, goes through its faults in order, and says what must become of each. Drawn scenarios have
ordinary faults at steps, far enough apart, and at most one more inside the last recovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.cli.soak.random_soak import draw_scenarios
from chaos.plan.model import Plan
from chaos.plan.parts.response import Recovery
from chaos.run.prepare.prepare import plan_cell

PHASES = ("step.begin", "forward", "allreduce.enter", "optimizer.update", "step.end")
NUMBER = 42


class Reading:
    """What one scenario must come to."""

    def __init__(self, scenario: dict[str, Any], plan: Plan) -> None:
        self.cluster, self.job, self.faults = scenario["cluster"], scenario["job"], scenario["faults"]
        self.everyone = set(range(self.cluster["ranks"]))
        columns = self.cluster.get("parallel", {}).get("model_parallel", 1)
        self.groups = [set(range(column, self.cluster["ranks"], columns)) for column in range(columns)]
        self.on = set(self.job["protection"])
        self.plan = plan
        self.hit = {fault.id: set(fault.ranks) for fault in plan.faults}  # the draw of a random target is the plan's
        self.done = 0

    def recoveries(self) -> Iterator[Recovery]:
        """What the mechanisms must do, in order. Asserts that what the scenario asks for is possible at all."""
        for fault in self.faults:
            if "handler" not in fault["trigger"]:
                for recovery in self._answer(fault):
                    self.done = recovery.step or self.done
                    yield recovery

    def _answer(self, fault: dict[str, Any]) -> Iterator[Recovery]:
        ids, kind, hit = (fault["id"],), fault["kind"], self.hit[fault["id"]]
        step, phase = fault["trigger"]["step"], fault["trigger"].get("phase", "step.begin")
        last = step if PHASES.index(phase) > PHASES.index("allreduce.enter") else step - 1
        if kind == "pause":
            yield Recovery("TSP", ids, None)
        elif kind == "spike":
            interval = self.job["checkpoint_interval"]
            yield Recovery("TRE", ids, (step - 1) // interval * interval, reads_checkpoint=True)
            assert step > interval
        elif "RSC" in self.on:
            yield self._restart(ids, hit, step, phase)
        elif online := self._online(fault, phase):
            copied = hit if online == "UCE" and "parameters" not in fault else set()
            yield Recovery(online, ids, last, copied=tuple(sorted(copied)))
            assert step > 1 and last < self.job["steps"] and self._left(copied)
        else:
            yield from self._lost(ids, hit, last)
            assert 0 < last < self.job["steps"]

    def _left(self, gone: set[int]) -> bool:
        """Whether every replica group has a rank left."""
        return all(group - gone for group in self.groups)

    def _online(self, fault: dict[str, Any], phase: str) -> str | None:
        if self.plan.fault_tolerance.strategies and "retry" not in self.plan.fault_tolerance.strategies:
            return None
        if fault["kind"] == "hcce":
            return "HCCE" if self.on & {"HCCE", "UCE"} else None
        in_update = fault["kind"] == "ecc" and phase == "optimizer.update"
        return "UCE" if fault["kind"] in ("uce", "ecc") and "UCE" in self.on and not in_update else None

    def _restart(self, ids: tuple[str, ...], hit: set[int], step: int, phase: str) -> Recovery:
        interval = self.job["checkpoint_interval"]
        saved = max(self.done, (step - 1) // interval * interval)
        ended = step if phase == "step.end" else step - 1
        ahead: set[int] = set()
        if phase == "optimizer.update":
            ahead = self.everyone - hit
        elif phase == "allreduce.enter":
            ahead = set().union(*(group for group in self.groups if not group & hit))
        assert step % interval or not (ahead or phase == "step.end")
        everyone = tuple(sorted(self.everyone))
        return Recovery(
            "RSC",
            ids,
            saved,
            restarted=everyone,
            reads_checkpoint=saved > 0,
            trained_again=ended - saved,
            one_more=tuple(sorted(ahead)),
        )

    def _lost(self, ids: tuple[str, ...], hit: set[int], last: int) -> Iterator[Recovery]:
        dead = set(hit)
        if "ARF" in self.on:
            new = hit | self._moved(hit)
            ranks = tuple(sorted(new))
            inside = [fault for fault in self.faults if fault["trigger"].get("after") == ids[0]]
            yield Recovery("ARF", ids, last, not inside, restarted=ranks, copied=ranks)
            assert self._left(new)
            if not inside:
                return
            (second,) = self.hit[inside[0]["id"]]
            assert second in self._entering(inside[0]["trigger"]["handler"], new)
            dead = new | {second}
        yield Recovery("TTP", ids, last)
        assert self._left(dead)
        assert self.plan.checkpoint is not None and self.plan.checkpoint.step == last
        assert [set(ranks) for ranks in self.plan.checkpoint.entitled.values()] == [one - dead for one in self.groups]
        assert self.plan.resume.resume_step == last + 1

    def _moved(self, hit: set[int]) -> set[int]:
        """The healthy ranks of the lost ones' nodes: the strategy recover moves a node's container as a whole."""
        size = len(self.everyone) // self.cluster.get("nodes", 1)
        nodes = {rank // size for rank in hit}
        if size == len(self.everyone) or "recover" not in self.plan.fault_tolerance.strategies:
            return set()
        return {rank for rank in self.everyone if rank // size in nodes} - hit

    def _entering(self, handler: str, new: set[int]) -> set[int]:
        if handler != "repair":
            return self.everyone - new
        found = set(new)
        for group in map(sorted, self.groups):
            for rank in new.intersection(group):
                circle = group[group.index(rank) :] + group[: group.index(rank)]
                found.add(next(other for other in circle if other not in new))
        return found


@pytest.mark.parametrize("kind", ["plain", "rehearsal"])
def test_what_is_planned_is_what_the_rules_say(tmp_path: Path, kind: str) -> None:
    for scenario in draw_scenarios(NUMBER, 31, kinds=[kind], mechanisms=[], directory=tmp_path):
        text = (tmp_path / f"{scenario.cell.scenario.name}.yaml").read_text()
        plan = plan_cell(scenario.loaded, scenario.cell)
        reading = Reading(yaml.safe_load(text), plan)
        assert [set(group) for group in plan.layout.replica_groups] == reading.groups, text
        assert list(plan.response.recoveries) == list(reading.recoveries()), text
