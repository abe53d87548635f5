"""A rank runs into the limit of a control group of its own: the kernel ends it and counts it; the group goes again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.rank_acts.oom import REMOVE
from chaos.heal.undo import UNDO_ACTIONS, after_processes
from chaos.history.ledger import UndoStep
from chaos.machine.linux.cgroup import members
from chaos.machine.linux.memory_group import NoMemoryGroup, kills, memory_groups
from chaos.machine.linux.process import identify

LIMIT = 16 << 20
_RANK = """
import sys
from chaos.agent.acts import perform
from chaos.agent.record import Record
record = Record(sys.argv[1], run="run-1", attempt="train", rank=1)
sys.stdin.readline()
perform({"act": "oom", "most": int(sys.argv[2])}, record, fault="oom", step=5, phase="forward")
"""


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that takes 64 MiB when it is told to."""
    command = [sys.executable, "-c", _RANK, str(tmp_path), str(64 << 20)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def group(rank: subprocess.Popen[bytes]) -> Iterator[Path]:
    try:
        made = memory_groups().make(f"test-{rank.pid}", LIMIT)
    except (NoMemoryGroup, OSError) as error:
        pytest.skip(f"no control group with a limit of memory can be made here: {error}")
    yield made
    rank.kill()
    rank.wait()
    if made.exists():
        made.rmdir()


def undo(group: Path) -> str:
    step = UndoStep("oom-rank-1", "oom", REMOVE, {"path": str(group)}, "remove it")
    return UNDO_ACTIONS[REMOVE](step, UndoContext("token", SYSTEM_CLOCK))


def test_the_kernel_ends_it_and_counts_it_and_the_group_is_removed(rank: subprocess.Popen[bytes], group: Path) -> None:
    memory_groups().put(group, identify(rank.pid))
    assert (members(group), kills(group)) == ([rank.pid], 0)
    with pytest.raises(CannotUndo, match=f"still holds process {rank.pid}"):
        undo(group)
    rank.communicate(b"go\n", timeout=60)
    assert (rank.returncode, kills(group)) == (-9, 1)
    assert undo(group) == f"removed {group}"
    assert undo(group) == f"there is no {group}"
    assert after_processes(REMOVE)


def test_without_a_limit_it_stops_by_itself(rank: subprocess.Popen[bytes], tmp_path: Path) -> None:
    rank.communicate(b"go\n", timeout=60)
    assert rank.returncode == 0
    (record,) = tmp_path.glob("*.jsonl")
    assert b"nothing has ended the process" in record.read_bytes()


def test_what_is_no_group_is_left_alone(tmp_path: Path) -> None:
    (other := tmp_path / "chaos-oom-1-2").mkdir()
    with pytest.raises(CannotUndo, match="is no control group of a run"):
        undo(other)
    assert other.is_dir()
    for wrong in (Path("chaos-oom-1"), tmp_path / ".." / "chaos-oom-1"):
        with pytest.raises(CannotUndo, match="does not give an absolute path"):
            undo(wrong)


def test_where_none_can_be_made_it_is_refused_by_name(tmp_path: Path) -> None:
    proc = tmp_path / "self"
    proc.mkdir()
    (proc / "cgroup").write_text("0::/\n")
    (proc / "mountinfo").write_text("1 0 0:1 / / rw - ext4 /dev/vda rw\n")
    with pytest.raises(NoMemoryGroup, match="no control group of this machine controls memory"):
        memory_groups(tmp_path)
    unified = tmp_path / "unified"
    unified.mkdir()
    (proc / "mountinfo").write_text(f"1 0 0:1 / {unified} rw - cgroup2 cgroup2 rw\n")
    (unified / "cgroup.subtree_control").write_text("cpu\n")
    with pytest.raises(NoMemoryGroup, match="gives its groups no control of memory"):
        memory_groups(tmp_path)
    (unified / "cgroup.subtree_control").write_text("cpu memory\n")
    assert (memory_groups(tmp_path).parent, memory_groups(tmp_path).version) == (unified, 2)
