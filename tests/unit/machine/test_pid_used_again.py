"""Where the kernel takes a PID only, whoever has got it meanwhile is left as it was."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from chaos.base.clock import SYSTEM_CLOCK, boot_id
from chaos.faults.action import UndoContext
from chaos.faults.kind import Victim
from chaos.faults.resources.fd_limit import RESTORE_LIMIT, FdLimit
from chaos.heal.undo import UNDO_ACTIONS
from chaos.machine.linux import cgroup, limits
from chaos.machine.linux.cgroup import Hierarchy, dissolve, members, move, throttle
from chaos.machine.linux.limits import set_open_files_limit
from chaos.machine.linux.process import NoSuchProcess, ProcessIdentity, State, has_ended, identify, state
from tests.unit.conftest import Start
from tests.unit.machine.fake_proc import FakeProc

HIERARCHY_VERSION = 1


@dataclass
class Groups:
    """A hierarchy with the groups ``job``, ``stranger`` and ``limited``, and the processes in them."""

    mount: Path
    proc: FakeProc
    before_put: list[Callable[[], None]] = field(default_factory=list)

    @property
    def hierarchy(self) -> Hierarchy:
        return Hierarchy(self.mount, HIERARCHY_VERSION)

    def group(self, name: str) -> Path:
        path = self.mount / name
        path.mkdir(exist_ok=True)
        (path / "cgroup.procs").touch()
        return path

    def add(self, pid: int, name: str, ppid: int = 1) -> ProcessIdentity:
        self.proc.add(pid, ppid, "x", variables={}, cgroup=f"4:cpu:/{name}\n")
        self._list(self.group(name), [*members(self.group(name)), pid])
        return ProcessIdentity(pid, self.proc.started + pid, boot_id())

    def end(self, pid: int) -> None:
        self._leave(pid)
        shutil.rmtree(self.proc.root / str(pid))

    def replace(self, pid: int, name: str, ppid: int) -> None:
        """The process ends, and its PID is that of another one."""
        self.end(pid)
        self.proc.started += 1
        self.add(pid, name, ppid)

    def put(self, group: Path, pid: int) -> None:
        """What the kernel does."""
        if self.before_put:
            self.before_put.pop(0)()
        if not (self.proc.root / str(pid)).is_dir():
            raise ProcessLookupError(pid)
        self._leave(pid)
        self._list(group, [*members(group), pid])
        (self.proc.root / str(pid) / "cgroup").write_text(f"4:cpu:/{group.relative_to(self.mount)}\n")

    def _leave(self, pid: int) -> None:
        for file in self.mount.rglob("cgroup.procs"):
            self._list(file.parent, [member for member in members(file.parent) if member != pid])

    @staticmethod
    def _list(group: Path, pids: list[int]) -> None:
        (group / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Groups:
    for name in ("proc", "groups"):
        (tmp_path / name).mkdir()
    made = Groups(tmp_path / "groups", FakeProc(tmp_path / "proc"))
    monkeypatch.setattr(cgroup, "_put", made.put)
    made.add(1, "init", 0)
    made.add(9, "stranger")
    return made


def test_a_process_is_moved(groups: Groups) -> None:
    identity = groups.add(7, "job")
    move(identity, groups.group("limited"), groups.hierarchy, groups.proc.root)
    assert (members(groups.group("limited")), members(groups.group("job"))) == ([7], [])


def test_one_that_has_ended_before_is_not_moved(groups: Groups) -> None:
    identity = groups.add(7, "job")
    groups.replace(7, "stranger", 9)
    with pytest.raises(NoSuchProcess):
        move(identity, groups.group("limited"), groups.hierarchy, groups.proc.root)
    assert members(groups.group("stranger")) == [9, 7]


def test_whoever_gets_its_pid_in_between_goes_back_to_its_parent(groups: Groups) -> None:
    identity = groups.add(7, "job")
    groups.before_put.append(lambda: groups.replace(7, "stranger", 9))
    with pytest.raises(NoSuchProcess):
        move(identity, groups.group("limited"), groups.hierarchy, groups.proc.root)
    assert (members(groups.group("limited")), members(groups.group("stranger"))) == ([], [9, 7])


def test_one_that_was_seen_elsewhere_goes_back_there(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service begins where its parent is, and was moved to a group of its own before the harness went on."""
    identity = groups.add(7, "job")
    really = state

    def then_replaced(process: ProcessIdentity, proc_root: Path) -> State:
        found = really(process, proc_root)
        if not has_ended(found):
            groups.replace(7, "service", 9)
        return found

    monkeypatch.setattr(cgroup, "state", then_replaced)
    with pytest.raises(NoSuchProcess):
        move(identity, groups.group("limited"), groups.hierarchy, groups.proc.root)
    assert (members(groups.group("limited")), members(groups.group("service"))) == ([], [7])


