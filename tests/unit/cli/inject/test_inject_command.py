"""``chaos inject``: the named ranks are hit and proved to be, the fault is undone, and nobody else is touched."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

from chaos.base.registry import registry
from chaos.base.wait import wait_for
from chaos.faults.kind import needed_from_start
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.reader import read_history
from chaos.machine.linux.process import state
from chaos.store.directory import read_run
from tests.contract.planning import plans_of, write_files
from tests.kit.jobs.running_jobs import OwnJob, own_job, untouched_job
from tests.unit.cli.forged_run import ledger_of, take_for_an_own_run, with_its_step_changed
from tests.unit.cli.kit import CONDITIONS, Ended

pytestmark = pytest.mark.processes

Call = Callable[..., Ended]

KINDS = [name for name in registry("faults").names() if needed_from_start(registry("faults").load(name)) is None]

AIMED: dict[str, tuple[str, ...]] = {
    "connection-reset": ("--set", "port=1"),
    "flip-checkpoint": (),
    "partial-checkpoint": (),
    "remove-checkpoint": (),
    "rename-checkpoint": (),
    "stale-checkpoint": (),
    "truncate-checkpoint": (),
}
"""Faults that hit what a job has, which this one has not, and what has to be said of each."""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[OwnJob]:
    with own_job(tmp_path / "one") as job:
        yield job


@pytest.fixture
def other(tmp_path: Path) -> Iterator[OwnJob]:
    """Another job beside it, with the same address and port. Whatever a test does, it is as before."""
    with untouched_job(tmp_path / "two") as job:
        yield job


@pytest.mark.parametrize("kind", ["kill", "terminate"])
def test_a_rank_is_ended_and_the_kernel_says_so(
    chaos: Call, job: OwnJob, other: OwnJob, reports: Path, kind: str
) -> None:
    number = {"kill": 9, "terminate": 15}[kind]
    identities = job.identities()
    ended = chaos("inject", kind, "--rank", "1", "--job", str(job.logs), "--json")
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    (hit,) = result["hits"]
    assert (result["outcome"], result["undone"]) == ("landed", None)
    assert (hit["pid"], hit["start_time"]) == (identities[1].pid, identities[1].start_time)
    assert hit["evidence"]["said_by"] == "the kernel, by the status of its zombie"
    assert job.ranks[1].wait() == -number
    assert state(identities[0]) == "alive"
    history = read_history(Path(result["directory"]) / "history")
    assert history.problems == ()
    landed = history.first("fault.landed")
    assert landed is not None and landed.data["evidence"][0]["signal"] == number
    (exited,) = history.select("rank.exit", rank=1, pid=identities[1].pid)
    assert exited.data["signal"] == number


def test_a_suspension_is_undone_after_its_time(chaos: Call, job: OwnJob, other: OwnJob, reports: Path) -> None:
    identities = job.identities()
    ended = chaos("inject", "suspend", "--rank", "1", "--job", str(job.work), "--for", "100ms")
    assert ended.code == 0, ended.err
    assert "landed" in ended.out and "undone: the job goes on" in ended.out
    assert {state(identity) for identity in identities.values()} == {"alive"}
    (run,) = reports.glob("inject-suspend-*")
    ledger = Ledger(run / "undo.jsonl").read()
    assert ledger.open == [] and len(ledger.steps) == 1
    history = read_history(run / "history")
    landed, healed = history.first("fault.landed"), history.first("fault.healed")
    assert landed is not None and healed is not None
    assert healed.mono - landed.mono >= 100e6


def test_a_rank_that_only_its_log_tells_is_continued_too(chaos: Call, tmp_path: Path, reports: Path) -> None:
    """msrun on several nodes without ``--node_rank`` gives it the RANK_ID of the scheduler."""
    with own_job(tmp_path / "one", ranks=0) as job:
        rank = job.start(0, MS_NODE_ID="", TZ="UTC0")
        now = f"{datetime.now(timezone.utc):%Y-%m-%d-%H:%M:%S}"
        where = f"[WARNING] DISTRIBUTED({rank.pid},7fb1,python):{now}.689.115 [a.cc:428] PostProcess]"
        with (job.logs / "worker_0.log").open("a") as log:
            log.write(f"{where} This node 1f-2e rank id: 3\n")
        ended = chaos("inject", "suspend", "--rank", "3", "--job", str(job.logs), "--for", "100ms", "--json")
        assert (ended.code, json.loads(ended.out)["undone"]) == (0, True), ended.err
        assert state(job.identities()[0]) == "alive"
        ended = chaos("inject", "kill", "--rank", "0", "--job", str(job.logs))
        assert (ended.code, state(job.identities()[0])) == (64, "alive") and "not among the ranks" in ended.err


def test_ctrl_c_ends_a_suspension_without_a_time_in_order(job: OwnJob, reports: Path) -> None:
    identity = job.identities()[1]
    command = [sys.executable, "-m", "chaos", "inject", "suspend", "--rank", "1", "--job", str(job.logs), "--json"]
    process = subprocess.Popen([*command, "--reports", str(reports)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    wait_for("the suspension", lambda: state(identity) == "stopped", seconds=120)
    wait_for("its record", lambda: any(reports.glob("*/history/*")) and landed(reports), seconds=120)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert json.loads(out)["undone"] is True
    assert state(identity) == "alive"


def landed(reports: Path) -> bool:
    (run,) = reports.glob("inject-*")
    return read_history(run / "history").first("fault.landed") is not None


def test_ctrl_c_before_the_time_is_over_is_an_interruption(job: OwnJob, reports: Path) -> None:
    identity = job.identities()[1]
    command = [sys.executable, "-m", "chaos", "inject", "suspend", "--rank", "1", "--job", str(job.logs)]
    process = subprocess.Popen([*command, "--for", "1h", "--reports", str(reports)], stdout=subprocess.DEVNULL)
    wait_for("the suspension", lambda: state(identity) == "stopped", seconds=120)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 130
    assert state(identity) == "alive"


@pytest.fixture
def killed_while_suspended(job: OwnJob, reports: Path) -> Path:
    """The run of a ``chaos inject suspend`` that was killed while rank 1 was stopped."""
    identity = job.identities()[1]
    command = [sys.executable, "-m", "chaos", "inject", "suspend", "--rank", "1", "--job", str(job.logs)]
    process = subprocess.Popen([*command, "--reports", str(reports)], stdout=subprocess.DEVNULL)
    wait_for("the suspension", lambda: state(identity) == "stopped", seconds=120)
    process.kill()
    process.wait()
    (run,) = reports.glob("inject-*")
    return run


def test_heal_continues_what_a_killed_injection_has_stopped_and_ends_nothing(
    chaos: Call, job: OwnJob, other: OwnJob, reports: Path, killed_while_suspended: Path
) -> None:
    identities = job.identities()
    assert state(identities[1]) == "stopped"
    healed = chaos("heal", "--json")
    assert healed.code == 0
    (told,) = json.loads(healed.out)["runs"]
    assert any(f"continued {identities[1]}" in text for text in told["done"])
    assert {state(identity) for identity in identities.values()} == {"alive"}
    assert chaos("heal").out == "nothing to heal in reports\n"


def test_heal_ends_no_process_of_such_a_job_whatever_the_ledger_and_the_environment_say(
    chaos: Call, job: OwnJob, reports: Path, killed_while_suspended: Path
) -> None:
    token = read_run(killed_while_suspended)["token"]
    job.start(7, CHAOS_RUN=token)  # as nobody ever makes one
    # Proved by this user's key, as if a harness had written it: the guards behind the proof hold as well.
    ledger_of(killed_while_suspended).record(UndoStep("job", None, "end-job", {"run": token}))
    healed = chaos("heal", "--json")
    assert healed.code == 3
    (told,) = json.loads(healed.out)["runs"]
    assert any("must not end it; nothing was ended" in text for text in told["failed"])
    assert {state(identity) for identity in job.identities().values()} == {"alive"}


NOT_CONTINUED: list[tuple[dict[str, object], str]] = [
    ({"start_time": 7}, "has ended"),
    ({"pid": os.getpid()}, "has ended"),
    ({"rank": 5}, "is not seen to be rank 5; nothing was sent"),
    ({"rank": "5"}, "does not say which process"),
]
"""What is wrong with a step, and what heal says of it."""


def test_heal_continues_no_other_process_than_the_one_that_was_stopped(
    chaos: Call, job: OwnJob, reports: Path, killed_while_suspended: Path
) -> None:
    for change, said in NOT_CONTINUED:
        with with_its_step_changed(killed_while_suspended, change):
            (told,) = json.loads(chaos("heal", "--json").out)["runs"]
            assert said in " ".join([*told["done"], *told["failed"]]), change
            assert state(job.identities()[1]) == "stopped", change


def test_a_step_for_a_running_job_is_nothing_for_a_run_that_started_its_own(
    chaos: Call, job: OwnJob, reports: Path, killed_while_suspended: Path
) -> None:
    take_for_an_own_run(killed_while_suspended)
    assert "belongs to a job that was running already" in chaos("heal").out
    assert state(job.identities()[1]) == "stopped"


def test_what_somebody_else_has_stopped_is_not_hit_and_stays_stopped(chaos: Call, job: OwnJob, reports: Path) -> None:
    identity = job.identities()[1]
    job.ranks[1].send_signal(signal.SIGSTOP)
    wait_for("the stop", lambda: state(identity) == "stopped", seconds=120)
    ended = chaos("inject", "suspend", "--rank", "0", "--rank", "1", "--job", str(job.logs), "--for", "50ms", "--json")
    assert ended.code == 2
    first, second = json.loads(ended.out)["hits"]
    assert (first["outcome"], second["outcome"]) == ("landed", "not landed")
    assert "already stopped by another process" in second["why"]
    assert state(identity) == "stopped"


def test_an_end_that_nobody_can_tell_is_unknown(
    chaos: Call, job: OwnJob, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a kernel before 6.15 the parent may be quicker than everybody else; only root hears of it all the same."""
    monkeypatch.setattr("chaos.machine.running.adopted.listen", lambda: None)
    monkeypatch.setattr("chaos.machine.running.adopted.wait_status", lambda descriptor: None)
    monkeypatch.setattr("chaos.machine.running.adopted.read_stat", lambda pid: None)
    ended = chaos("inject", "kill", "--rank", "1", "--job", str(job.logs), "--json")
    assert ended.code == 2
    result = json.loads(ended.out)
    assert result["outcome"] == "unknown"
    assert "nobody: its parent has collected the status" in result["hits"][0]["why"]
    assert read_history(Path(result["directory"]) / "history").first("fault.landed") is None


