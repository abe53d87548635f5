"""A helper acts for the harness on its node, on processes and files of its run only, and its end is known by name."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chaos
from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.machine.job.processes import find_run_processes
from chaos.machine.job.protocol import HelperLost, PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import (
    ElsewhereProcess,
    ProcessIdentity,
    WrongProcess,
    alive,
    identify,
    send_signal,
    state,
)
from chaos.machine.linux.procfs import PROC, read_text
from chaos.machine.remote.bundle import MODULES, bundle, bundle_in, write_bundle
from chaos.machine.remote.client import HelperClient
from chaos.machine.remote.wire import NotTheProtocol, messages
from chaos.run.launch.channel import Channel, Hello, Message, RefusedCaller
from tests.unit.conftest import MakeDeep, Start
from tests.unit.machine.conftest import Found, Spec, StartHelper

pytestmark = pytest.mark.processes

SECRET = "s" * 64


def here(identity: ProcessIdentity) -> ProcessIdentity:
    """A process of a node that is this host, as this host sees it."""
    return replace(identity, node=None)


def ended(helper: HelperClient, identity: ProcessIdentity) -> ExitStatus:
    return wait_for("exit", lambda: helper.exit_status("train", identity), seconds=60)


def test_the_bundle_needs_nothing_but_the_standard_library_of_python_3_9() -> None:
    package = Path(chaos.__file__).parent
    shipped = {"chaos." + name[:-3].replace("/", ".") for name in MODULES}
    for name in MODULES:
        tree = ast.parse((package / name).read_text("utf-8"), name, feature_version=(3, 9))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None
                own = node.module in shipped
                assert own or node.module.partition(".")[0] in sys.stdlib_module_names, f"{name}: {node.module}"
            elif isinstance(node, ast.Import):
                assert all(alias.name.partition(".")[0] in sys.stdlib_module_names for alias in node.names), name
    assert bundle() == bundle()


def test_a_run_of_an_earlier_release_has_the_bundle_under_its_earlier_name(tmp_path: Path) -> None:
    assert bundle_in(tmp_path) == tmp_path / "remote_helper.pyz"
    (tmp_path / "hand.pyz").touch()
    assert bundle_in(tmp_path) == tmp_path / "hand.pyz"
    assert bundle_in(tmp_path) != write_bundle(tmp_path) == bundle_in(tmp_path)


def test_it_starts_a_launcher_and_tells_how_its_ranks_ended(start_helper: StartHelper, spec: Spec) -> None:
    helper = start_helper(3)
    launcher = helper.start(spec("MS_ROLE=MS_WORKER MS_NODE_ID=7 setsid sleep 1000 & exit 4"))
    assert launcher.node == 3
    assert ended(helper, launcher) == ExitStatus(code=4)
    (rank,) = wait_for("rank", lambda: [p for p in helper.processes("train") if p.rank == 7], seconds=60)
    assert rank.identity.node == 3
    assert helper.state(rank.identity) == "alive"
    assert helper.exit_status("train", rank.identity) is None
    helper.signal("train", rank.identity, signal.SIGKILL)
    assert ended(helper, rank.identity) == ExitStatus(signal=9)


def test_the_launcher_has_its_nodes_own_environment_and_over_it_what_the_run_sets(
    start_helper: StartHelper, spec: Spec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = {"HOME": "/node", "LD_LIBRARY_PATH": "/node/lib", "PYTHONPATH": "/node/py", "PATH": os.environ["PATH"]}
    helper = start_helper(own={**own, "MS_ENABLE_TFT": "{TTP:1}", "MS_ROLE": "MS_WORKER", "SAME": "node"})
    monkeypatch.setenv("HOME", "/harness")
    monkeypatch.setenv("TOKEN", "hunter2")
    monkeypatch.setenv("SAME", "run")
    launch = spec(f"env -0 > {tmp_path}/env")
    launch = replace(launch, environment={"SAME": "run"}, before={"PATH": "/first", "PYTHONPATH": "/sdk"})
    launcher = helper.start(launch)
    assert ended(helper, launcher) == ExitStatus(code=0)
    found = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().split("\0") if line)
    assert (found["HOME"], found["LD_LIBRARY_PATH"], found["SAME"]) == ("/node", "/node/lib", "run")
    assert (found["PATH"], found["PYTHONPATH"]) == (f"/first:{own['PATH']}", "/sdk:/node/py")
    assert not {"TOKEN", "MS_ENABLE_TFT", "MS_ROLE"} & found.keys()


def test_it_tells_what_is_left_of_its_run(start_helper: StartHelper, spec: Spec, tmp_path: Path) -> None:
    helper = start_helper()
    assert helper.leftovers([str(tmp_path)]) == {"processes": [], "mounts": []}
    launcher = helper.start(spec("exec sleep 1000"))
    wait_for("sleep", lambda: "sleep" in (read_text(launcher.pid, "comm", PROC) or ""), seconds=60)
    assert helper.leftovers([str(tmp_path)])["processes"] == [f"{launcher.pid} (sleep 1000)"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_it_tells_mounts_that_have_come_below_its_runs_directories(start_helper: StartHelper, tmp_path: Path) -> None:
    before, after = (tmp_path / name for name in ("be fore", "af ter"))
    for path in (before, after):
        path.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", before], check=True)
        helper = start_helper()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", after], check=True)
        assert helper.leftovers([str(tmp_path)])["mounts"] == [str(after)]
        assert helper.leftovers([str(tmp_path / "af")])["mounts"] == []
    finally:
        for path in (before, after):
            subprocess.run(["umount", path], check=False)


def test_nobody_looks_for_a_nodes_process_among_those_of_this_host(start_helper: StartHelper, spec: Spec) -> None:
    launcher = start_helper().start(spec("sleep 1000"))
    for act in (state, alive, lambda one: send_signal(one, signal.SIGTERM)):
        with pytest.raises(ElsewhereProcess):
            act(launcher)
    assert alive(here(launcher))


def test_a_pid_that_is_used_again_is_never_hit(start_helper: StartHelper, spec: Spec) -> None:
    helper = start_helper()
    launcher = helper.start(spec("sleep 1000"))
    other = replace(launcher, start_time=launcher.start_time + 1)
    with pytest.raises(PlatformError, match="is not of the job"):
        helper.signal("train", other, signal.SIGKILL)
    with pytest.raises(WrongProcess):
        send_signal(here(other), signal.SIGKILL)
    helper.resume(other)
    assert helper.state(other) == "gone"
    assert helper.state(launcher) == "alive"


def test_a_process_of_nobodys_run_is_not_signalled(start_helper: StartHelper, spec: Spec) -> None:
    helper = start_helper()
    helper.start(spec("sleep 1000"))
    stranger = replace(identify(os.getppid()), node=0)
    with pytest.raises(PlatformError, match="is not of the job"):
        helper.signal("train", stranger, signal.SIGCONT)
    with pytest.raises(PlatformError, match="does not carry this run's CHAOS_RUN"):
        helper.resume(stranger)


def test_a_killed_helper_is_named_and_another_one_ends_what_it_has_left(
    start_helper: StartHelper, spec: Spec, found: Found, token: str
) -> None:
    helper = start_helper(1)
    launcher = helper.start(spec("sleep 1000 & wait"))
    found(2)
    os.kill(helper.introduction.pid, signal.SIGKILL)
    with pytest.raises(HelperLost, match=r"node 1: its remote helper was lost: .*SIGKILL"):
        wait_for("loss", lambda: helper.processes("train") and False, seconds=60)
    assert alive(here(launcher))
    assert len(start_helper(1).end_run().ended) == 2
    assert find_run_processes(token) == []


def test_what_has_its_place_in_a_directory_is_told_without_any_identity(
    start_helper: StartHelper, start: Start, tmp_path: Path
) -> None:
    place, other = tmp_path / "place", tmp_path / "place-2"
    (place / "job").mkdir(parents=True)
    other.mkdir()
    helper = start_helper()
    assert helper.standing(str(place)) == []
    works = start("sh", "-c", f"cd {place}/job; exec sleep 1001")
    writes = start("sh", "-c", f"exec sleep 1002 > {place}/log")
    start("sh", "-c", f"cd {other}; exec sleep 1003 > {other}/log")

    def told() -> list[str]:
        return sorted(one for one in helper.standing(str(place)) if "sleep 100" in one and "sh -c" not in one)

    assert wait_for("both", lambda: len(told()) == 2 and told(), seconds=60) == sorted(
        [
            f"process {works.pid} (sleep 1001) works in {place}/job",
            f"process {writes.pid} (sleep 1002) writes to {place}/log",
        ]
    )
    shutil.rmtree(place)
    assert len(told()) == 2


def test_the_end_of_the_harness_harms_no_job(start_helper: StartHelper, spec: Spec, found: Found) -> None:
    helper = start_helper()
    helper.start(spec("exec sleep 1000"))
    found(1)
    helper.close()
    (left,) = found(1)
    assert start_helper().find()[0].identity == replace(left.identity, node=0)


def test_a_stopped_process_is_continued_by_another_helper(start_helper: StartHelper, spec: Spec) -> None:
    helper = start_helper()
    launcher = helper.start(spec("exec sleep 1000"))
    helper.signal("train", launcher, signal.SIGSTOP)
    wait_for("stop", lambda: helper.state(launcher) == "stopped", seconds=60)
    helper.close()
    other = start_helper()
    other.resume(launcher)
    assert wait_for("go on", lambda: other.state(launcher) == "alive", seconds=60)


def test_its_clock_is_this_hosts_within_the_error_that_is_told(start_helper: StartHelper) -> None:
    offset = start_helper().clock_offset(SYSTEM_CLOCK)
    assert 0 < offset.error < 1_000_000_000
    assert abs(offset.offset) <= offset.error


def test_only_files_below_the_runs_directories_are_read(start_helper: StartHelper, tmp_path: Path) -> None:
    helper, run = start_helper(), tmp_path / "run"
    run.mkdir()
    (run / "log").write_bytes(b"0123456789")
    (run / "link").symlink_to("/etc/passwd")
    with pytest.raises(PlatformError, match="is not below a directory of this run"):
        helper.read(str(run / "log"))
    helper.open_roots([str(run)])
    assert helper.read(str(run / "log"), 4, 3) == b"456"
    assert [(path, size) for path, (size, _) in helper.files(str(run)).items()] == [(str(run / "log"), 10)]
    for path in (run / "link", run / ".." / "remote_helper.pyz"):
        with pytest.raises(PlatformError):
            helper.read(str(path))


def test_a_private_directory_of_another_run_is_left_alone(
    start_helper: StartHelper, tmp_path: Path, token: str
) -> None:
    helper = start_helper()
    own, other = tmp_path / "own", tmp_path / "other"
    helper.place(str(own), {"secret": "x"})
    helper.place(str(own), {"secret": "y"})
    assert (own / "secret").read_text() == "y"
    assert (own / "secret").stat().st_mode & 0o777 == 0o600
    other.mkdir()
    (other / ".chaos-run").write_text("another run")
    for act in (lambda: helper.place(str(other), {"secret": "x"}), lambda: helper.remove(str(other))):
        with pytest.raises(PlatformError, match="was not made by this run"):
            act()
    assert sorted(path.name for path in other.iterdir()) == [".chaos-run"]
    assert helper.remove(str(own))
    assert not own.exists()


def test_every_request_is_answered_also_one_that_there_is_not(start_helper: StartHelper) -> None:
    helper = start_helper()
    for request in ("no_such_request", "close", "_job", "__init__", "begin"):
        with pytest.raises(PlatformError):
            helper._call(request, run="another")
    with pytest.raises(PlatformError):
        helper._call("signal", nonsense=1)
    assert helper.find() == []


@pytest.mark.parametrize("text", [b"no JSON\n", b"[1]\n", b"[" * 100_000 + b"\n", b"x" * (9 << 20)])
def test_what_is_not_of_the_protocol_is_refused(text: bytes) -> None:
    pieces = iter([text, b""])
    with pytest.raises(NotTheProtocol):
        list(messages(lambda: next(pieces)))


# Agents.


@pytest.fixture
def channel(tmp_path: Path, token: str) -> Iterator[Channel]:
    channel = Channel(tmp_path / "agents", run=token, secret=SECRET)
    yield channel
    channel.close()


def hello(token: str, **other: Any) -> bytes:
    said = {"message": "hello", "secret": SECRET, "run": token, "attempt": "train", "rank": 2, "pid": 1, **other}
    return (json.dumps(said) + "\n").encode()


def called(helper: HelperClient, place: Path, data: bytes) -> socket.socket:
    helper.place(str(place), {})
    helper.listen(str(place / "agents"))
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    caller.settimeout(60)
    caller.connect(str(place / "agents"))
    caller.sendall(data)
    return caller


def heard(channel: Channel) -> Message:
    return channel.messages.get(timeout=60)


def test_an_agents_words_come_with_its_node_and_the_word_of_the_kernel_there(
    start_helper: StartHelper, channel: Channel, tmp_path: Path, token: str
) -> None:
    helper = start_helper(5, channel)
    with called(helper, tmp_path / "private", hello(token)) as caller:
        message = heard(channel)
        assert isinstance(message, Hello)
        assert (message.node, message.rank, message.pid) == (5, 2, os.getpid())
        message.connection.answer({"message": "welcome", "armed": []})
        assert json.loads(caller.recv(1000)) == {"message": "welcome", "armed": []}
        message.connection.close()
        assert caller.recv(1000) == b""


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"secret": "t" * 64}, "did not show this run's secret"),
        ({"secret": ""}, "did not show this run's secret"),
        ({"run": "another"}, "is of another run"),
        ({"message": "welcome"}, "did not introduce itself"),
    ],
)
def test_who_is_of_another_run_or_without_the_secret_is_ignored_and_told(
    start_helper: StartHelper, channel: Channel, tmp_path: Path, token: str, other: dict[str, Any], why: str
) -> None:
    with called(start_helper(5, channel), tmp_path / "private", hello(token, **other)) as caller:
        message = heard(channel)
        assert isinstance(message, RefusedCaller)
        assert (message.node, message.pid) == (5, os.getpid())
        assert why in message.what
        assert caller.recv(1000) == b""


def test_a_lost_helper_lets_its_agents_go(
    start_helper: StartHelper, channel: Channel, tmp_path: Path, token: str
) -> None:
    helper = start_helper(5, channel)
    with called(helper, tmp_path / "private", hello(token)) as caller:
        message = heard(channel)
        assert isinstance(message, Hello)
        os.kill(helper.introduction.pid, signal.SIGKILL)
        assert caller.recv(1000) == b""
        message.connection.answer({"message": "go"})


def test_directories_too_deep_to_be_searched_are_refused_by_their_path_and_the_helper_lives(
    start_helper: StartHelper, tmp_path: Path, make_deep: MakeDeep
) -> None:
    helper, run = start_helper(), make_deep(tmp_path / "run")
    (run / "log").touch()
    helper.open_roots([str(run)])
    with pytest.raises(PlatformError, match=f"{run}: has more than 256 levels of directories below"):
        helper.files(str(run))
    assert helper.read(str(run / "log")) == b""
