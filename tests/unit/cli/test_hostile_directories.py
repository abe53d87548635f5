"""A run's directory that came from elsewhere reaches nothing outside of it, and the answer is a sentence."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chaos.base.plain_files import Share
from chaos.base.wait import wait_for
from chaos.cli import codes
from chaos.cli.main import entry
from chaos.heal.undo import UNDO_ACTIONS
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.processes import find_run_processes
from chaos.machine.linux.process import identify, state
from tests.kit.runs.good_run import good_run

pytestmark = pytest.mark.processes

NOW = identify(os.getpid())
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: trial
contexts: [{{name: trial, context: {{cluster: trial, user: trial}}}}]
clusters: [{{name: trial, cluster: {{server: "https://127.0.0.1:1"}}}}]
users: [{{name: trial, user: {{{user}}}}}]
"""
SETTINGS = {"namespace": "trial", "image": "x", "python": "/bin/sh"}


@dataclass
class World:
    """What is not of the run: files, a process that carries its identity, and whoever is started or called."""

    room: Path
    run_dir: Path
    outside: Path
    token: str
    victim: subprocess.Popen[bytes]
    called: list[object]

    @property
    def pid(self) -> dict[str, Any]:
        found = identify(self.victim.pid)
        return {"pid": found.pid, "start_time": found.start_time, "boot": found.boot}

    def kubeconfig(self, user: str) -> str:
        path = self.outside / "kubeconfig"
        path.write_text(KUBECONFIG.format(user=user))
        return str(path)

    def checkpoint(self) -> Path:
        return sorted((self.run_dir / "job").rglob("*.ckpt"))[0]

    def log(self) -> Path:
        return sorted((self.run_dir / "logs").rglob("*.log*"))[0]


