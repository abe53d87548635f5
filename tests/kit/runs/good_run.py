"""A run directory as a good recovery leaves it, made without a job, to be spoilt one thing at a time.

Four ranks in the replica groups [0, 2] and [1, 3] train 12 steps. Rank 2 is killed at the end of step 5; ranks 0 and 1
save, all exit, and the job is started again at step 6.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.agent.digest import tensor_digest
from chaos.plan.io import dumps, fingerprint
from chaos.plan.job_effect import DEATH
from chaos.plan.model import Plan
from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Budget, Recovery
from tests.kit.fresh_copies import fresh_copies
from tests.kit.plans import changed, plan_with
from tests.unit.observe.mindformers_files import safetensors_of

RANKS = 4
GROUPS = ((0, 2), (1, 3))
LAST = 12
SAVED = 5
VICTIM = 2
FAULT = "kill-1"
WALL = 1_790_000_000_000_000_000
MONO = 5_000_000_000_000
LOG_ZONE_S = 8 * 3600
"""The machine that wrote the logs is eight hours ahead of UTC."""

OWN_PLAN = "of the plan that is written"
"""In an event's ``plan``: the fingerprint of plan.json, whatever the plan is when the run is written."""

SDK_FILE = "/elsewhere/chaos/rehearsal/sdk/mindio_ttp/framework_ttp.py"
"""From where the ranks have their SDK."""

Record = dict[str, Any]
State = dict[str, NDArray[Any]]

PHASES_S = {
    "detection": 0.6,
    "stop": 0.1,
    "save": 0.35,
    "exit": 0.28,
    "relaunch": 8.17,
    "load": 0.43,
    "compile": 1.5,
    "first step": 0.4,
    "caught up": 0.0,
}
"""What the recovery in this run takes, in seconds."""


def state_after(rank: int, step: int) -> State:
    """Weights and optimizer state of a rank after a step; replicas hold the same."""
    group = next(index for index, ranks in enumerate(GROUPS) if rank in ranks)
    base = np.arange(6, dtype=np.float32).reshape(2, 3) + group
    return {
        "layer1.weight": base - np.float32(0.01 * step),
        "layer1.bias": np.full(3, -0.02 * step, np.float32),
        "global_step": np.array([step], np.int32),
        "learning_rate": np.array(0.1, np.float32),
        "moments.layer1.weight": base * np.float32(0.5 * step),
        "moments.layer1.bias": np.full(3, 0.25 * step, np.float32),
    }


def digests_of(state: State) -> dict[str, str]:
    return {name: tensor_digest(str(array.dtype), array.shape, array.tobytes()) for name, array in state.items()}


def loss_after(rank: int, step: int) -> float:
    return float(np.float32(2.3 / (step + 1) + 0.01 * rank))


def hex_of(*parts: object) -> str:
    return blake2b("|".join(map(str, parts)).encode(), digest_size=16).hexdigest()


@dataclass
class Saved:
    """One checkpoint file before it is written, in the format that its name ends with: ``keep`` cuts its bytes."""

    path: str
    state: State
    appended: dict[str, int]
    keep: int | None = None
    flip: int | None = None

    def content(self) -> bytes:
        entries = dict(self.state)
        entries.update({name: np.array(value, np.int64) for name, value in self.appended.items()})
        content = bytearray(_content(self.path, entries))
        if self.flip is not None:
            content[self.flip] ^= 1
        return bytes(content[: self.keep])


def _content(path: str, entries: State) -> bytes:
    if not path.endswith(".safetensors"):
        return b"".join(_value(name, array) for name, array in entries.items())
    kinds = {"float32": "F32", "int32": "I32", "int64": "I64"}
    return safetensors_of(
        (name, kinds[str(array.dtype)], array.shape, array.tobytes()) for name, array in entries.items()
    )


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _value(name: str, array: NDArray[Any]) -> bytes:
    dims = b"".join(b"\x08" + _varint(dim) for dim in array.shape)
    kind = {"float32": "Float32", "int32": "Int32", "int64": "Int64"}[str(array.dtype)]
    tensor = dims + _field(2, kind.encode()) + _field(3, array.tobytes())
    return _field(1, _field(1, name.encode()) + _field(2, tensor))


