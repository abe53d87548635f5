"""What is not this user's is done step by step on an operator's word, with the operator's access, never for code."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.cli import codes
from chaos.cli.main import entry
from chaos.heal.caller_access import with_caller_access
from chaos.heal.undo import CannotUndo
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.processes import find_run_processes
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes.client.kubeconfig import refuse_programs
from chaos.store.directory import RunDirectory, make_private_directory, read_run, write_json

pytestmark = pytest.mark.processes

HOST = {"name": "a", "address": "10.0.0.1", "port": 22}
INVENTORY = """inventory: 1
defaults: {user: me, key: own, python: /usr/bin/python3, directory: /var/tmp}
hosts: [{name: a, address: 10.0.0.1}]
"""


@pytest.fixture
def foreign(dead: RunDirectory, tmp_path: Path) -> RunDirectory:
    """A run without proofs, with a job that works in its directory and a private directory."""
    described = {key: value for key, value in read_run(dead.path).items() if key != "proof"}
    write_json(dead.path / "run.json", described)
    ledger = Ledger(dead.path / "undo.jsonl")
    make_private_directory(ledger, dead.token, parent=tmp_path)
    ledger.record(UndoStep("job", None, "end-job", {"run": dead.token}, "end every process of the job"))
    return dead


def job_in(directory: Path, token: str) -> subprocess.Popen[bytes]:
    job = subprocess.Popen(["sleep", "1000"], cwd=directory, env={"CHAOS_RUN": token}, start_new_session=True)
    wait_for("it", lambda: find_run_processes(token), seconds=30)
    return job


def test_only_what_is_named_is_done_and_the_rest_is_told(
    foreign: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with job_in(foreign.path, foreign.token) as job:
        assert entry(["heal", str(foreign.path), "--trust"]) == codes.HARNESS
        assert "would" in capsys.readouterr().out and job.poll() is None, "without a terminal nothing is done unnamed"
        named = ["heal", str(foreign.path), "--trust", "--trust-step", "job", "--json"]
        assert entry(named) == codes.HARNESS
        (told,) = json.loads(capsys.readouterr().out)["runs"]
        assert told["done"][0].startswith("job: ended process ") and told["outcome"] == "refused"
        assert [text.partition(":")[0] for text in told["would"]] == ["private-directory"]
        assert job.wait(30) == -signal.SIGKILL
    private = next(tmp_path.glob("chaos-*"))
    assert entry(["heal", str(foreign.path), "--trust", "--trust-step", "private-directory"]) == codes.PASS
    assert not private.exists() and Ledger(foreign.path / "undo.jsonl").open_steps() == []


def test_on_a_terminal_each_step_is_shown_and_asked_for(
    foreign: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def answer(question: str, **_: object) -> bool:
        asked.append(question)
        return "job" in question

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", answer)
    assert entry(["heal", str(foreign.path), "--trust"]) == codes.HARNESS
    assert asked == ["  do job?", "  do private-directory?"]
    assert f'(end-job {{"run": "{foreign.token}"}})' in (told := capsys.readouterr().out)
    assert f"{foreign.path.name}: REFUSED in part: " in told, "what was done is not told as untouched"


@pytest.mark.parametrize(
    "command",
    [
        ["--trust", "--trust-step", "none"],
        ["--trust-step", "job"],
        ["--inventory", "hosts.yaml"],
        ["--trust", "--all"],
    ],
)
def test_a_command_that_means_no_step_does_nothing(foreign: RunDirectory, command: list[str]) -> None:
    assert entry(["heal", str(foreign.path), *command]) == codes.USAGE
    assert len(Ledger(foreign.path / "undo.jsonl").open_steps()) == 2


def test_the_processes_of_another_directory_are_ended_on_nobodys_word(foreign: RunDirectory, tmp_path: Path) -> None:
    with job_in(tmp_path, foreign.token) as job:
        assert entry(["heal", str(foreign.path), "--trust", "--trust-step", "job"]) == codes.HARNESS
        assert job.poll() is None
        job.kill()


def test_a_run_that_lives_is_touched_on_nobodys_word(foreign: RunDirectory) -> None:
    from chaos.store.ownership import RunLock

    with RunLock.acquire(foreign.path):
        assert entry(["heal", str(foreign.path), "--trust", "--trust-step", "job"]) == codes.HARNESS
    assert len(Ledger(foreign.path / "undo.jsonl").open_steps()) == 2


def test_of_an_own_run_only_the_lines_without_a_proof_are_asked_for(dead: RunDirectory, tmp_path: Path) -> None:
    dead.ledger.record(UndoStep("own", None, "end-job", {"run": dead.token}))
    Ledger(dead.path / "undo.jsonl").record(UndoStep("added", None, "note-kept", {"path": str(tmp_path / "none")}))
    assert entry(["heal", str(dead.path), "--trust", "--trust-step", "own"]) == codes.USAGE
    assert entry(["heal", str(dead.path), "--trust", "--trust-step", "added"]) == codes.PASS
    assert entry(["heal", str(dead.path)]) == codes.PASS


def step(action: str, **arguments: Any) -> UndoStep:
    return UndoStep("x", None, action, arguments)


CLUSTER = {"server": "https://10.0.0.1", "authority": None, "uid": "u"}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (step("restore-checkpoint-adopted", path="/a", kept="/b"), "outside of the run's directory"),
        (step("restore-node", node=0, what="connect"), "it runs a program on that node"),
        (step("resume-process", pid=1, start_time=1, boot="b", node=0), "it runs a program on that node"),
        (step("mend-network", run_dir="/x", fault="f", nodes=[], hosts=[0]), "it runs a program on that node"),
        (step("action-of-a-package"), "never run for another user's files"),
        (step("end-nodes", platform="slurm"), "never run for another user's files"),
        (step("end-nodes", platform=["docker"]), "never run for another user's files"),
        (step("end-nodes", platform="docker", engine="tcp://10.0.0.1:2375", identity="i"), "set DOCKER_HOST"),
        (step("end-nodes", platform="docker", engine="unix:///own.sock"), "which Docker engine"),
        (step("end-nodes", platform="ssh", hosts=[HOST]), "--inventory FILE"),
        (step("end-nodes", platform="kubernetes", kubeconfig="k"), "which cluster it means"),
        (step("release-cluster-node", host="h", kubeconfig="k", cluster="c"), "which cluster it means"),
    ],
)
def test_what_is_never_done_says_why(asked: UndoStep, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///own.sock")
    with pytest.raises(CannotUndo, match=why):
        with_caller_access(asked, None)


def test_a_process_of_this_host_is_continued_on_an_operators_word() -> None:
    """The step of a suspended rank names a node also where it has none."""
    local = step("resume-process", pid=1, start_time=1, boot="b", node=None)
    assert with_caller_access(local, None) == local


def test_hosts_clusters_and_engines_are_reached_with_the_callers_own_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///own.sock")
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(INVENTORY)
    foreign = {**HOST, "user": "root", "key": "/foreign", "python": "./program", "directory": "/etc"}
    (host,) = with_caller_access(step("end-nodes", platform="ssh", hosts=[foreign]), inventory).arguments["hosts"]
    assert (host["user"], host["key"], host["python"], host["directory"]) == (
        "me",
        str(tmp_path / "own"),
        "/usr/bin/python3",
        "/var/tmp",
    )
    for other in ({**HOST, "address": "10.0.0.2"}, {**HOST, "port": 23}, {}, "a"):
        with pytest.raises(CannotUndo, match="is not in"):
            with_caller_access(step("end-nodes", platform="ssh-networks", hosts=[other]), inventory)
    kept = with_caller_access(step("release-cluster-node", host="h", kubeconfig="/foreign", cluster=CLUSTER), None)
    assert kept.arguments == {"host": "h", "kubeconfig": None, "cluster": CLUSTER}
    engine = step("end-nodes", platform="docker", engine="unix:///own.sock", identity="i")
    assert with_caller_access(engine, None) == engine


USER = "users: [{name: u, user: {%s}}]"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (USER % "exec: {command: /bin/x}", "'exec' of user 'u'"),
        (USER % "exec: {command: ./x}", "'exec' of user 'u'"),
        (USER % "auth-provider: {name: gcp}", "'auth-provider' of user 'u'"),
        ("[" * 10_000, "cannot be read"),
        ("a: !!python/object/apply:os.system ['x']", "cannot be read"),
    ],
)
def test_a_kubeconfig_that_only_a_ledger_names_runs_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "other"))
    with pytest.raises(PlatformError, match=why):
        refuse_programs(path)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'other'}:{path}")
    refuse_programs(path)  # the caller names it, as for kubectl


def test_a_kubeconfig_with_keys_only_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(USER % "token: t")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "other"))
    refuse_programs(path)