def test_a_rank_that_ended_before_is_not_taken_for_hit(
    chaos: Call, job: OwnJob, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the time of the fault it is a zombie that somebody else has killed."""
    from chaos.attach import inject as adopted

    inject = adopted.inject

    def late(*arguments: object, **named: object) -> object:
        job.ranks[1].kill()
        wait_for("its end", lambda: state(identity) == "zombie", seconds=120)
        return inject(*arguments, **named)  # type: ignore[arg-type]

    identity = job.identities()[1]
    monkeypatch.setattr(adopted, "inject", late)
    ended = chaos("inject", "kill", "--rank", "1", "--job", str(job.logs), "--json")
    assert (ended.code, json.loads(ended.out)["outcome"]) == (2, "not landed")


def test_a_dry_run_shows_who_would_be_hit_and_changes_nothing(chaos: Call, job: OwnJob, reports: Path) -> None:
    ended = chaos("inject", "kill", "--rank", "1", "--job", str(job.logs), "--dry-run")
    assert ended.code == 0
    title, heads, row, rest = ended.out.splitlines()
    assert title == "kill would hit:"
    assert heads.split() == ["rank", "PID", "started", "role", "command", "container"]
    assert row.split()[:2] == ["1", str(job.ranks[1].pid)] and row.endswith("rank  sleep 1000")
    assert rest == f"not hit: rank 0 {job.ranks[0].pid}"
    result = json.loads(chaos("inject", "kill", "--rank", "1", "--job", str(job.logs), "--dry-run", "--json").out)
    assert [one["pid"] for one in result["would_hit"]] == [job.ranks[1].pid]
    assert {state(identity) for identity in job.identities().values()} == {"alive"}
    assert not reports.exists()


def test_every_fault_that_needs_no_agent_is_offered_and_the_others_say_what_they_need(
    chaos: Call, job: OwnJob, reports: Path
) -> None:
    for kind in registry("faults").names():
        given = {**CONDITIONS, **AIMED}.get(kind, ()) if kind in KINDS else ()
        ended = chaos("inject", kind, "--rank", "1", "--job", str(job.logs), "--dry-run", *given)
        if kind in AIMED and "cannot be injected on this machine" not in ended.err:
            assert ended.code == 64 and f"{kind} would hit nothing: rank 1" in ended.err
            continue
        if kind in KINDS and "cannot be injected on this machine" not in ended.err:
            assert ended.code == 0, ended.err
            continue
        assert ended.code == 64 and "chaos run SCENARIO" in ended.err
        assert f"Faults for a running job: {', '.join(KINDS)}" in ended.err
        hazardous = kind in ("device-reset", "node-reboot", "npu-link-down")
        assert hazardous is ("allow it by name" in ended.err)
        assert ("by the agent inside the rank" in ended.err) is ("PYTHONPATH=" in ended.err)
    assert {"kill", "suspend", "terminate", *CONDITIONS, *AIMED} == set(KINDS)
    assert "by the agent inside the rank" in chaos("inject", "uce", "--rank", "1", "--job", str(job.logs)).err
    assert "by the agent" not in chaos("inject", "read-only", "--rank", "1", "--job", str(job.logs)).err
    assert not reports.exists()


def test_the_scenario_that_a_refusal_shows_can_be_planned(
    chaos: Call, job: OwnJob, reports: Path, tmp_path: Path
) -> None:
    directory = write_files(tmp_path)
    for kind in sorted(set(registry("faults").names()) - set(KINDS)):
        answer = chaos("inject", kind, "--rank", "1", "--job", str(job.logs)).err
        scenario = textwrap.dedent("".join(line for line in answer.splitlines(True) if line.startswith("  ")))
        assert scenario.startswith("chaos: 1\n"), answer
        assert plans_of(scenario, directory)
        cluster = yaml.safe_load(scenario)["cluster"]
        assert ("platform" in cluster) is ("it needs the platform " + cluster.get("platform", "") in answer)
        if "nodes" in cluster:
            assert f"{cluster['nodes']} nodes:" in answer


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kill", "--rank", "9"], "not among the ranks of that job on this host (0-1 of 2)"),
        (["kill", "--rank", "0", "--for", "5s"], "kill is over at once, so it has no duration"),
        (["suspend", "--rank", "0", "--for", "5"], "a duration needs a unit"),
        (["kil", "--rank", "0"], "did you mean 'kill'?"),
    ],
)
def test_what_is_not_clear_is_bad_usage(
    chaos: Call, job: OwnJob, reports: Path, arguments: list[str], said: str
) -> None:
    ended = chaos("inject", *arguments, "--job", str(job.logs))
    assert (ended.code, said in ended.err) == (64, True), ended.err
    assert not reports.exists()


def test_an_injection_is_not_judged(chaos: Call, job: OwnJob, reports: Path) -> None:
    result = json.loads(chaos("inject", "kill", "--rank", "1", "--job", str(job.logs), "--json").out)
    ended = chaos("analyze", result["run"])
    assert ended.code == 64 and "nothing was planned, so there is no verdict" in ended.err
    assert json.loads((Path(result["directory"]) / "injection.json").read_text()) == result


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 130), (b"y\n", 0)])
def test_on_a_terminal_it_shows_who_would_be_hit_and_asks(job: OwnJob, reports: Path, answer: bytes, code: int) -> None:
    here, there = pty.openpty()
    command = [sys.executable, "-m", "chaos", "inject", "kill", "--rank", "1", "--job", str(job.logs)]
    process = subprocess.Popen([*command, "--reports", str(reports)], stdin=there, stdout=there, stderr=there)
    os.close(there)
    shown = b""
    while b"? [y/N]: " not in shown:
        shown += os.read(here, 1000)
    assert f"kill rank 1 (PID {job.ranks[1].pid})".encode() in shown
    assert job.ranks[1].poll() is None
    os.write(here, answer)
    with suppress(OSError):  # EIO once nobody has the terminal open any more
        while os.read(here, 1000):
            pass
    os.close(here)
    assert process.wait(120) == code
    assert (job.ranks[1].poll() == -9) is (code == 0)