def a_plan() -> Plan:
    files = {rank: f"ttp_saved_checkpoints-step_{SAVED}/rank_{rank}/ttp_rank_{rank}-1_{SAVED}.ckpt" for rank in (0, 1)}
    return plan_with(
        scenario="kill-rank",
        source="scenarios/kill-rank.yaml",
        cell="",
        seed=1,
        ranks=RANKS,
        nodes=1,
        replica_groups=GROUPS,
        faults=(PlannedFault(FAULT, "kill", (VICTIM,), {"step": SAVED, "phase": "step.end"}, {}, None, 14, DEATH),),
        mechanism="TTP",
        recoveries=(Recovery("TTP", (FAULT,), SAVED),),
        checkpoint=PlannedCheckpoint(
            step=SAVED,
            savers=(0, 1),
            entitled={0: (0,), 1: (1, 3)},
            directory=f"ttp_saved_checkpoints-step_{SAVED}",
            files=files,
        ),
        resumes=True,
        resume_step=SAVED + 1,
        last_step=LAST,
        steps_per_epoch=LAST,
        checkpoint_interval=None,
        protection=("TTP",),
        loss_tolerance=0.0,
        baseline="auto",
        budget=Budget(60.0, dict.fromkeys(PHASES_S, 10.0)),
        timings="fast",
        finding=None,
        reasons=("rank 2 dies at the end of step 5",),
        lines={
            "mechanism": 20,
            "checkpoint": 21,
            "checkpoint.step": 22,
            "checkpoint.ranks": 23,
            "resume.step": 24,
            "loss": 25,
            "recovery": 26,
            "recovery.detection": 27,
        },
    )


@dataclass
class GoodRun:
    """The parts of the run, open to change until :meth:`write`.

    ``files`` maps the name of a history file to its events; seq is given when it is written, unless an event has one.
    """

    plan: Plan = field(default_factory=a_plan)
    files: dict[str, list[Record]] = field(default_factory=dict)
    baseline: dict[str, list[Record]] | None = None
    saved: dict[int, Saved] = field(default_factory=dict)
    log: list[tuple[float, str]] = field(default_factory=list)
    others: dict[str, bytes] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)
    log_directory: str = "ttp"
    log_zone_s: int = LOG_ZONE_S

    def events(self, event: str, **match: object) -> Iterator[Record]:
        """Events of the run (not of the baseline) with these fields."""
        for records in self.files.values():
            yield from (entry for entry in records if _matches(entry, event, match))

    def only(self, event: str, **match: object) -> Record:
        (found,) = self.events(event, **match)
        return found

    def drop(self, event: str, **match: object) -> int:
        """Remove events, as if they had never been recorded. At least one must be there."""
        before = sum(map(len, self.files.values()))
        for name, records in self.files.items():
            self.files[name] = [entry for entry in records if not _matches(entry, event, match)]
        dropped = before - sum(map(len, self.files.values()))
        assert dropped, f"no {event} with {match}"
        return dropped

    def drop_file(self, prefix: str) -> None:
        """Remove a history file."""
        (name,) = [name for name in self.files if name.startswith(prefix)]
        del self.files[name]

    def add(self, file_prefix: str, record: Record) -> None:
        """Insert an event into a file, by its time."""
        (name,) = [name for name in self.files if name.startswith(file_prefix)]
        self.files[name].append(record)
        self.files[name].sort(key=lambda event: int(event["mono"]))

    def replan(self, **changes: Any) -> None:
        """Change the plan."""
        self.plan = changed(self.plan, **changes)

    def without_resume(self) -> None:
        """Forget the second launch, in plan and history."""
        self.replan(resumes=False, resume_step=None)
        self.files = {name: records for name, records in self.files.items() if not name.startswith("resume")}
        for name, records in self.files.items():
            self.files[name] = [event for event in records if event.get("attempt") != "resume"]

    def write(self, directory: Path) -> Path:
        """Write the run's directory."""
        (directory / "job").mkdir(parents=True, exist_ok=True)
        _write(directory / "plan.json", dumps(self.plan).encode())
        facts: Record = {
            "run": "r1",
            "scenario": self.plan.identity.scenario,
            "source": self.plan.identity.source,
            "cell": self.plan.identity.cell,
            "seed": 1,
            "versions": {"chaos": "0.1.0"},
            "sdk": "standin",
            "simulated": [{"part": "all-reduce", "layer": "communicator"}],
            "created": "2026-11-21T05:00:00+00:00",
        }
        _write(directory / "run.json", json.dumps(facts).encode())
        for name, records in self.files.items():
            _write(directory / "history" / name, written([self._with_plan(event) for event in records]))
        for name, content in self.raw.items():
            _write(directory / "history" / name, content)
        if self.baseline is not None:
            for name, records in self.baseline.items():
                _write(directory / "baseline" / "history" / name, written(records))
            _write(directory / "baseline" / "run.json", json.dumps({**facts, "run": "b1"}).encode())
        for saved in self.saved.values():
            _write(directory / saved.path, saved.content())
        if self.log:
            path = directory / "logs" / "train" / self.log_directory / f"ttp_log.log.{pid_of('train', 0)}"
            _write(path, "".join(_log_line(at, text, self.log_zone_s) for at, text in self.log).encode())
        for name, content in self.others.items():
            _write(directory / name, content)
        return directory

    def _with_plan(self, event: Record) -> Record:
        return {**event, "plan": fingerprint(dumps(self.plan).encode())} if event.get("plan") == OWN_PLAN else event


