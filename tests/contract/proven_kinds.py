"""For every built-in fault kind a landing that is proven: the evidence, and what rank, cluster and machine recorded."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, cast

from chaos.base.registry import registry
from chaos.checks.injection.check import check
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.finding import Finding
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import NONE, JobEffect
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.resume import PlannedRestore
from tests.kit.plans import changed
from tests.kit.runs.good_run import a_plan
from tests.unit.checks import harmless

SECOND = 1_000_000_000
FAULT, RANK, PID, STEP = "it", 2, 77, 5
FILE = "rank_2/sliced-1_4.ckpt"
BEFORE, AFTER = "a" * 64, "b" * 64


@dataclass(frozen=True)
class Sample:
    """What a landed fault leaves: ``records`` are (event, seconds, fields) of the rank, ``others`` of anybody else."""

    evidence: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    phase: str = "step.begin"
    records: Sequence[tuple[str, float, dict[str, Any]]] = ()
    others: Sequence[Event] = ()
    ended: dict[str, Any] | None = None
    lasts: bool = False
    baseline: Sequence[tuple[str, float, dict[str, Any]]] = ()


def event(name: str, at: float, /, *, writer: str = "harness", rank: int | None = RANK, **data: Any) -> Event:
    mono = int(at * SECOND)
    pid = None if rank is None else PID
    return Event(name, mono, mono, writer, mono, "train", rank, pid, data, f"{writer}:{name}")


def _of_cluster(name: str, at: float, **data: Any) -> Event:
    return event(name, at, writer="kubernetes", rank=None, node=3, uid="u", **data)


def _acting(kind: str, **data: Any) -> tuple[str, float, dict[str, Any]]:
    return ("fault.acting", 12, {"fault": FAULT, "act": kind, **data})


def _own_end(kind: str, signal: int | None, code: int | None, **evidence: Any) -> Sample:
    how = {"signal": signal, "code": code}
    return Sample({**how, "act": kind, **evidence}, records=[_acting(kind)], ended=how)


def _hang(kind: str, witnesses: int = 0) -> Sample:
    ticks = [("fault.witness", 11.2 + 0.1 * number, {"count": number}) for number in range(witnesses)]
    return Sample({"signal": None, "act": kind, "state": "alive"}, records=[*ticks, _acting(kind)])


def _raised(**parameters: Any) -> Sample:
    error = {"type": "RuntimeError", "text": "UCE error occurs", **parameters}
    record = ("fault.raised", 12.0, {"fault": FAULT, "parameters": None, **error})
    return Sample({"signal": None, "raised": error["text"]}, parameters, records=[record])


def _digest(at: float, step: int, state: str, **data: Any) -> tuple[str, float, dict[str, Any]]:
    return ("digest", at, {"step": step, "parameters": {"layer1.weight": state}, "batch": f"b{step}", **data})


def _altered(what: str, phase: str, parameters: dict[str, Any], facts: dict[str, Any], **after: Any) -> Sample:
    record = ("fault.altered", 12, {"fault": FAULT, "what": what, **facts})
    return Sample(
        {"signal": None, "what": what, **facts},
        parameters,
        phase,
        [_digest(9, STEP - 1, "s4"), record, _digest(20, STEP, "other", **{"loss": (0.5).hex(), **after})],
        baseline=[_digest(4, STEP - 1, "s4"), _digest(5, STEP, "s5")],
    )


def _damaged(**evidence: Any) -> Sample:
    shown = {"signal": None, "file": FILE, "step": 4, "before": BEFORE, "after": AFTER, **evidence}
    return Sample(shown, records=[("checkpoint.end", 9, {"path": f"checkpoints/{FILE}", "step": 4})])


def _of_node(shown: dict[str, Any], signal: int | None = 9, *, lasts: bool = False, **parameters: Any) -> Sample:
    ended = None if signal is None else {"signal": signal, "code": None}
    return Sample({"signal": signal, "node": shown}, parameters, ended=ended, lasts=lasts)


def _of_pod(**evidence: Any) -> Sample:
    shown = {"signal": 9, "pod": {"name": "a", "uid": "u"}, "told_by": "the cluster", "by": "this run's order"}
    record = [_of_cluster("pod.state", 1, phase="Running"), _of_cluster("pod.gone", 12)]
    return Sample({**shown, **evidence}, others=record, ended={"signal": 9, "code": None})


_EXITED = {"status": "exited", "exit_code": 137, "oom_killed": False}
_FLIPPED = {"bit": 27, "element": 4, "dtype": "float32", "before": (0.5).hex(), "after": (8.0).hex()}
_NAN = float("nan")

SAMPLES: dict[str, Sample] = {
    "kill": Sample({"signal": 9}, ended={"signal": 9, "code": None}),
    "segfault": _own_end("segfault", 11, None),
    "abort": _own_end("abort", 6, None),
    "exit": _own_end("exit", None, 1),
    "oom": _own_end("oom", 9, None, oom_kill=1),
    "suspend": Sample({"signal": 19}, lasts=True),
    "hang": _hang("hang"),
    "hold-gil": _hang("hold-gil", witnesses=3),
    "data-stall": _hang("data-stall"),
    "uce": _raised(),
    "ecc": _raised(),
    "hcce": _raised(),
    "suspect-remote": _raised(),
    "link-error": _raised(),
    "exception": _raised(type="ValueError", text="no"),
    "flip-bit": _altered("gradient", "allreduce.enter", {"where": "gradient"}, _FLIPPED),
    "wrong-batch": _altered("batch", "forward", {}, {"from_step": STEP - 1}, batch=f"b{STEP - 1}"),
    "nonfinite-loss": _altered(
        "loss", "forward", {"value": _NAN}, {"before": (0.5).hex(), "after": _NAN.hex()}, loss=_NAN.hex()
    ),
    "slow-rank": Sample(
        {"signal": None, "act": "slow-rank", "factor": 3.0, "steps": 1},
        {"factor": 3.0},
        records=[
            _acting("slow-rank", factor=3.0, steps=1),
            ("step.end", 15, {"step": STEP}),
            ("fault.slowed", 15.1, {"fault": FAULT, "step": STEP, "own": 0.5, "waited": 1.0}),
            ("step.begin", 16.2, {"step": STEP + 1}),
        ],
    ),
    "spike": Sample(
        {"signal": None, "factor": 40.0, "norm": 8.0},
        {"norm": 8.0},
        "allreduce.enter",
        [
            ("fault.scaled", 12, {"fault": FAULT, "factor": 40.0, "norm": 8.0}),
            _digest(20, STEP, "s5", gradients={"norm": (8.0).hex()}),
        ],
    ),
    "link": Sample(
        {"signal": None, "device": "link.down"},
        phase="allreduce.enter",
        records=[("fault.device", 12, {"fault": FAULT, "action": "link.down"})],
    ),
    "pause": Sample(
        {"signal": None, "paused": STEP},
        records=[
            ("pause.enter", 12, {"step": STEP}),
            ("handler.exit", 12.1, {"name": "stream_sync", "ok": True}),
            ("pause.exit", 20, {"step": STEP}),
        ],
    ),
    "lose-checkpoint": Sample({"signal": None, "directory": "rank_2", "removed": ["sliced-1_4.ckpt"]}),
    "truncate-checkpoint": _damaged(bytes=[9, 4]),
    "flip-checkpoint": _damaged(),
    "stale-checkpoint": _damaged(),
    "partial-checkpoint": _damaged(),
    "remove-checkpoint": _damaged(after="absent"),
    "damage-record": _damaged(after="absent", file="rank_2/meta.json"),
    "rename-checkpoint": _damaged(after=BEFORE, renamed="rank_2/other-1_4.ckpt"),
    "node-kill": _of_node(_EXITED),
    "node-stop": _of_node({**_EXITED, "finished": "1970-01-01T00:00:12.300000000Z"}, grace=0),
    "node-restart": _of_node({"status": "running", "restarted": True}),
    "node-oom": _of_node({"oom_events": 1, "oom_kills": 1}),
    "node-pause": _of_node({"status": "paused"}, None, lasts=True),
    "node-disconnect": _of_node({"status": "running", "connected": False}, None, lasts=True),
    "npu-link-down": Sample(
        {"signal": None, "device": {"npu": 1}, "net_health": {"before": "Success", "after": "Fault"}}
    ),
    "device-reset": Sample(
        {"signal": None, "device": {"npu": 1}, "answer": {"status": "OK", "said": "'Status : OK'"}},
        ended={"signal": None, "code": 1},
    ),
    "node-reboot": Sample(
        {"signal": None, "boot": {"before": "a", "after": "b"}},
        records=[("writer.start", 1, {"boot": "a"})],
        others=[event("host.reboot", 12, node=3)],
    ),
    "pod-delete": _of_pod(),
    "pod-evict": _of_pod(),
    "node-drain": _of_pod(unschedulable=True),
    "node-not-ready": Sample({"signal": None, "taints": ["node.kubernetes.io/not-ready"]}),
}
SAMPLES |= {
    kind: Sample(shown, harmless.PARAMETERS.get(kind, {}), lasts="seconds" in harmless.PARAMETERS.get(kind, {}))
    for kind, shown in harmless.EVIDENCE.items()
}
SAMPLES["clock-skew"] = replace(SAMPLES["clock-skew"], records=[_acting("clock-skew", seen=-3599.999)])
SAMPLES["terminate"] = replace(SAMPLES["terminate"], records=[("train.end", 20, {})])


def own_samples() -> dict[str, Sample]:
    """The ``SAMPLE`` of kinds whose own test file has one."""
    found = {}
    for kind in registry("faults").names():
        name = f"tests.unit.faults.test_{kind.replace('-', '_')}"
        if kind not in SAMPLES and find_spec(name) is not None:
            found[kind] = import_module(name).SAMPLE
    return found


SAMPLES |= own_samples()


def planned(kind: str, sample: Sample, effect: JobEffect) -> PlannedFault:
    trigger = {"step": STEP, "phase": sample.phase}
    return PlannedFault(FAULT, kind, (RANK,), trigger, sample.parameters, None, 9, effect)


def findings(
    kind: str, spoil: Callable[[dict[str, Any]], object] = lambda evidence: None, sample: Sample | None = None
) -> list[Finding]:
    """What check ``injection`` says of a landed fault of this kind, whose evidence ``spoil`` has changed."""
    sample = sample or SAMPLES[kind]
    points = registry("faults")
    effect = points.load(kind).effect if kind in points.names() else NONE
    fault = planned(kind, sample, effect)
    restore = PlannedRestore(None, (), {}, {RANK: 4}) if effect.changes_file else None
    plan = changed(a_plan(), faults=(fault,), recoveries=(), mechanism=None, checkpoint=None, restore=restore)
    evidence = {"rank": RANK, "pid": PID, **copy.deepcopy(sample.evidence), "barrier": dict(fault.trigger)}
    spoil(evidence)
    events = tuple(sorted(_recorded(fault, sample, evidence), key=lambda fact: fact.mono))
    baseline = History(tuple(event(name, at, writer="agent", **data) for name, at, data in sample.baseline))
    return check(plan, History(events), cast(Artifacts, SimpleNamespace(baseline=baseline)))


def not_passed(found: list[Finding]) -> list[Finding]:
    """The findings that are no pass."""
    return [finding for finding in found if finding.verdict != "pass"]


def _recorded(fault: PlannedFault, sample: Sample, evidence: dict[str, Any]) -> Iterator[Event]:
    place = dict(fault.trigger)
    yield event("rank.found", 2, start_time=100, node=3)
    for name, at, data in (
        ("agent.start", 1.5, {}),
        ("step.end", 9.5, {"step": STEP - 1}),
        ("step.begin", 9.6, {"step": STEP}),
        ("barrier.reached", 10, {"fault": FAULT, **place}),
    ):
        yield event(name, at, writer="agent", **data)
    act = {"fault": FAULT, "kind": fault.kind, "target_rank": RANK, "signal": sample.evidence["signal"]}
    yield event("fault.injecting", 11, **act, start_time=100)
    for name, at, data in sample.records:
        yield event(name, at, writer="agent", **{"step": STEP, "phase": sample.phase, **data})
    if sample.ended is not None:
        yield event("rank.exit", 12.4, **sample.ended, start_time=100)
    yield event(
        "fault.landed", 12.6, rank=None, fault=FAULT, kind=fault.kind, ranks=[RANK], evidence=[evidence], **place
    )
    if sample.lasts:
        yield event(
            "fault.ending", 13.65, rank=None, fault=FAULT, evidence=[{"rank": RANK, "pid": PID, **sample.evidence}]
        )
    yield event("fault.healed", 13.7, rank=None, fault=FAULT, how="put back")
    yield from sample.others