@pytest.fixture
def world(tmp_path: Path, start: Callable[..., Any], token: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    outside, run_dir = tmp_path / "outside", tmp_path / "reports" / "foreign"
    good_run().write(run_dir)
    (run_dir / "run.json").write_text(json.dumps({"run": "foreign", "token": token, "created": "x"}))
    (run_dir / "undo.jsonl").write_text("")
    (outside / "marked").mkdir(parents=True)
    (outside / "marked" / ".chaos-run").write_text(token)
    (outside / "beside").mkdir()
    (outside / "beside" / "load").write_text("on")
    (outside / "saved.ckpt").write_text("the job's")
    (outside / ".chaos-probe").write_text("")
    program = outside / "program"
    program.write_text(f"#!/bin/sh\ntouch {outside}/run-by-heal\n")
    program.chmod(0o755)
    victim = start("sleep", "1000", run=token)
    wait_for("it", lambda: find_run_processes(token), seconds=30)
    called: list[object] = []

    def refused(*what: object, **_: object) -> None:
        called.append(what)
        raise OSError("not in this test")

    monkeypatch.chdir(outside)
    monkeypatch.setattr(subprocess.Popen, "__init__", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr("chaos.faults.storage.undo.unmount", refused)
    monkeypatch.setattr("chaos.machine.linux.process.send_through", refused)
    yield World(tmp_path, run_dir, outside, token, victim, called)


def snapshot(place: Path) -> list[tuple[str, int, int, str]]:
    found = []
    for path in sorted(place.rglob("*")):
        there = path.lstat()
        content = path.read_text() if stat.S_ISREG(there.st_mode) and there.st_size < 1 << 20 else ""
        found.append((str(path.relative_to(place)), there.st_mode, there.st_mtime_ns, content))
    return found


def answered(world: World, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str]:
    """Call chaos on the directory, and see that it has touched nothing outside and said so in words."""
    before = snapshot(world.outside)
    code = entry([*command, "--reports", str(world.run_dir.parent)])
    said = capsys.readouterr()
    text = said.out + said.err
    assert snapshot(world.outside) == before
    assert sorted(path.name for path in world.room.iterdir()) == ["outside", "reports"]
    assert world.called == [], "no program was started, no signal sent, no connection made, nothing unmounted"
    assert state(identify(world.victim.pid)) == "alive"
    assert "Traceback" not in text and "the harness itself failed" not in text, text[-2000:]
    assert text.strip() and "\x1b" not in text and len(text) < 1 << 20
    return code, text


Arguments = Callable[[World], dict[str, Any]]

STEPS: dict[str, tuple[str, Arguments]] = {
    "token of a living run": ("end-job", lambda world: {"run": world.token}),
    "token of another run": ("end-job", lambda world: {"run": "other-20260101-000000-abcd-0123456789abcdef"}),
    "foreign pid": ("resume-process", lambda world: world.pid),
    "pid of init": ("resume-process", lambda world: {"pid": 1, "start_time": 1, "boot": NOW.boot}),
    "negative pid": ("resume-process", lambda world: {"pid": -1, "start_time": 1, "boot": NOW.boot}),
    "own pid": ("resume-process", lambda world: {"pid": NOW.pid, "start_time": NOW.start_time, "boot": NOW.boot}),
    "pid on a node": ("resume-process", lambda world: {**world.pid, "node": 0}),
    "foreign rank": ("resume-adopted", lambda world: {**world.pid, "rank": 0}),
    "limit of a process": ("restore-limit", lambda world: {**world.pid, "soft": 1}),
    "limit of a rank": ("restore-limit-adopted", lambda world: {**world.pid, "rank": 0, "soft": 1 << 20}),
    "marked directory": ("remove-directory", lambda world: {"path": str(world.outside / "marked")}),
    "directory by ..": ("remove-directory", lambda world: {"path": f"{world.run_dir}/../../outside/marked"}),
    "root directory": ("remove-directory", lambda world: {"path": "/"}),
    "mount of the machine": ("unmount-storage", lambda world: {"path": "/proc"}),
    "mount outside": ("unmount-storage", lambda world: {"path": str(world.outside)}),
    "frozen root": ("thaw-storage", lambda world: {"path": "/"}),
    "mode of a file outside": ("allow-writing", lambda world: {"path": str(world.outside), "mode": 0o777}),
    "checkpoint outside": (
        "restore-checkpoint",
        lambda world: {
            "path": str(world.outside / "saved.ckpt"),
            "kept": str(world.checkpoint()),
            "before": "0" * 64,
            "after": "absent",
        },
    ),
    "checkpoint of a job": (
        "restore-checkpoint-adopted",
        lambda world: {
            "path": str(world.outside / "new.ckpt"),
            "kept": str(world.checkpoint()),
            "before": "0" * 64,
            "after": "absent",
            "root": "/",
            "directory": [world.outside.stat().st_dev, world.outside.stat().st_ino],
        },
    ),
    "switch outside": ("switch-off", lambda world: {"path": str(world.outside / "beside" / "load")}),
    "control group": ("leave-group", lambda world: {"group": f"/sys/fs/cgroup/chaos-{world.token}-x"}),
    "group of anybody": ("remove-memory-group", lambda world: {"path": "/sys/fs/cgroup/chaos-oom-x"}),
    "card": ("recover-link", lambda world: {"card": 0}),
    "chip": ("see-chip", lambda world: {"npu": 0, "chip": 0}),
    "card of a node": ("recover-link", lambda world: {"card": 0, "node": 0}),
    "network": ("mend-network", lambda world: {"run_dir": str(world.run_dir), "fault": "f", "nodes": [0]}),
    "network of hosts": (
        "mend-network",
        lambda world: {"run_dir": str(world.run_dir), "fault": "f", "nodes": [], "hosts": [0]},
    ),
    "engine of a stranger": ("end-nodes", lambda world: {"platform": "docker", "engine": "tcp://192.0.2.1:2375"}),
    "engine by ssh": ("end-nodes", lambda world: {"platform": "docker", "engine": "ssh://-oProxyCommand=./program"}),
    "networks of a stranger's engine": (
        "end-nodes",
        lambda world: {"platform": "docker-networks", "engine": "tcp://192.0.2.1:2375"},
    ),
    "host with key and program": (
        "end-nodes",
        lambda world: {
            "platform": "ssh",
            "hosts": [{"name": "a", "address": "127.0.0.1", "port": 22, "key": "key", "python": "./program"}],
        },
    ),
    "network of a host": ("end-nodes", lambda world: {"platform": "ssh-networks", "hosts": [{"name": "a"}]}),
    "kubeconfig with exec": (
        "end-nodes",
        lambda world: {
            "platform": "kubernetes",
            "settings": SETTINGS,
            "kubeconfig": world.kubeconfig(f"exec: {{apiVersion: v1, command: {world.outside}/program}}"),
        },
    ),
    "kubeconfig with a relative plugin": (
        "release-cluster-node",
        lambda world: {
            "host": "worker-1",
            "settings": SETTINGS,
            "kubeconfig": world.kubeconfig("exec: {apiVersion: v1, command: ./program}"),
        },
    ),
    "kubeconfig with auth-provider": (
        "recover-public-fault",
        lambda world: {
            "host": "worker-1",
            "fault": "f",
            "settings": SETTINGS,
            "kubeconfig": world.kubeconfig("auth-provider: {name: gcp, config: {cmd-path: ./program}}"),
        },
    ),
    "object of a mesh": (
        "delete-mesh-object",
        lambda world: {"kind": "NetworkChaos", "name": "x", "settings": SETTINGS, "kubeconfig": "kubeconfig"},
    ),
    "platform of nobody": ("end-nodes", lambda world: {"platform": "../evil"}),
    "node": ("restore-node", lambda world: {"node": 0, "what": "reboot"}),
    "action of nobody": ("os.system", lambda world: {"command": "./program"}),
    "record that is a pipe": (
        "continue-training",
        lambda world: {"ranks": [{"record": str(world.outside / "pipe"), **world.pid}]},
    ),
    "path with a terminal's commands": ("note-kept", lambda world: {"path": "/\x1b[2J\x07"}),
    "nested arguments": ("note-kept", lambda world: {"path": [[[[{}]]]]}),
}


@pytest.mark.parametrize("name", STEPS)
def test_no_step_that_somebody_else_has_written_is_done(
    world: World, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    action, arguments = STEPS[name]
    assert action in UNDO_ACTIONS or name == "action of nobody"
    if name == "record that is a pipe":
        os.mkfifo(world.outside / "pipe")
    (world.run_dir / "network.json").write_text(json.dumps(world.pid))
    Ledger(world.run_dir / "undo.jsonl").record(UndoStep("x", "f", action, arguments(world), "do it\x1b[2J"))
    for command in (["heal", str(world.run_dir)], ["heal"], ["heal", str(world.run_dir), "--trust"]):
        code, text = answered(world, capsys, *command)
        assert (code == codes.HARNESS and "REFUSED" in text) or "--trust" in command, text
        assert "x: " in text
    assert not (world.run_dir / "history").is_symlink()


def linked(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def piped(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def moved_link(path: Path, target: Path) -> None:
    path.rename(path.with_name(f"{path.name}.was"))
    path.symlink_to(target)


def device(path: Path) -> None:
    path.unlink(missing_ok=True)
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")


def deep(place: Path) -> None:
    for _ in range(300):
        place = place / "d"
    place.mkdir(parents=True)


def sparse(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, size)


def hollow(path: Path) -> None:
    """A sound checkpoint whose values are a hole of 4 GiB."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 30], "data_offsets": [0, 4 << 30]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(path, 8 + len(header) + (4 << 30))


def claiming(path: Path) -> None:
    """A checkpoint that says that it holds far more than there is."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 58], "data_offsets": [0, 1 << 60]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))


def zipped(path: Path) -> None:
    """A checkpoint in the form of another framework: an archive that blows up, with a pickle in it."""
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"cos\nsystem\n(S'./program'\ntR.")
        archive.writestr("archive/data/0", bytes(8 << 20))


Change = Callable[[World], object]

FILES: dict[str, tuple[str, Change]] = {
    "ledger is a pipe": ("heal", lambda world: piped(world.run_dir / "undo.jsonl")),
    "ledger is a link": ("heal", lambda world: linked(world.run_dir / "undo.jsonl", str(world.outside / "program"))),
    "ledger is endless": ("heal", lambda world: linked(world.run_dir / "undo.jsonl", "/dev/zero")),
    "ledger is a device": ("heal", lambda world: device(world.run_dir / "undo.jsonl")),
    "ledger is huge": ("heal", lambda world: sparse(world.run_dir / "undo.jsonl", 1 << 40)),
    "identity is a pipe": ("heal", lambda world: piped(world.run_dir / "run.json")),
    "identity is a link": ("heal", lambda world: linked(world.run_dir / "run.json", "../../outside/program")),
    "identity is deep": ("heal", lambda world: (world.run_dir / "run.json").write_bytes(b"[" * 500_000)),
    "lock is a pipe": ("heal", lambda world: piped(world.run_dir / ".lock")),
    "lock is a device": ("heal", lambda world: device(world.run_dir / ".lock")),
    "lock leads out": ("heal", lambda world: linked(world.run_dir / ".lock", str(world.outside / "saved.ckpt"))),
    "lock of the reports is a device": ("heal", lambda world: device(world.run_dir.parent / ".lock")),
    "job leads out": ("heal", lambda world: moved_link(world.run_dir / "job", world.outside)),
    "history leads out": ("heal", lambda world: moved_link(world.run_dir / "history", world.outside)),
    "baselines lead out": ("heal", lambda world: (world.run_dir.parent / ".baselines").symlink_to(world.outside)),
    "another run's directory": (
        "heal",
        lambda world: (world.run_dir / "run.json").write_text(
            json.dumps({"run": "r", "token": world.token, "directory": str(world.outside), "inode": 1})
        ),
    ),
    "deep directories": ("heal", lambda world: deep(world.run_dir / "job")),
    "plan is a pipe": ("analyze", lambda world: piped(world.run_dir / "plan.json")),
    "plan is a device": ("analyze", lambda world: device(world.run_dir / "plan.json")),
    "plan leads out": ("analyze", lambda world: linked(world.run_dir / "plan.json", "../../outside/program")),
    "plan is deep": ("analyze", lambda world: (world.run_dir / "plan.json").write_bytes(b"[" * 500_000)),
    "logs lead out": ("analyze", lambda world: moved_link(world.run_dir / "logs", world.outside)),
    "log is a pipe": ("analyze", lambda world: piped(world.log())),
    "history of a pipe": ("analyze", lambda world: piped(world.run_dir / "history" / "harness.jsonl")),
    "history is huge": ("analyze", lambda world: sparse(world.run_dir / "history" / "harness.jsonl", 1 << 40)),
    "checkpoint leads out": ("analyze", lambda world: linked(world.checkpoint(), str(world.outside / "saved.ckpt"))),
    "checkpoint is a pipe": ("analyze", lambda world: piped(world.checkpoint())),
    "checkpoint is a device": ("analyze", lambda world: device(world.checkpoint())),
    "checkpoint is huge": ("analyze", lambda world: sparse(world.checkpoint(), 1 << 40)),
    "checkpoint is hollow": ("analyze", lambda world: hollow(world.checkpoint())),
    "checkpoint claims too much": ("analyze", lambda world: claiming(world.checkpoint())),
    "checkpoint is an archive": ("analyze", lambda world: zipped(world.checkpoint())),
    "deep checkpoints": ("analyze", lambda world: deep(world.run_dir / "job" / "checkpoints")),
    "result leads out": ("analyze", lambda world: linked(world.run_dir / "result.json", "../../outside/saved.ckpt")),
}


@pytest.mark.parametrize("name", FILES)
def test_no_file_of_a_foreign_run_leads_out_or_holds_anybody_up(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("chaos.checks.judge.Share", partial(Share, most_holes=16 << 20))
    command, change = FILES[name]
    note = UndoStep("x", None, "note-kept", {"path": "/"}, "so that there is something to heal")
    Ledger(world.run_dir / "undo.jsonl").record(note)
    change(world)
    code, text = answered(world, capsys, command, str(world.run_dir))
    assert code in {codes.FAIL, codes.UNKNOWN, codes.HARNESS, codes.USAGE} or name in _HARMLESS, text


_HARMLESS = {"result leads out", "ledger is huge"}
"""Where the answer may be that all is well: what was wrong is replaced, or says nothing."""


@pytest.mark.parametrize(
    "share",
    [Share(most_holes=16 << 20), Share(most_files=20), Share(most_bytes=1 << 20)],
    ids=["holes", "files", "bytes"],
)
def test_more_than_anybody_waits_for_is_unknown_and_told(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, share: Share
) -> None:
    hollow(world.checkpoint())
    monkeypatch.setattr("chaos.checks.judge.Share", lambda: share)
    code, text = answered(world, capsys, "analyze", str(world.run_dir), "--json")
    entries = [check for check in json.loads(text)["checks"] if "the rest was not read" in check["seen"]]
    assert code == codes.UNKNOWN and entries and {one["verdict"] for one in entries} == {"unknown"}