def test_a_process_that_ends_in_between_is_told(groups: Groups) -> None:
    identity = groups.add(7, "job")
    groups.before_put.append(lambda: groups.end(7))
    with pytest.raises(NoSuchProcess):
        move(identity, groups.group("limited"), groups.hierarchy, groups.proc.root)


def test_a_quota_is_laid_on_that_very_process(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = groups.add(7, "job")
    groups.before_put.append(lambda: groups.replace(7, "stranger", 9))
    real = Path.mkdir

    def mkdir(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        real(path, mode, parents, exist_ok)
        (path / "cgroup.procs").touch()

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(NoSuchProcess):
        throttle(identity, "limited", 0.5, groups.hierarchy, groups.proc.root)
    assert members(groups.mount / "job" / "limited") == []
    assert members(groups.group("stranger")) == [9, 7]


def dissolved(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> int:
    """Files of a group vanish with it in the kernel."""
    monkeypatch.setattr(Path, "rmdir", lambda path: None)
    return dissolve(groups.group("limited"), groups.group("job"), groups.hierarchy, groups.proc.root)


def test_who_is_in_a_group_goes_back(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    groups.add(7, "limited")
    groups.add(8, "limited")
    assert dissolved(groups, monkeypatch) == 2
    assert members(groups.group("job")) == [7, 8]


def test_a_stranger_is_not_moved_to_where_a_member_came_from(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    groups.add(6, "limited")
    groups.add(7, "limited")
    groups.add(8, "limited")
    # 7 ends after it was listed, 8 when it is just about to be moved.
    groups.before_put += [lambda: groups.replace(7, "stranger", 9), lambda: groups.replace(8, "stranger", 9)]
    assert dissolved(groups, monkeypatch) == 1
    assert (members(groups.group("job")), members(groups.group("stranger"))) == ([6], [9, 7, 8])


@dataclass
class Kernel:
    """Limits of open files by PID; ``taken`` says that the PID's process is another one."""

    limits: dict[int, tuple[int, int]]
    taken: bool = False
    before_set: Callable[[], None] = lambda: None
    after_set: Callable[[], None] = lambda: None

    def prlimit(self, pid: int, which: int, new: tuple[int, int] | None = None) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        if new is not None:
            self.before_set()
        if pid not in self.limits:
            raise ProcessLookupError(pid)
        old = self.limits[pid]
        if new is not None:
            self.limits[pid] = new
            self.after_set()
        return old


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel({7: (1024, 4096)})
    monkeypatch.setattr(resource, "prlimit", made.prlimit)
    monkeypatch.setattr(limits, "state", lambda identity: "gone" if made.taken else "alive")
    return made


RANK = ProcessIdentity(7, 100, "boot")


def test_a_limit_is_set(kernel: Kernel) -> None:
    set_open_files_limit(RANK, 64)
    assert kernel.limits[7] == (64, 4096)


def test_whoever_gets_the_pid_in_between_keeps_its_limits(kernel: Kernel) -> None:
    def used_again() -> None:
        kernel.taken, kernel.limits[7] = True, (500, 600)
        kernel.before_set = lambda: None

    kernel.before_set = used_again
    with pytest.raises(LookupError, match="has ended"):
        set_open_files_limit(RANK, 64)
    assert kernel.limits[7] == (500, 600)


def test_a_limit_that_it_has_set_itself_since_stays(kernel: Kernel) -> None:
    def used_again() -> None:
        kernel.taken, kernel.limits[7] = True, (70, 80)

    kernel.after_set = used_again
    with pytest.raises(LookupError, match="has ended"):
        set_open_files_limit(RANK, 64)
    assert kernel.limits[7] == (70, 80)


def test_a_process_that_ends_in_between_has_ended(kernel: Kernel) -> None:
    kernel.before_set = kernel.limits.clear
    with pytest.raises(LookupError, match="has ended"):
        set_open_files_limit(RANK, 64)


def test_a_rank_of_a_node_that_is_this_host_is_limited_as_one_of_this_host(token: str, start: Start) -> None:
    process = start("sleep", "1000", run=token)
    job = Mock()
    job.state.return_value = "alive"
    victim = Victim(0, replace(identify(process.pid), node=1), Path("/record"), parameters={"spare": 8})
    before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    (step,) = FdLimit().undo_steps("first", [victim])
    FdLimit().inject(job, victim)
    assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] < before[0]
    UNDO_ACTIONS[RESTORE_LIMIT](step, UndoContext(token, SYSTEM_CLOCK))
    assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == before
