"""Real torchrun jobs that chaos has not started: ranks are hit, the faults are undone, and the watch sees restarts."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.faults.registered import fault_kind
from chaos.machine.linux.process import state
from chaos.machine.running.running import JobProcess, RunningJob, survey
from tests.kit.jobs.torchrun_jobs import Torchrun, restart_count, torchrun_job
from tests.rehearsal.kit import WAIT_SECONDS, Chaos, Done, Harness


def test_ranks_are_hit_by_every_name_and_a_restart_is_seen(fresh: Chaos, tmp_path: Path) -> None:
    with torchrun_job(tmp_path / "job") as torchrun:
        launcher = torchrun.start(*C10D, "--redirects=3", "--log-dir=logs", "--nproc-per-node=2", "train.py")
        job = torchrun.job(2)
        first = by_rank(job)
        for process in first.values():
            torchrun.trains_on(process)
        logs = torchrun.work / "logs"
        watch = fresh.start("watch", "--job", str(launcher.pid), "--json")
        watch.until("its first look", lambda: watch.output.count('"rank.found"') == 2)

        (attempt,) = logs.glob("*/attempt_0")
        for name in (torchrun.work, logs, attempt.parent, attempt / "1", launcher.pid, first[0].pid):
            shown = fresh("inject", "kill", "--rank", "1", "--job", str(name), "--dry-run", "--json")
            assert [hit["pid"] for hit in shown.json["would_hit"]] == [first[1].pid], shown.output

        landed(fresh("inject", "fd-limit", "--rank", "1", "--job", logs, "--set", "spare=8", "--for", "1s", *at(fresh)))
        hold_and_heal(fresh, logs, first[0], watch)
        torchrun.trains_on(first[0])

        landed(fresh("inject", "kill", "--rank", "1", "--job", logs, *at(fresh)), undone=None, signal=9)
        second = by_rank(torchrun.job(2, instead_of={rank: process.identity for rank, process in first.items()}))
        for process in second.values():
            torchrun.trains_on(process)
        everybody = {process.pid: rank for each in (first, second) for rank, process in each.items()}
        watch.until("steps of all processes", lambda: trained(watch).keys() == everybody.keys())
        torchrun.finish()

        seen = events(watch)
        assert [(event["rank"], event["pid"]) for event in seen if event["event"] == "rank.restarted"] == [
            (rank, process.pid) for rank, process in second.items()
        ]
        ends = {event["pid"]: (event["rank"], event.get("signal")) for event in seen if event["event"] == "rank.exit"}
        assert ends[first[1].pid] == (1, 9)
        assert ends.keys() == trained(watch).keys()
        assert trained(watch) == everybody
        failed = [event for event in seen if event.get("kind") == "torchrun.failed"]
        assert [(event["pid"], event["fields"]["worker_pid"], event["fields"]["code"]) for event in failed] == [
            (launcher.pid, first[1].pid, -9)
        ]
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
        watch = fresh.start("watch", "--job", str(first[0].pid), "--json")
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
        everybody = {process.pid: rank for each in (first, second) for rank, process in each.items()}
        watch.until("steps of all processes", lambda: trained(watch).keys() == everybody.keys())
        torchrun.finish()

        seen = events(watch)
        restarted = {event["pid"]: event["instead_of"] for event in seen if event["event"] == "rank.restarted"}
        assert restarted.keys() == {process.pid for process in second.values()}
        assert set(restarted.values()) == {process.pid for process in first.values()}
        assert trained(watch) == everybody
        assert (seen[-1]["event"], torchrun.left()) == ("job.end", [])


STATIC = ("--master-addr=127.0.0.1", "--master-port={port}", "--nproc-per-node=2")

MASTER = ("--set", "port=master")

LASTING = {
    "suspend": (),
    "freeze": (),
    "cpu-load": (),
    "cpu-quota": ("--set", "cores=0.02"),
    "fd-limit": ("--set", "spare=8"),
    "memory-load": ("--set", "megabytes=64"),
}
"""Kinds that last and need only a rank, with their parameters. Damage to checkpoints has tests of its own."""


@pytest.mark.nightly
def test_every_kind_that_needs_only_a_rank_lands_and_is_undone(fresh: Chaos, tmp_path: Path) -> None:
    """The ranks write torchrun's own output, and have data workers that are started anew (spawn)."""
    with torchrun_job(tmp_path / "job") as torchrun:
        launcher = torchrun.start(*STATIC, "train.py", "spawn")
        ranks = by_rank(torchrun.job(2))
        for process in ranks.values():
            torchrun.trains_on(process)
        lacking = {
            name
            for name in (*LASTING, "connection-reset")
            if any(not found.ok for found in probe(fault_kind(name).needs, Machine()))
        }
        hit = 0
        for kind, parameters in LASTING.items():
            if kind in lacking:
                continue
            call = ("inject", kind, "--rank", "1", "--job", str(launcher.pid), *parameters)
            landed(fresh(*call, "--for", "2s", *at(fresh)))
            torchrun.trains_on(ranks[1])
            hit += 1
        if "connection-reset" not in lacking:  # ranks that train have nothing more to ask their store
            done = fresh("inject", "connection-reset", "--rank", "1", "--job", torchrun.work, *MASTER, *at(fresh))
            landed(done, undone=None, left=0)
            torchrun.trains_on(ranks[1])
            hit += 1
        landed(fresh("inject", "terminate", "--rank", "0", "--job", str(ranks[1].pid), *at(fresh)), undone=None)
        assert launcher.wait(WAIT_SECONDS) != 0
        wait_for("the end of all", lambda: not torchrun.left(), seconds=WAIT_SECONDS, detail=torchrun.printed)
        print(f"{hit + 1} kinds landed; this machine lacks what {sorted(lacking)} need")


