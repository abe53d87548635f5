"""Makes the directory of a run as the harness leaves it of a big cluster: history, baseline, the logs of all ranks.

The ranks train in MindFormers' own loop, so their agents see no steps and the logs tell of them. One rank is killed
half-way; one rank of each replica group saves, all exit, and the job is started again and trains to its end. Nothing
is random: the same sizes give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.history.ledger import Ledger, UndoStep
from chaos.plan.io import dumps, fingerprint
from chaos.plan.model import Plan
from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.parts.equivalence import Equivalence
from chaos.plan.parts.explanation import Explanation
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.fault_tolerance import FaultTolerance
from chaos.plan.parts.identity import Identity
from chaos.plan.parts.known_finding import KnownFinding
from chaos.plan.parts.layout import RankLayout
from chaos.plan.parts.response import Budget, Recovery, Response
from chaos.plan.parts.resume import Resume
from chaos.plan.parts.training import Training

GROUPS = 8
FAULT = "kill-1"
WALL = 1_790_000_000_000_000_000
MONO = 5_000_000_000_000
STEP_MS = 731

Record = dict[str, Any]


@dataclass(frozen=True)
class BigRun:
    """Sizes of a run. ``ranks`` is a multiple of GROUPS, at least twice as many."""

    directory: Path
    ranks: int
    steps: int

    @property
    def saved(self) -> int:
        """The step that is saved."""
        return self.steps // 2

    @property
    def victim(self) -> int:
        """The rank that is killed."""
        return self.ranks - 3

    def log(self, attempt: str, rank: int) -> Path:
        """Where a rank's log is."""
        place = "baseline/logs/train" if attempt == "baseline" else f"logs/{attempt}"
        return self.directory / place / f"worker_{rank}.log"

    def logs(self) -> list[Path]:
        """All ranks' logs, those of the baseline too."""
        return [path for place in ("logs", "baseline/logs") for path in (self.directory / place).rglob("worker_*.log")]

    def make(self) -> None:
        """Write everything."""
        _write(self.directory / "plan.json", dumps(_plan(self)).encode())
        for name, run in ((".", "r1"), ("baseline", "b1")):
            facts = {"run": run, "scenario": "big", "simulated": [], "versions": {}}
            _write(self.directory / name / "run.json", json.dumps(facts).encode())
        _write_history(self.directory / "history" / "harness.jsonl", _harness(self))
        _write_history(self.directory / "baseline" / "history" / "harness.jsonl", _baseline(self))
        for rank in range(self.ranks):
            for attempt in ("train", "resume"):
                path = self.directory / "history" / f"{attempt}-rank_{rank}-{_pid(attempt, rank)}.jsonl"
                _write_history(path, _agent(self, attempt, rank))
        ledger = Ledger(self.directory / "undo.jsonl")
        ledger.close(ledger.record(UndoStep("job", None, "end", {}, "end the job")).id, "done")
        for rank in range(GROUPS):
            _write(self.directory / "job" / f"{self.checkpoint(rank)}.digests.json", _digests(self, rank))
        _write(self.directory / "logs" / "train" / "ttp" / "ttp_log.log.1000", _sdk_log(self))
        for group in range(GROUPS):
            ranks = range(group, self.ranks, GROUPS)
            _write_logs(self, "train", group, ranks, 1, self.saved + 1)
            _write_logs(self, "resume", group, ranks, self.saved + 1, self.steps)
            _write_logs(self, "baseline", group, ranks, 1, self.steps)

    def checkpoint(self, rank: int) -> str:
        """Path of a rank's end-of-life checkpoint in the job's directory."""
        name = f"ttp_rank_{rank}-1_{self.saved}.ckpt"
        return f"checkpoints/ttp_saved_checkpoints-step_{self.saved}/rank_{rank}/{name}"

    def drift(self, rank: int, step: int) -> str:
        """Change the last digit of one loss that a rank printed after the resume. Returns what it is now."""
        path = self.log("resume", rank)
        content = path.read_bytes()
        at = content.index(b"loss: ", content.index(b"step:[%5d/" % step)) + len(b"loss: ")
        end = content.index(b",", at)
        digit = b"%d" % ((int(content[end - 1 : end]) + 1) % 10)
        path.write_bytes(content[: end - 1] + digit + content[end:])
        return (content[at : end - 1] + digit).decode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_history(path: Path, records: Iterator[Record]) -> None:
    ordered = sorted(records, key=lambda record: int(record["mono"]))
    _write(path, "".join(json.dumps({"seq": seq, **one}) + "\n" for seq, one in enumerate(ordered)).encode())


def _pid(attempt: str, rank: int) -> int:
    return {"train": 10_000, "resume": 200_000}[attempt] + rank


