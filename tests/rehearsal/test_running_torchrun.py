"""Real torchrun jobs that chaos has not started: ranks are hit, the faults are undone, and the watch sees restarts."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from chaos.base.wait import wait_for
from chaos.machine.linux.process import state
from chaos.machine.running.running import JobProcess, RunningJob
from tests.kit.torchrun_jobs import restart_count, torchrun_job
from tests.rehearsal.kit import WAIT_SECONDS, Chaos, Done, Harness


def test_ranks_are_hit_by_every_name_and_a_restart_is_seen(fresh: Chaos, tmp_path: Path) -> None:
    with torchrun_job(tmp_path / "job") as torchrun:
        launcher = torchrun.start(*C10D, "--redirects=3", "--log-dir=logs", "--nproc-per-node=2", "train.py")
        job = torchrun.job(2)
        first = by_rank(job)
        for process in first.values():
            torchrun.trains_on(process)
        logs = torchrun.work / "logs"
        watch = fresh.start("watch", "--job", logs, "--json")
        watch.until("its first look", lambda: watch.output.count('"rank.found"') == 2)

        (attempt,) = logs.glob("*/attempt_0")
        for name in (torchrun.work, logs, attempt.parent, attempt / "1", launcher.pid, first[0].pid):
            shown = fresh("inject", "kill", "--rank", "1", "--job", str(name), "--dry-run", "--json")
            assert [hit["pid"] for hit in shown.json["would_hit"]] == [first[1].pid], shown.output

        landed(fresh("inject", "fd-limit", "--rank", "1", "--job", logs, "--set", "spare=8", "--for", "1s", *at(fresh)))
        hold_and_heal(fresh, "suspend", logs, first[0])
        torchrun.trains_on(first[0])

        landed(fresh("inject", "kill", "--rank", "1", "--job", logs, *at(fresh)), undone=None, signal=9)
        second = by_rank(torchrun.job(2, instead_of={rank: process.identity for rank, process in first.items()}))
        for process in second.values():
            torchrun.trains_on(process)
        torchrun.finish()

        seen = events(watch)
        assert [(event["rank"], event["pid"]) for event in seen if event["event"] == "rank.restarted"] == [
            (rank, process.pid) for rank, process in second.items()
        ]
        ends = {event["pid"]: (event["rank"], event.get("signal")) for event in seen if event["event"] == "rank.exit"}
        assert ends[first[1].pid] == (1, 9)
        assert ends.keys() == {process.pid for process in (*first.values(), *second.values())}
        assert {"rank.stopped", "rank.continued"} <= {event["event"] for event in seen}
        trained = {(event["rank"], event["pid"]) for event in seen if event.get("kind") == "train.loss"}
        assert trained == {(rank, process.pid) for each in (first, second) for rank, process in each.items()}
        assert (seen[-1]["event"], torchrun.left()) == ("job.end", [])


def test_two_nodes_are_one_job_also_when_it_is_started_again(fresh: Chaos, tmp_path: Path) -> None:
    """Their counts of restarts differ: only the node whose rank has died counts it."""
    with torchrun_job(tmp_path / "job") as torchrun:
        nodes = [
            torchrun.start(*C10D, "--rdzv-id=two", "--nnodes=2", f"--log-dir=logs_{node}", "train.py")
            for node in range(2)
        ]
        job = torchrun.job(2)
        first = by_rank(job)
        assert {process.pid for process in job.processes if process.role == "launcher"} == {
            process.pid for process in nodes
        }
        for process in first.values():
            torchrun.trains_on(process)
        watch = fresh.start("watch", "--job", torchrun.work, "--json")
        watch.until("its first look", lambda: watch.output.count('"rank.found"') == 2)
        hit = first[1]
        (own,) = [process for process in nodes if process.pid == hit.ppid]
        (other,) = [process for process in nodes if process.pid != hit.ppid]

        suspended = fresh("inject", "suspend", "--rank", "1", "--job", str(other.pid), "--for", "1s", *at(fresh))
        landed(suspended, signal=19)
        landed(fresh("inject", "kill", "--rank", "1", "--job", str(own.pid), *at(fresh)), undone=None, signal=9)
        second = by_rank(torchrun.job(2, instead_of={rank: process.identity for rank, process in first.items()}))
        counts = sorted(map(restart_count, second.values()))
        assert counts == ["0", "1"]
        for process in second.values():
            torchrun.trains_on(process)
        torchrun.finish()

        seen = events(watch)
        restarted = {event["pid"]: event["instead_of"] for event in seen if event["event"] == "rank.restarted"}
        assert restarted.keys() == {process.pid for process in second.values()}
        assert set(restarted.values()) == {process.pid for process in first.values()}
        trained = {event["pid"] for event in seen if event.get("kind") == "train.loss"}
        assert trained == {process.pid for each in (first, second) for process in each.values()}
        assert (seen[-1]["event"], torchrun.left()) == ("job.end", [])


C10D = ("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}", "--max-restarts=3", "--monitor-interval=0.1")


def by_rank(job: RunningJob) -> dict[int, JobProcess]:
    ranks = {process.rank: process for process in job.ranks if process.rank is not None}
    assert len(ranks) == len(job.ranks) and not any(process.doubt for process in job.ranks)
    return ranks


def at(chaos: Chaos) -> tuple[str | Path, ...]:
    return "--json", "--reports", chaos.reports


def landed(done: Done, *, undone: bool | None = True, **evidence: Any) -> None:
    assert (done.code, done.json["outcome"], done.json["undone"]) == (0, "landed", undone), done.output + done.errors
    (hit,) = done.json["hits"]
    assert evidence.items() <= hit["evidence"].items(), hit


def hold_and_heal(chaos: Chaos, kind: str, name: Path, process: JobProcess) -> None:
    """Suspend a rank by a harness that is killed then, and let ``chaos heal`` continue it."""
    harness = chaos.start("inject", kind, "--rank", str(process.rank), "--job", name, *at(chaos))
    harness.until("the suspension", lambda: state(process.identity) == "stopped")
    (run,) = [run for run in chaos.runs() if run.path.name.startswith(f"inject-{kind}")]
    harness.event(run, "fault.landed")
    harness.signal(signal.SIGKILL)
    harness.process.wait()
    assert state(process.identity) == "stopped"
    healed = chaos.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    wait_for("its continuation", lambda: state(process.identity) == "alive", seconds=WAIT_SECONDS)


def events(watch: Harness) -> list[dict[str, Any]]:
    """Everything that a watch has printed, once it has ended with the job."""
    done = watch.end()
    assert done.code == 0, done.errors
    return [json.loads(line) for line in done.output.splitlines()]