def _matches(entry: Record, event: str, match: dict[str, object]) -> bool:
    return entry["event"] == event and all(entry.get(key) == value for key, value in match.items())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def written(records: list[Record]) -> bytes:
    """The file of these events."""
    lines = []
    for number, event in enumerate(records):
        ordered = {"seq": event.get("seq", number), **{key: value for key, value in event.items() if key != "seq"}}
        lines.append(json.dumps(ordered) + "\n")
    return "".join(lines).encode()


def _log_line(at: float, text: str, zone_s: int) -> str:
    total_us = (WALL + round(at * 1e9)) // 1000 + zone_s * 1_000_000
    moment = np.datetime64(total_us, "us").astype(str).replace("T", " ")
    date, _, time = moment.partition(" ")
    second, _, micro = time.partition(".")
    return f"{date} {second}.{micro or 0:0>6} 710 info [710][TTP controller_state_machine.cpp:115] {text}\n"


def pid_of(attempt: str, rank: int) -> int:
    return {"train": 1000, "resume": 2000}[attempt] + rank


def record(
    at: float, event: str, attempt: str | None = None, rank: int | None = None, pid: int | None = None, **data: Any
) -> Record:
    """An event ``at`` seconds after the beginning."""
    offset = round(at * 1e9)
    return {
        "mono": MONO + offset,
        "wall": WALL + offset,
        "event": event,
        "attempt": attempt,
        "rank": rank,
        "pid": pid,
        **data,
    }


UNDO: Record = {
    "record": "step",
    "id": "job",
    "fault": None,
    "action": "end",
    "arguments": {},
    "note": "end the job",
}
"""The step of the undo ledger that every run has."""

UNDONE: Record = {"record": "close", "id": "job", "outcome": "done"}


def ledger(*records: Record) -> bytes:
    """An undo ledger."""
    return "".join(json.dumps(event) + "\n" for event in records).encode()


def start_of(writer: str, at: float, run: str = "r1", **place: Any) -> Record:
    return record(at, "writer.start", writer=writer, run=run, host="h1", boot="b1", **place)


def step_of(at: float, who: int, step: int, **place: Any) -> Iterator[Record]:
    yield record(at, "step.begin", step=step, **place)
    yield record(at + 0.04, "step.end", step=step, **place)
    yield record(
        at + 0.05,
        "digest",
        step=step,
        loss=loss_after(who, step).hex(),
        batch=hex_of("batch", who, step),
        gradients={"norm": (1.5 / step).hex(), "digest": hex_of("gradients", step)},
        parameters=digests_of(state_after(who, step)),
        cost_us=100.0,
        **place,
    )


def began(at: float, who: int, after: int, **place: Any) -> Iterator[Record]:
    yield record(at, "train.begin", initial_step=after, **place)
    yield record(at + 0.01, "initial", parameters=digests_of(state_after(who, after)), **place)


def agent_started(**place: Any) -> Iterator[Record]:
    """The agent of a rank in the first launch, and the SDK's import."""
    yield start_of("agent", 2.0, **place)
    yield record(2.1, "agent.start", python="3.11", argv=["train.py"], **place)
    yield record(3.0, "sdk.imported", file=SDK_FILE, **place)


def agent_ended(at: float, **place: Any) -> Iterator[Record]:
    """The end of a training that has gone through all steps in one process."""
    yield record(at, "train.end", **place)
    yield record(at + 0.1, "agent.cost", hooks_us_median=9.0, steps=LAST, digest_us_median=100.0, **place)


def handled(at: float, name: str, place: Record, **fields: Any) -> Iterator[Record]:
    """A call of a handler that ends well; ``fields`` are those of the call."""
    yield record(at, "handler.enter", name=name, **fields, **place)
    yield record(at + 0.02, "handler.exit", name=name, ok=True, **place)