def _times(run: BigRun) -> tuple[float, float, float]:
    """Seconds: the act of the fault, the second launch, the end."""
    fault = 10 + run.saved * STEP_MS / 1000
    return fault, fault + 60, fault + 120 + (run.steps - run.saved) * STEP_MS / 1000


def _record(at: float, event: str, **fields: Any) -> Record:
    offset = round(at * 1e9)
    frame: Record = {"mono": MONO + offset, "wall": WALL + offset, "event": event}
    return frame | {"attempt": None, "rank": None, "pid": None} | fields


def _start(at: float, writer: str, run: str, **place: Any) -> Record:
    return _record(at, "writer.start", writer=writer, run=run, host="h1", boot="b1", **place)


def _plan(run: BigRun) -> Plan:
    trigger = {"log": {"contains": f"step:[{run.saved:5d}/", "rank": run.victim}}
    return Plan(
        identity=Identity("big", "big.yaml", ""),
        layout=RankLayout(
            run.ranks, run.ranks // GROUPS, tuple(tuple(range(group, run.ranks, GROUPS)) for group in range(GROUPS))
        ),
        training=Training(seed=1, last_step=run.steps, steps_per_epoch=run.steps, checkpoint_interval=None),
        fault_tolerance=FaultTolerance(("TTP",)),
        faults=(PlannedFault(FAULT, "kill", (run.victim,), trigger, {}, None, 9, "death"),),
        response=Response("TTP", Budget(None, {}), "vendor", (Recovery("TTP", (FAULT,), None),)),
        checkpoint=PlannedCheckpoint(
            step=None,
            savers=tuple(range(GROUPS)),
            entitled={group: tuple(range(group, run.ranks, GROUPS)) for group in range(GROUPS)},
            directory=None,
            files={},
        ),
        resume=Resume(True, None),
        equivalence=Equivalence("auto", 0.0),
        known_finding=KnownFinding(None),
        explanation=Explanation(),
    )


def _harness(run: BigRun) -> Iterator[Record]:
    fault, again, end = _times(run)
    yield _start(0.0, "harness", "r1")
    plan = fingerprint(dumps(_plan(run)).encode())
    yield _record(0.1, "run.start", run="r1", scenario="big", cell="", seed=1, plan=plan, sdk="vendor")
    for attempt, began, ended in (("train", 1.0, fault + 30), ("resume", again, end)):
        yield _record(began, "attempt.start", attempt=attempt, argv=["msrun"], cwd="job")
        launcher = 900 + 10 * (attempt == "resume")
        place: Record = {"attempt": attempt, "pid": launcher, "role": "launcher"}
        yield _record(began + 0.1, "launcher.found", start_time=90, **place)
        for rank in range(run.ranks):
            own: Record = {"attempt": attempt, "rank": rank, "pid": _pid(attempt, rank)}
            yield _record(began + 2, "rank.found", start_time=100 + rank, **own)
            if attempt == "resume":
                yield _record(ended, "rank.exit", signal=None, code=0, **own)
            elif rank != run.victim:
                yield _record(fault + 20, "rank.exit", signal=None, code=1, **own)
        yield _record(ended + 0.1, "launcher.exit", signal=None, code=0, **place)
        yield _record(ended + 0.2, "attempt.end", attempt=attempt)
    victim: Record = {"attempt": "train", "rank": run.victim, "pid": _pid("train", run.victim)}
    yield _record(fault - 5, "fault.armed", fault=FAULT, ranks=[run.victim])
    act: Record = {"fault": FAULT, "kind": "kill"}
    aim: Record = {"signal": 9, "target_rank": run.victim, "start_time": 100 + run.victim}
    yield _record(fault, "fault.injecting", **act, **aim, **victim)
    yield _record(fault + 0.02, "rank.exit", signal=9, code=None, **victim)
    evidence = [{"rank": run.victim, "pid": victim["pid"], "signal": 9}]
    yield _record(fault + 0.05, "fault.landed", ranks=[run.victim], evidence=evidence, **act)
    yield _record(fault + 31, "fault.healed", fault=FAULT, how="the process is gone")
    yield _record(end + 1, "hygiene", orphans=[], ports=[], stale=[], private_left=False)
    yield _record(end + 2, "run.end", interrupted=False, error=None)


def _baseline(run: BigRun) -> Iterator[Record]:
    yield _start(0.0, "harness", "b1")
    yield _record(0.1, "run.start", run="b1", scenario="big", cell="", seed=1)
    yield _record(1.0, "attempt.start", attempt="train", argv=["msrun"], cwd="job")
    for rank in range(run.ranks):
        yield _record(9e4, "rank.exit", attempt="train", rank=rank, pid=_pid("train", rank), signal=None, code=0)
    yield _record(9.1e4, "run.end", interrupted=False, error=None)


