"""Recorded runs whose evidence is changed before they are judged: what they get is *fail* or *unknown*."""

from __future__ import annotations

from chaos.selftest.defect import Mutate
from chaos.selftest.files import line_changed, removed, rewritten
from chaos.selftest.records import Records, recorded


def _without(event: str, **match: object) -> Mutate:
    """Leave out the events of that name with these values."""
    return recorded(lambda records: records.drop(records.all(event, **match)))


def _altered(event: str, /, *, among: dict[str, object] | None = None, **values: object) -> Mutate:
    """Give the last event of that name, of those with the values ``among``, other values."""
    return recorded(lambda records: records.last(event, **(among or {})).update(values))


def _cut(pattern: str) -> Mutate:
    """Leave the first half of the files that match."""
    return rewritten(pattern, lambda content: content[: len(content.rstrip(b"\0")) // 2])


def _leave_a_gap(records: Records) -> None:
    records.drop([records.first("step.begin", rank=1)])


def _lose_the_numbers(records: Records) -> None:
    """Make each number in the evidence of the last fault 0, but for those that say which process was hit, and when."""
    for part in records.last("fault.landed")["evidence"]:
        part.update({key: _without_numbers(part[key]) for key in part.keys() - {"rank", "pid", "node", "barrier"}})


def _without_numbers(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_numbers(part) for part in value]
    return type(value)() if isinstance(value, (bool, int, float)) else value


_PROVED_BY_NUMBERS = (
    "live-tsp",
    "plain-clock-skew-offset-3600",
    "plain-damaged-checkpoint-damage-flip-checkpoint",
    "plain-network-loss",
    "plain-network-rate",
    "plain-oom",
    "plain-slow-storage",
    "plain-straggler",
    "plain-suspend-rank-agent-true",
    "plain-wrong-batch",
)
"""Recorded runs whose last fault is proved by what was measured."""

CHANGES: dict[tuple[str, str], Mutate] = {
    **{(name, "evidence-without-numbers"): recorded(_lose_the_numbers) for name in _PROVED_BY_NUMBERS},
    ("host-reboot", "clocks-not-measured"): _without("clock"),
    ("live-arf", "death-not-recorded"): _without("rank.exit", signal=9),
    ("live-uce", "fault-free-run-lost"): removed("baseline"),
    ("plain-arf", "controller-log-lost"): removed("logs/*/ttp/ttp_log.log.*"),
    ("plain-arf", "run-cut-off"): _without("run.end"),
    ("plain-damaged-checkpoint-damage-truncate-checkpoint", "no-record-of-a-load"): _without("load.end", rank=0),
    ("plain-flip-bit", "value-not-recorded"): _without("fault.altered"),
    ("plain-hcce", "history-cut"): _cut("history/train-rank_1-*.jsonl"),
    ("plain-host-load", "end-not-recorded"): _without("fault.healed"),
    ("plain-kill-rank", "another-loss"): _altered("digest", among={"step": 9, "rank": 1}, loss="0x1.0p+1"),
    ("plain-kill-rank", "checkpoint-cut"): _cut("job/checkpoints/**/*.ckpt"),
    ("plain-kill-rank", "checkpoint-lost"): removed("job/checkpoints/*"),
    ("plain-kill-rank", "fault-free-run-lost"): removed("baseline"),
    ("plain-kill-rank", "history-of-a-rank-lost"): removed("history/resume-rank_2-*.jsonl"),
    ("plain-link-error", "error-not-recorded"): _without("fault.raised"),
    ("plain-nonfinite-loss-value-nan", "value-not-recorded"): _without("fault.altered"),
    ("plain-own-end-kind-segfault", "another-signal"): _altered("rank.exit", among={"code": None}, signal=9),
    ("plain-partition-heals", "node-not-searched"): _without("hygiene.node", node=1),
    ("plain-rsc", "no-digest-of-a-step"): _without("digest", step=10, rank=1),
    ("plain-suspect-remote", "error-not-recorded"): _without("fault.raised"),
    ("plain-tre", "rollback-not-logged"): line_changed("logs/*/worker_*.log", r"(?m)^Resume training.*\n", ""),
    ("plain-tsp", "record-with-a-gap"): recorded(_leave_a_gap, renumber=False),
    ("plain-uce-phase-forward", "error-not-recorded"): _without("fault.landed"),
    ("plain-uce-phase-forward", "late-repair"): recorded(
        lambda records: records.delay(records.first("handler.exit")["mono"], 40_000_000_000)
    ),
    ("pods", "orphan-of-a-rank"): _altered("hygiene", orphans=[{"pid": 4711, "argv": ["sleep", "60"]}]),
}
"""By the name of the recorded run and by what is changed in it."""
