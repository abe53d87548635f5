"""A quota is laid by a group of the run's own; no other group is written to, and no limit is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.machine.linux.cgroup import Hierarchy, place_for


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    """A hierarchy of version 2 in which process 7 is in /slice/job, as files."""
    mount = tmp_path / "cgroup"
    for group in (mount, mount / "slice", mount / "slice" / "job"):
        group.mkdir()
        (group / "cgroup.subtree_control").write_text("")
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "cgroup").write_text("0::/slice/job\n")
    return mount


def place(mount: Path, version: int = 2) -> Path:
    return place_for(7, Hierarchy(mount, version), mount.parent / "proc")


def contents(mount: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in mount.rglob("*") if path.is_file()}


@pytest.mark.parametrize("handing", ["", "slice", "slice/job"])
def test_it_is_made_where_processor_time_is_handed_on_already(unified: Path, handing: str) -> None:
    (unified / handing / "cgroup.subtree_control").write_text("memory cpu\n")
    before = contents(unified)
    assert place(unified) == unified / handing
    assert contents(unified) == before, "nothing was written"


def test_where_nobody_hands_it_on_it_is_refused_and_nothing_is_switched_on(unified: Path) -> None:
    before = contents(unified)
    with pytest.raises(OSError, match="hands processor time on"):
        place(unified)
    assert contents(unified) == before


@pytest.mark.parametrize(("name", "limit"), [("memory.max", "1000000"), ("cpu.max", "50000 100000"), ("pids.max", "9")])
def test_a_process_does_not_leave_a_limit_behind(unified: Path, name: str, limit: str) -> None:
    (unified / "slice" / "cgroup.subtree_control").write_text("cpu")
    (unified / "slice" / "job" / name).write_text("max 100000\n" if name == "cpu.max" else "max\n")
    assert place(unified) == unified / "slice"
    (unified / "slice" / "job" / name).write_text(f"{limit}\n")
    with pytest.raises(OSError, match="has limits of its own"):
        place(unified)


def test_a_group_that_is_not_seen_from_here_is_refused(unified: Path) -> None:
    (unified.parent / "proc" / "7" / "cgroup").write_text("0::/../other\n")
    with pytest.raises(OSError, match="not seen from here"):
        place(unified)


def test_with_version_1_it_is_made_below_the_processs_own(unified: Path) -> None:
    (unified.parent / "proc" / "7" / "cgroup").write_text("4:cpu,cpuacct:/slice/job\n0::/else\n")
    assert place(unified, 1) == unified / "slice" / "job"