def _agent(run: BigRun, attempt: str, rank: int) -> Iterator[Record]:
    fault, again, _ = _times(run)
    place: Record = {"attempt": attempt, "rank": rank, "pid": _pid(attempt, rank)}
    began = (1.0 if attempt == "train" else again) + 3
    yield _start(began, "agent", "r1", **place)
    yield _record(began + 0.1, "agent.start", python="3.11", argv=["run_mindformer.py"], **place)
    yield _record(began + 2, "sdk.imported", file="/site-packages/mindio_ttp/framework_ttp/__init__.py", **place)
    if attempt == "resume":
        path = run.checkpoint(rank % GROUPS)
        yield _record(began + 5, "load.begin", path=path, **place)
        yield _record(began + 6, "load.end", path=path, parameters=4, **place)
        return
    if rank == run.victim:
        return
    if rank < GROUPS:
        path = run.checkpoint(rank).replace(f"step_{run.saved}/", f"step_{run.saved}_tmp/")
        record: Record = {"kind": "end-of-life", "step": run.saved, "path": path}
        yield _record(fault + 11, "handler.enter", name="save_ckpt", step=run.saved, **place)
        yield _record(fault + 11.1, "checkpoint.begin", **record, **place)
        yield _record(fault + 12, "checkpoint.end", **record, **place)
        yield _record(fault + 12.1, "handler.exit", name="save_ckpt", ok=True, **place)
    if rank == 0:
        yield _record(fault + 13, "handler.enter", name="rename", step=run.saved, **place)
        yield _record(fault + 13.1, "handler.exit", name="rename", ok=True, **place)
    yield _record(fault + 15, "handler.enter", name="exit", **place)


def _digests(run: BigRun, rank: int) -> bytes:
    """What is kept of a checkpoint that is too large to keep."""
    numbers = {
        "epoch_num": 1,
        "step_num": run.saved,
        "cur_rank": rank,
        "batch_num": run.steps,
        "global_step": run.saved,
    }
    names = ("layer1.weight", "moments.layer1.weight", "global_step")
    state = {"digests": dict.fromkeys(names, f"{rank:032x}"), "infinite": [], "numbers": numbers}
    return json.dumps({"format": 1, "size": 1 << 34, "state": state, "problem": None}).encode()


def _sdk_log(run: BigRun) -> bytes:
    fault = _times(run)[0]
    states = ((2.0, "NORMAL"), (fault + 1, "ABNORMAL"), (fault + 2, "DUMP"), (fault + 14, "EXIT"))
    said = [(at, f"nextState: STATE_OP_{state}") for at, state in states]
    said += [(fault + 13.2, "finish rename, rank:0"), (fault + 13.3, "DumpCallback return TTP_OK")]
    lines = []
    for at, text in sorted(said):
        moment = str(np.datetime64(WALL // 1000 + round(at * 1e6), "us")).replace("T", " ")
        lines.append(f"{moment} 710 info [710][TTP controller_state_machine.cpp:115] {text}\n")
    return "".join(lines).encode()


def _loss(group: int, step: int) -> float:
    return 1.9 + 9 / (1 + step / 700) + 0.05 * ((step * 7919 + group * 104_729) % 997) / 997


def _write_logs(run: BigRun, attempt: str, group: int, ranks: range, first: int, last: int) -> None:
    """The logs of one replica group: all print the same losses, each at its own milliseconds."""
    content, digits = _log(run, attempt, group, first, last)
    for rank in ranks:
        own = content.copy()
        millis = (np.arange(len(digits)) * 37 + rank * 11) % 1000
        for at, unit in enumerate((100, 10, 1)):
            own[digits + at] = 0x30 + millis // unit % 10
        _write(run.log(attempt, rank), own.tobytes())


def _log(run: BigRun, attempt: str, group: int, first: int, last: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A log, and where its milliseconds stand."""
    began = WALL // 10**9 + {"train": 5, "resume": round(_times(run)[1]), "baseline": -400_000}[attempt]
    ahead = "[WARNING] ME(10:140,MainProcess):2026-11-21-01:27:09.708.000 [mindspore/a.py:59] deprecated\n"
    lines, places, length = [ahead], [], len(ahead)
    for step in range(first, last + 1):
        moment = str(np.datetime64(began + step * STEP_MS // 1000, "s")).replace("T", " ")
        place = f"{moment},000 - [mindformers/core/callback/callback.py:"
        line = (
            f"{place}529] - INFO - {{ Epoch:[  1/  1], step:[{step:5d}/{run.steps:5d}], "
            f"loss: {_loss(group, step):.3f}, per_step_time: {STEP_MS}ms, lr: 1e-05\n"
        )
        if step % 500 == 0:
            line += f"{place}1785] - INFO - Finish saving ckpt of epoch 1 step {step} using 0.5 seconds\n"
        lines.append(line)
        places.append(length + len(moment) + 1)
        length += len(line)
    return np.frombuffer("".join(lines).encode(), np.uint8), np.array(places)