@pytest.mark.nightly
def test_ranks_that_outlive_torchrun_are_hit_beside_a_new_launch(fresh: Chaos, tmp_path: Path) -> None:
    with torchrun_job(tmp_path / "job") as torchrun:
        launcher = torchrun.start(*STATIC, "--redirects=3", "--log-dir=logs", "train.py")
        left = by_rank(torchrun.job(2))
        for process in left.values():
            torchrun.trains_on(process)
        launcher.kill()
        launcher.wait()
        torchrun.trains_on(left[1])
        landed(fresh("inject", "suspend", "--rank", "1", "--job", torchrun.work, "--for", "1s", *at(fresh)), signal=19)

        torchrun.start(*STATIC, "--redirects=3", "--log-dir=logs", "train.py")
        jobs = wait_for("both launches", lambda: two(torchrun), seconds=WAIT_SECONDS, detail=torchrun.printed)
        refused = fresh("inject", "suspend", "--rank", "1", "--job", torchrun.work, "--for", "1s", *at(fresh))
        assert refused.code == 64 and "2 jobs run there; name one by its log directory or a PID" in refused.errors
        (new,) = [job for job in jobs if left[0].pid not in {process.pid for process in job.ranks}]
        assert {process.identity for process in left.values()}.isdisjoint(process.identity for process in new.ranks)
        for job in jobs:
            for name in (str(job.ranks[0].pid), Path(job.ranks[0].directories.above[0])):
                shown = fresh("inject", "kill", "--rank", "1", "--job", name, "--dry-run", "--json")
                assert [hit["pid"] for hit in shown.json["would_hit"]] == [job.ranks[1].pid], shown.errors


@pytest.mark.nightly
def test_ranks_with_variables_of_msrun_are_found_once(fresh: Chaos, tmp_path: Path) -> None:
    """A script below torchrun makes its ranks ranks of MindSpore."""
    with torchrun_job(tmp_path / "job") as torchrun:
        (torchrun.work / "rank.sh").write_text(
            "export MS_ROLE=MS_WORKER MS_NODE_ID=$RANK RANK_ID=$RANK MS_WORKER_NUM=$WORLD_SIZE\n"
            f"export MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=8118\n"
            f"{sys.executable} -c 'import time; time.sleep(1000)'\ntrue\n"
        )
        torchrun.start(*STATIC, "--no-python", "sh", "rank.sh")

        def started() -> RunningJob | None:
            job = torchrun.job(2)
            return job if all("sleep" in process.cmdline[-1] for process in job.ranks) else None

        job = wait_for("ranks that are Pythons", started, seconds=WAIT_SECONDS)
        ranks = by_rank(job)
        assert (sorted(ranks), job.size) == ([0, 1], 2)
        landed(fresh("inject", "suspend", "--rank", "1", "--job", torchrun.work, "--for", "1s", *at(fresh)), signal=19)


def two(torchrun: Torchrun) -> list[RunningJob] | None:
    """Return the jobs in the directory once there are two with two ranks each."""
    jobs = [job for job in survey().jobs if job.ranks and job.ranks[0].directories.cwd == str(torchrun.work)]
    return jobs if [len(job.ranks) for job in jobs] == [2, 2] else None


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


def hold_and_heal(chaos: Chaos, name: Path, process: JobProcess, watch: Harness) -> None:
    """Suspend a rank by a harness that is killed then, and let ``chaos heal`` continue it; the watch sees both."""
    harness = chaos.start("inject", "suspend", "--rank", str(process.rank), "--job", name, *at(chaos))
    harness.until("the suspension", lambda: state(process.identity) == "stopped")
    (run,) = [run for run in chaos.runs() if run.path.name.startswith("inject-suspend")]
    harness.event(run, "fault.landed")
    harness.signal(signal.SIGKILL)
    harness.process.wait()
    assert state(process.identity) == "stopped"
    watch.until("the stop", lambda: '"rank.stopped"' in watch.output)
    healed = chaos.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    watch.until("its continuation", lambda: '"rank.continued"' in watch.output)
    assert state(process.identity) == "alive"


def trained(watch: Harness) -> dict[int, int]:
    """The ranks that losses have been shown of so far, by the PIDs of their processes."""
    lines = [json.loads(line) for line in watch.output.splitlines(keepends=True) if line.endswith("\n")]
    return {line["pid"]: line["rank"] for line in lines if line.get("kind") == "train.loss"}


def events(watch: Harness) -> list[dict[str, Any]]:
    """Everything that a watch has printed, once it has ended with the job."""
    done = watch.end()
    assert done.code == 0, done.errors
    return [json.loads(line) for line in done.output.splitlines()]