def job_started(scenario: str) -> Iterator[Record]:
    """The harness's records until the ranks of the first launch are found."""
    yield start_of("harness", 0.0)
    yield record(0.1, "run.start", run="r1", scenario=scenario, cell="", seed=1, plan=OWN_PLAN, sdk="standin")
    yield record(1.0, "attempt.start", attempt="train", argv=["msrun"], cwd="job")
    yield record(1.1, "launcher.found", attempt="train", pid=900, role="launcher", start_time=90)
    yield record(1.2, "launcher.found", attempt="train", pid=901, role="scheduler", start_time=91)


def run_ended(at: float) -> Iterator[Record]:
    """The search for what the run has left, and its end."""
    yield record(at, "hygiene", orphans=[], ports=[], stale=[], private_left=False)
    yield record(at + 0.1, "run.end", interrupted=False, error=None)


def _train(rank: int) -> list[Record]:
    place: Record = {"attempt": "train", "rank": rank, "pid": pid_of("train", rank)}
    records = [
        *agent_started(**place),
        *began(9.0, rank, 0, **place),
    ]
    for step in range(1, SAVED + 1):
        records.extend(step_of(10 + 0.1 * (step - 1), rank, step, **place))
    if rank == VICTIM:
        records.append(record(10.46, "barrier.reached", fault=FAULT, step=SAVED, phase="step.end", **place))
        return records
    records.append(record(10.5, "step.begin", step=SAVED + 1, **place))
    if rank in (0, 1):
        path = (
            f"/elsewhere/r1/job/checkpoints/ttp_saved_checkpoints-step_{SAVED}_tmp/rank_{rank}/ttp_rank_{rank}-1_5.ckpt"
        )
        fields: Record = {"kind": "end-of-life", "step": SAVED, "path": path}
        records += [
            record(11.2, "handler.enter", name="save_ckpt", step=SAVED, **place),
            record(11.21, "checkpoint.begin", **fields, **place),
            record(11.3, "checkpoint.end", **fields, **place),
            record(11.31, "handler.exit", name="save_ckpt", ok=True, **place),
        ]
    if rank == 1:
        records += [
            record(11.5, "handler.enter", name="rename", step=SAVED, **place),
            record(11.55, "handler.exit", name="rename", ok=True, **place),
        ]
    records.append(record(11.7, "handler.enter", name="exit", **place))
    return records


def _resume(rank: int) -> list[Record]:
    place: Record = {"attempt": "resume", "rank": rank, "pid": pid_of("resume", rank)}
    source = rank if rank in (0, 1) else {2: 0, 3: 1}[rank]
    path = f"checkpoints/ttp_saved_checkpoints-step_{SAVED}/rank_{source}/ttp_rank_{source}-1_{SAVED}.ckpt"
    records = [
        start_of("agent", 13.8, **place),
        record(13.9 + 0.01 * rank, "agent.start", python="3.11", argv=["train.py"], **place),
        record(15.0, "sdk.imported", file=SDK_FILE, **place),
        record(20.0, "load.begin", path=path, **place),
        record(20.4 + 0.01 * rank, "load.end", path=path, parameters=9, **place),
        *began(21.0, rank, SAVED, **place),
    ]
    for step in range(SAVED + 1, LAST + 1):
        at = 21.9 + 0.01 * rank + 0.1 * (step - SAVED - 1) + (0.36 if step > SAVED + 1 else 0)
        own = list(step_of(at, rank, step, **place))
        if step == SAVED + 1:
            own = [
                {**event, "mono": event["mono"] + late, "wall": event["wall"] + late}
                for event, late in zip(own, (0, 360_000_000, 360_000_000), strict=True)
            ]
        records.extend(own)
    records += [
        record(24.0, "train.end", **place),
        record(24.1, "agent.cost", hooks_us_median=9.0, steps=7, digest_us_median=100.0, **place),
    ]
    return records


