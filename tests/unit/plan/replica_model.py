"""A job by brute force: ranks that hold slices, walk through their steps, are hit, and recover by the vendor's rules.

Written from the vendor's documents and from what was observed of MindIO TFT 7.3, without the plan or the topology of
``chaos``: nothing of it is imported here. Every rule names its source.

- HA: MindSpore Transformers, Training High Availability.
- POWER: MindSpore, Power-off Checkpoint Preservation.
- TFT: MindIO TFT 7.3, observed with ranks in plain Python.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from dataclasses import dataclass, field

PHASES = ("step.begin", "forward", "allreduce.enter", "optimizer.update", "step.end")
SAVING = ("checkpoint.begin", "checkpoint.write", "checkpoint.end")

Slice = tuple[str, int, int, int]


@dataclass(frozen=True)
class Cluster:
    """Parallel sizes. ``shards`` is None without optimizer parallelism."""

    data: int
    model: int = 1
    stages: int = 1
    shards: int | None = None

    @property
    def ranks(self) -> int:
        return self.data * self.model * self.stages


def holdings(cluster: Cluster) -> list[frozenset[Slice]]:
    """What each rank holds: walks the device matrix (stage, data, model; the last is the fastest) rank by rank.

    HA: without optimizer parallelism all ranks along the data dimension hold the same; with it, the optimizer's state
    is dealt out along that dimension, in turn, over ``shards`` ranks.
    """
    matrix = itertools.product(range(cluster.stages), range(cluster.data), range(cluster.model))
    return [
        frozenset({("weights", stage, column, 0), ("optimizer", stage, column, index % (cluster.shards or 1))})
        for stage, index, column in matrix
    ]


@dataclass(frozen=True)
class Hit:
    """One fault. ``kind``: kill, suspend, memory, memory-low, memory-timed or communication."""

    kind: str
    ranks: frozenset[int]
    step: int
    phase: str

    @property
    def silences(self) -> bool:
        return self.kind in ("kill", "suspend")


@dataclass(frozen=True)
class Job:
    """What is trained and protected. ``interval``: steps between periodic checkpoints."""

    cluster: Cluster
    steps: int
    protection: tuple[str, ...]
    agent: bool = False
    controller_outside: bool = False
    interval: int | None = None

    @property
    def on(self) -> frozenset[str]:
        """HA: with UCE or ARF, TTP is on too."""
        implied = {"TTP"} if {"UCE", "ARF"} & set(self.protection) else set()
        return frozenset(self.protection) | implied


@dataclass(frozen=True)
class Recovered:
    """Training went on after ``step``."""

    mechanism: str
    step: int
    restarted: frozenset[int] = frozenset()
    copied: frozenset[int] = frozenset()


@dataclass
class Story:
    """How the launch went. ``saved`` maps each set of replicas to those that may save for it; None without a save.

    ``why`` is set where nothing can be promised, so that no plan may be made of it.
    """

    recoveries: list[Recovered] = field(default_factory=list)
    ends_at: int | None = None
    saved: dict[frozenset[int], frozenset[int]] | None = None
    why: str | None = None


@dataclass
class _Rank:
    number: int
    todo: list[tuple[int, str]]
    done: int = 0
    entered: int = 0
    out: bool = False
    files: set[int] = field(default_factory=set)


def tell(job: Job, hits: list[Hit], order: random.Random, *, ahead: bool = True) -> Story:
    """Let the job train, with its ranks in any order, until it has ended one way or the other.

    ``ahead``: whether replica groups that have lost nobody get through an all-reduce in which others wait, before the
    fault is answered.
    """
    return _Model(job, hits, order, ahead).tell()


class _Model:
    def __init__(self, job: Job, hits: list[Hit], order: random.Random, ahead: bool) -> None:
        self._job = job
        # TFT: its optimizer wrapper lets no rank update its weights before all have reduced their gradients.
        self._together = not ahead or bool(job.on - {"RSC"})
        self._open = list(hits)
        self._order = order
        self._ranks = [_Rank(number, self._walk(0)) for number in range(job.cluster.ranks)]
        by_holding: dict[frozenset[Slice], set[int]] = defaultdict(set)
        for number, held in enumerate(holdings(job.cluster)):
            by_holding[held].add(number)
        self.replicas = [frozenset(ranks) for ranks in by_holding.values()]
        self._story = Story()

    def tell(self) -> Story:
        while True:
            hits = self._train()
            if not hits:
                if self._open:
                    self._story.why = "a fault never comes"
                return self._story
            if not self._answer(hits):
                if self._open and self._story.why is None:
                    self._story.why = "a fault comes after the end"
                return self._story

    # Training.

    def _walk(self, done: int) -> list[tuple[int, str]]:
        walk = []
        for step in range(done + 1, self._job.steps + 1):
            saves = self._job.interval is not None and step % self._job.interval == 0
            walk += [(step, phase) for phase in (*PHASES, *(SAVING if saves else ()))]
        return walk

    def _train(self) -> list[Hit]:
        """Until nobody can go on; what has struck meanwhile."""
        hits: list[Hit] = []
        while able := [rank for rank in self._ranks if not rank.out and rank.todo and self._may_pass(rank)]:
            rank = self._order.choice(able)
            here = rank.todo[0]
            due = next((hit for hit in self._open if rank.number in hit.ranks and (hit.step, hit.phase) == here), None)
            if due is not None:
                self._open.remove(due)
                hits.append(due)
                for number in due.ranks:
                    self._ranks[number].out = True
                continue
            rank.todo.pop(0)
            step, phase = here
            if phase == "allreduce.enter":
                rank.entered = step
            elif phase == "optimizer.update":
                rank.done = step
            elif phase == "checkpoint.end":
                rank.files.add(step)
        return hits

    def _may_pass(self, rank: _Rank) -> bool:
        """Whether the rank can go through the point that it stands before, or be struck there."""
        step, phase = rank.todo[0]
        if phase == "optimizer.update" and not self._reduced(rank, step):
            return False  # it is still in the all-reduce
        for hit in self._open:  # a fault of several ranks strikes when all of them are there
            if rank.number in hit.ranks and (hit.step, hit.phase) == (step, phase):
                others = (self._ranks[number] for number in hit.ranks)
                return all(other.todo[:1] == [(step, phase)] and not other.out for other in others)
        return True

    def _reduced(self, rank: _Rank, step: int) -> bool:
        """Whether the gradients of a step are reduced: within the rank's replica group, after a forward pass in which
        all ranks had a part."""
        if self._together:
            return all(other.entered >= step for other in self._ranks)
        behind = [(step, "step.begin"), (step, "forward")]
        if any(other.todo[0][0] < step or other.todo[0] in behind for other in self._ranks if other.todo):
            return False
        (group,) = (replicas for replicas in self.replicas if rank.number in replicas)
        return all(self._ranks[number].entered >= step for number in group)

    # Recovery.

    def _answer(self, hits: list[Hit]) -> bool:
        """Whether training goes on."""
        good = [rank for rank in self._ranks if not rank.out]
        done = {rank.done for rank in good or self._ranks}
        if len(done) > 1 and self._together:
            return self._nothing_promised("ranks stand at different steps, and none of them is good")
        step = min(done)
        if max(done) >= self._job.steps:
            return self._nothing_promised("the others have finished")
        online = [hit for hit in hits if self._repaired_online(hit)]
        if online and len(hits) > 1:
            return self._nothing_promised("two faults before the first was answered")
        memory = any(hit.kind.startswith("memory") and not _in_update(hit) for hit in hits)
        if memory and self._job.on & {"HCCE", "UCE"} == {"HCCE"}:
            return self._nothing_promised("HA promises nothing for a memory error with HCCE alone")
        if online:
            return self._repair(online[0], step)
        return self._lose(hits, step)

    def _repaired_online(self, hit: Hit) -> bool:
        if _in_update(hit):
            return False  # TFT: tft_can_do_uce_repair is false when the error falls inside the optimizer update
        if hit.kind.startswith("memory"):
            return "UCE" in self._job.on
        return hit.kind == "communication" and bool(self._job.on & {"HCCE", "UCE"})

    def _repair(self, hit: Hit, step: int) -> bool:
        if hit.step < 2:
            return self._nothing_promised("TFT: before the groups are reported nothing can be repaired")
        broken = hit.ranks if hit.kind.startswith("memory") else frozenset()
        if any(replicas <= broken for replicas in self.replicas):
            # TFT: UCE on both replicas of a group. That nothing was lost (low level) it hears later, and it offers an
            # agent no repair either, seen with 26.1.
            return self._ends_without()
        lost = hit.ranks if hit.kind in ("memory", "memory-timed") else frozenset()
        if not lost and any(self._ranks[number].done != step for number in hit.ranks):
            return self._nothing_promised("nothing is copied, and the rank is a step behind the others")
        mechanism = "HCCE" if hit.kind == "communication" else "UCE"
        return self._goes_on(Recovered(mechanism, step, copied=lost))

    def _lose(self, hits: list[Hit], step: int) -> bool:
        job = self._job
        lost = frozenset(number for hit in hits for number in hit.ranks)
        silent = {number for hit in hits if hit.silences for number in hit.ranks}
        hopeless = any(replicas <= lost for replicas in self.replicas) or step < 1
        if "RSC" in job.on:
            kept = set.intersection(*(rank.files for rank in self._ranks))
            back = max(kept, default=0)
            everyone = frozenset(range(job.cluster.ranks))
            return self._goes_on(Recovered("RSC", back, restarted=everyone))
        if "ARF" in job.on and not hopeless:
            return self._goes_on(Recovered("ARF", step, restarted=lost, copied=lost))
        hosted = not job.controller_outside and not job.agent
        # POWER: the controller is in rank 0; HA: started by taskd it is a process of its own. TFT: no complete replica
        # of some group, or nothing trained: exit without a checkpoint.
        if "TTP" not in job.on or hopeless or (hosted and 0 in silent):
            return self._ends_without()
        self._story.ends_at = step
        self._story.saved = {replicas: replicas - lost for replicas in self.replicas}
        return False

    def _goes_on(self, recovered: Recovered) -> bool:
        self._story.recoveries.append(recovered)
        for rank in self._ranks:
            rank.done = rank.entered = recovered.step
            rank.todo, rank.out = self._walk(recovered.step), False
        return True

    def _ends_without(self) -> bool:
        self._story.ends_at = 0
        return False

    def _nothing_promised(self, why: str) -> bool:
        self._story.why = why
        return False


def _in_update(hit: Hit) -> bool:
    return hit.kind == "memory-timed" and hit.phase == "optimizer.update"
