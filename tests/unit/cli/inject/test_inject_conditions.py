"""``chaos inject`` of faults that last: they hold in the ranks that were named, end in order, and are healed."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.faults.registered import fault_kind
from chaos.history.ledger import Ledger
from chaos.history.reader import read_history
from chaos.machine.linux.cgroup import cpu_hierarchy, group_of
from chaos.machine.linux.limits import open_files_limit
from chaos.machine.linux.process import ProcessIdentity, identify, state
from chaos.machine.linux.procfs import all_pids, command_line
from tests.kit.jobs.running_jobs import OwnJob, own_job
from tests.kit.spread import daily
from tests.unit.cli.forged_run import take_for_an_own_run, with_its_step_changed
from tests.unit.cli.kit import CONDITIONS, Ended

pytestmark = pytest.mark.processes

Call = Callable[..., Ended]

WORKING = ("sh", "-c", "while :; do sleep 0.01; done")
"""A rank that uses some processor time, without which no quota can be felt, and starts processes all the time."""

WAIT = 120.0

EVERY_DAY = ("cpu-load", "freeze")
"""One that lasts until it is ended, and one with an end of its own; tests/unit/faults makes the others every day."""


@pytest.fixture(params=daily(list(CONDITIONS), *EVERY_DAY))
def kind(request: pytest.FixtureRequest) -> str:
    """Each condition that this machine can make."""
    name = str(request.param)
    needs = fault_kind(name).needs
    if missing := [result for result in probe(needs, Machine()) if not result.ok]:
        pytest.skip(f"{name} needs {missing[0].need}: {missing[0].seen}")
    return name


@pytest.fixture
def job(tmp_path: Path) -> Iterator[OwnJob]:
    """Rank 1 is the one that is hit."""
    with own_job(tmp_path / "job", ranks=1) as job:
        job.start(1, *WORKING)
        yield job


def seen(identity: ProcessIdentity, reports: Path) -> dict[str, Any]:
    """What the faults change: how a process stands, and what runs beside it."""
    hierarchy = cpu_hierarchy()
    return {
        "state": state(identity),
        "limit": open_files_limit(identity),
        "group": None if hierarchy is None else group_of(identity.pid, hierarchy),
        "beside": [pid for pid in all_pids() if any(str(reports / "inject-") in one for one in command_line(pid))],
    }


def changed(before: dict[str, Any], now: dict[str, Any]) -> set[str]:
    return {name for name in before if before[name] != now[name]}


def is_as_before(identity: ProcessIdentity, reports: Path, before: dict[str, Any]) -> None:
    """Wait until what ran beside has ended: it has let go of its switch just before."""
    wait_for("its end", lambda: not seen(identity, reports)["beside"], seconds=WAIT)
    assert seen(identity, reports) == before


CHANGED = {"cpu-load": "beside", "cpu-quota": "group", "fd-limit": "limit", "freeze": "state", "memory-load": "beside"}


def inject(kind: str, job: OwnJob, reports: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "chaos", "inject", kind, *CONDITIONS[kind], "--rank", "1", "--job", str(job.logs)]
    return subprocess.Popen(
        [*command, "--json", "--reports", str(reports), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def has_landed(reports: Path) -> Path | None:
    runs = [path for path in reports.glob("inject-*") if (path / "history").is_dir()]
    return runs[0] if runs and read_history(runs[0] / "history").first("fault.landed") is not None else None


def test_it_lands_lasts_for_its_time_and_is_undone(chaos: Call, kind: str, job: OwnJob, reports: Path) -> None:
    other, identity = job.identities()[0], job.identities()[1]
    before, beside = seen(identity, reports), seen(other, reports)
    given = CONDITIONS[kind] if "--for" in CONDITIONS[kind] else (*CONDITIONS[kind], "--for", "500ms")
    ended = chaos("inject", kind, *given, "--rank", "1", "--job", str(job.logs), "--json")
    assert ended.code == 0, ended.err + ended.out
    result = json.loads(ended.out)
    (hit,) = result["hits"]
    assert (result["outcome"], result["undone"], hit["why"]) == ("landed", True, "")
    assert hit["evidence"]["said_by"].startswith("the kernel")
    is_as_before(identity, reports, before)
    assert seen(other, reports) == beside
    run = Path(result["directory"])
    assert not (run / "beside").exists()
    content = Ledger(run / "undo.jsonl").read()
    assert content.open == [] and len(content.steps) == 1
    history = read_history(run / "history")
    assert history.problems == ()
    landed, healed = history.first("fault.landed"), history.first("fault.healed")
    assert landed is not None and healed is not None
    assert healed.mono - landed.mono >= 500e6
    (evidence,) = landed.data["evidence"]
    assert (evidence["rank"], evidence["pid"]) == (1, identity.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)])
def test_without_a_time_it_holds_until_it_is_ended_in_order(
    kind: str, job: OwnJob, reports: Path, number: signal.Signals
) -> None:
    if kind == "freeze":
        pytest.skip("freeze is over after its own time, it has no other end")
    identity = job.identities()[1]
    before = seen(identity, reports)
    harness = inject(kind, job, reports)
    wait_for("the landing", lambda: has_landed(reports), seconds=WAIT)
    assert changed(before, seen(identity, reports)) >= {CHANGED[kind]}
    harness.send_signal(number)
    out, _ = harness.communicate(timeout=WAIT)
    result = json.loads(out)
    assert (harness.returncode, result["undone"], result["hits"][0]["why"]) == (0, True, "")
    is_as_before(identity, reports, before)


def test_heal_undoes_what_a_killed_injection_has_made_and_ends_nothing(
    chaos: Call, kind: str, job: OwnJob, reports: Path
) -> None:
    identities = job.identities()
    before = seen(identities[1], reports)
    harness = inject(kind, job, reports)
    if kind == "freeze":  # its history comes later, and it has an end
        wait_for("the freeze", lambda: state(identities[1]) == "stopped", seconds=WAIT)
    else:
        wait_for("the landing", lambda: has_landed(reports), seconds=WAIT)
    harness.kill()
    harness.communicate()
    if CHANGED[kind] == "beside":  # it ends with the harness, without anybody's help
        is_as_before(identities[1], reports, before)
    else:
        assert changed(before, seen(identities[1], reports)) == {CHANGED[kind]}
    healed = chaos("heal", "--json")
    assert healed.code == 0, healed.out
    (told,) = json.loads(healed.out)["runs"]
    assert told["failed"] == [] and told["done"]
    is_as_before(identities[1], reports, before)
    assert {state(identity) for identity in identities.values()} == {"alive"}
    assert job.identities() == identities
    assert chaos("heal").out == "nothing to heal in reports\n"


def test_two_ranks_each_have_their_load_and_the_memory_of_the_machine_is_taken_once(
    chaos: Call, job: OwnJob, reports: Path
) -> None:
    for kind, number in (("cpu-load", 2), ("memory-load", 1)):
        ended = chaos(
            "inject", kind, *CONDITIONS[kind], "--rank", "0", "--rank", "1", "--job", str(job.logs), "--for", "100ms"
        )
        assert ended.code == 0, ended.err + ended.out
        (run,) = reports.glob(f"inject-{kind}-*")
        assert len(Ledger(run / "undo.jsonl").read().steps) == number
        assert ended.out.count(": landed: ") == 2


def test_what_somebody_else_has_taken_back_is_told(job: OwnJob, reports: Path) -> None:
    identity = job.identities()[1]
    before = open_files_limit(identity)
    harness = inject("fd-limit", job, reports, "--for", "1h")
    wait_for("the landing", lambda: has_landed(reports), seconds=WAIT)
    resource.prlimit(identity.pid, resource.RLIMIT_NOFILE, (before, resource.prlimit(identity.pid, 7)[1]))
    out, _ = harness.communicate(timeout=WAIT)
    result = json.loads(out)
    assert (harness.returncode, result["undone"]) == (0, True)
    assert "another process has undone it" in result["hits"][0]["why"]
    assert open_files_limit(identity) == before


@pytest.mark.parametrize("name", daily(["cpu-load", "fd-limit", "memory-load"], "cpu-load", "fd-limit"))
def test_it_ends_with_the_ranks_that_it_is_in(name: str, job: OwnJob, reports: Path) -> None:
    harness = inject(name, job, reports, "--for", "1h")
    wait_for("the landing", lambda: has_landed(reports), seconds=WAIT)
    job.ranks[1].kill()
    job.ranks[1].wait()
    out, _ = harness.communicate(timeout=WAIT)
    result = json.loads(out)
    assert (harness.returncode, result["undone"]) == (0, True)
    assert "the rank has ended" in result["hits"][0]["why"]


def test_what_a_rank_starts_under_a_low_limit_gets_it_back_too(chaos: Call, job: OwnJob, reports: Path) -> None:
    """A loader that a rank starts for its next epoch would have the low limit for good otherwise."""
    work = job.work
    rank = job.start(
        1, "sh", "-c", "while ! [ -e go ]; do sleep 0.05; done; sleep 1000 & echo $! >new; mv new it; wait"
    )
    before = open_files_limit(identify(rank.pid))
    command = [sys.executable, "-m", "chaos", "inject", "fd-limit", "--rank", "1", "--job", str(rank.pid)]
    harness = subprocess.Popen([*command, "--reports", str(reports)], stdout=subprocess.DEVNULL)
    wait_for("the landing", lambda: has_landed(reports), seconds=WAIT)
    (work / "go").touch()
    wait_for("what the rank starts", lambda: (work / "it").exists(), seconds=WAIT)
    child = identify(int((work / "it").read_text()))
    try:
        assert open_files_limit(child) == open_files_limit(identify(rank.pid)) < before
        harness.kill()
        harness.wait()
        assert "and 1 that it has started" in chaos("heal").out
        assert open_files_limit(child) == open_files_limit(identify(rank.pid)) == before
    finally:
        subprocess.run(["kill", "-KILL", str(child.pid)], check=True)


@pytest.fixture
def killed_while_limited(job: OwnJob, reports: Path) -> Path:
    """The run of a ``chaos inject fd-limit`` that was killed while rank 1 had the low limit."""
    harness = inject("fd-limit", job, reports)
    run = wait_for("the landing", lambda: has_landed(reports), seconds=WAIT)
    harness.kill()
    harness.communicate()
    return run


NOT_GIVEN_BACK: list[tuple[dict[str, object], str]] = [
    ({"start_time": 7}, "has ended"),
    ({"rank": 5}, "is not seen to be rank 5; its limit was left alone"),
    ({"rank": "5"}, "does not say which process"),
    ({"soft": "5"}, "does not say which limit"),
    ({"soft": 1 << 40}, "cannot get its limit of"),
    ({"soft": 1}, "may open"),
]
"""What is wrong with a step, and what heal says of it."""


def test_heal_gives_no_other_process_and_no_other_limit_back(
    chaos: Call, job: OwnJob, reports: Path, killed_while_limited: Path
) -> None:
    limit = open_files_limit(job.identities()[1])
    for change, said in NOT_GIVEN_BACK:
        with with_its_step_changed(killed_while_limited, change):
            (told,) = json.loads(chaos("heal", "--json").out)["runs"]
            assert said in " ".join([*told["done"], *told["failed"]]), change
            assert open_files_limit(job.identities()[1]) == limit, change


def test_a_limit_of_a_running_job_is_nothing_for_a_run_that_started_its_own(
    chaos: Call, job: OwnJob, reports: Path, killed_while_limited: Path
) -> None:
    limit = open_files_limit(job.identities()[1])
    take_for_an_own_run(killed_while_limited)
    assert "belongs to a job that was running already" in chaos("heal").out
    assert open_files_limit(job.identities()[1]) == limit


def test_a_rank_that_somebody_else_has_stopped_is_not_frozen(chaos: Call, job: OwnJob, reports: Path) -> None:
    identity = job.identities()[1]
    job.ranks[1].send_signal(signal.SIGSTOP)
    wait_for("the stop", lambda: state(identity) == "stopped", seconds=WAIT)
    ended = chaos("inject", "freeze", "--for", "1s", "--rank", "1", "--job", str(job.logs), "--json")
    assert (ended.code, json.loads(ended.out)["outcome"]) == (2, "not landed")
    assert state(identity) == "stopped"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cpu-quota"], "cpu-quota needs --set cores=…: cores' time for the rank, a number from 0.01 to 256"),
        (["cpu-quota", "--set", "cores=0"], "cores of cpu-quota is a number from 0.01 to 256"),
        (["cpu-quota", "--set", "cores=one"], "cores of cpu-quota is a number"),
        (["memory-load", "--set", "megabytes=1.5"], "megabytes of memory-load is a whole number"),
        (["fd-limit", "--set", "spair=8"], "fd-limit has no parameter 'spair'; did you mean 'spare'?"),
        (["suspend", "--set", "spare=8"], "suspend has no parameter 'spare'; known: none"),
        (["cpu-load", "--set", "seconds=8"], "give the duration of cpu-load as --for TIME"),
        (["freeze"], "freeze needs --for 0.1s to 3s"),
        (["freeze", "--for", "4s"], "freeze needs --for 0.1s to 3s"),
    ],
)
def test_parameters_that_are_not_its_own_are_bad_usage(
    chaos: Call, job: OwnJob, reports: Path, arguments: list[str], said: str
) -> None:
    ended = chaos("inject", *arguments, "--rank", "1", "--job", str(job.logs))
    assert (ended.code, said in ended.err) == (64, True), ended.err
    assert not reports.exists()


def test_what_the_machine_lacks_is_told_before_anything_is_done(
    chaos: Call, job: OwnJob, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.doctor.control_groups.cpu_hierarchy", lambda *_: None)
    ended = chaos("inject", "cpu-quota", "--set", "cores=1", "--rank", "1", "--job", str(job.logs))
    assert ended.code == 64 and "cannot be injected on this machine: cgroup-cpu" in ended.err
    assert not reports.exists()