def _harness() -> list[Record]:
    records = [*job_started("kill-rank")]
    records += [
        record(2.5, "rank.found", attempt="train", rank=rank, pid=pid_of("train", rank), start_time=100 + rank)
        for rank in range(RANKS)
    ]
    victim: Record = {"attempt": "train", "rank": VICTIM, "pid": pid_of("train", VICTIM)}
    barrier: Record = {"step": SAVED, "phase": "step.end"}
    evidence = [{"rank": VICTIM, "pid": victim["pid"], "signal": 9, "barrier": barrier}]
    records += [
        record(9.5, "fault.armed", fault=FAULT, ranks=[VICTIM]),
        record(
            10.5, "fault.injecting", fault=FAULT, kind="kill", signal=9, target_rank=VICTIM, start_time=102, **victim
        ),
        record(10.52, "rank.exit", signal=9, code=None, **victim),
        record(10.55, "fault.landed", fault=FAULT, kind="kill", ranks=[VICTIM], **barrier, evidence=evidence),
    ]
    records += [
        record(
            11.8 + 0.01 * rank, "rank.exit", attempt="train", rank=rank, pid=pid_of("train", rank), signal=None, code=1
        )
        for rank in range(RANKS)
        if rank != VICTIM
    ]
    records += [
        record(11.9, "launcher.exit", attempt="train", pid=900, role="launcher", signal=None, code=0),
        record(12.0, "attempt.end", attempt="train"),
        record(12.1, "fault.healed", fault=FAULT, how="the process is gone"),
        record(12.5, "attempt.start", attempt="resume", argv=["msrun"], cwd="job"),
        record(12.6, "launcher.found", attempt="resume", pid=910, role="launcher", start_time=190),
    ]
    records += [
        record(13.85, "rank.found", attempt="resume", rank=rank, pid=pid_of("resume", rank), start_time=200 + rank)
        for rank in range(RANKS)
    ]
    records += [
        record(25.0, "rank.exit", attempt="resume", rank=rank, pid=pid_of("resume", rank), signal=None, code=0)
        for rank in range(RANKS)
    ]
    records += [
        record(25.1, "launcher.exit", attempt="resume", pid=910, role="launcher", signal=None, code=0),
        record(25.2, "attempt.end", attempt="resume"),
        *run_ended(26.0),
    ]
    return records


def _baseline() -> dict[str, list[Record]]:
    files = {
        "harness.jsonl": [
            start_of("harness", 0.0, run="b1"),
            record(0.1, "run.start", run="b1", scenario="kill-rank", cell="", seed=1, sdk="standin"),
            record(1.0, "attempt.start", attempt="train", argv=["msrun"], cwd="job"),
            *(
                record(25.0, "rank.exit", attempt="train", rank=rank, pid=500 + rank, signal=None, code=0)
                for rank in range(RANKS)
            ),
            record(26.1, "run.end", interrupted=False, error=None),
        ]
    }
    for rank in range(RANKS):
        place: Record = {"attempt": "train", "rank": rank, "pid": 500 + rank}
        records = [
            start_of("agent", 2.0, run="b1", **place),
            record(2.1, "agent.start", python="3.11", argv=[], **place),
            record(3.0, "sdk.imported", file=SDK_FILE, **place),
        ]
        records.extend(began(9.0, rank, 0, **place))
        for step in range(1, LAST + 1):
            records.extend(step_of(10 + 0.1 * step, rank, step, **place))
        files[f"train-rank_{rank}-{500 + rank}.jsonl"] = records
    return files


@fresh_copies
def good_run() -> GoodRun:
    """A run without a fault of its own."""
    run = GoodRun(baseline=_baseline())
    run.files["harness.jsonl"] = _harness()
    for rank in range(RANKS):
        run.files[f"train-rank_{rank}-{pid_of('train', rank)}.jsonl"] = _train(rank)
        run.files[f"resume-rank_{rank}-{pid_of('resume', rank)}.jsonl"] = _resume(rank)
    for rank in (0, 1):
        name = f"ttp_saved_checkpoints-step_{SAVED}/rank_{rank}/ttp_rank_{rank}-1_{SAVED}.ckpt"
        numbers = {"epoch_num": 1, "step_num": SAVED, "cur_rank": rank, "batch_num": LAST}
        run.saved[rank] = Saved(f"job/checkpoints/{name}", state_after(rank, SAVED), numbers)
    run.log = [
        (2.2, "nextState: STATE_OP_NORMAL"),
        (11.1, "nextState: STATE_OP_ABNORMAL"),
        (11.15, "nextState: STATE_OP_DUMP"),
        (11.56, "finish rename, rank:1"),
        (11.57, "DumpCallback return TTP_OK"),
        (11.6, "nextState: STATE_OP_EXIT"),
    ]
    run.others["undo.jsonl"] = ledger(UNDO, UNDONE)
    return run


Mutate = Callable[[GoodRun], object]


def float_hex_next(text: str) -> str:
    """The float32 after the one written in hex."""
    (bits,) = struct.unpack("<I", struct.pack("<f", float.fromhex(text)))
    (value,) = struct.unpack("<f", struct.pack("<I", bits + 1))
    return float(value).hex()
