"""A line of the kernel ends with a newline, and with nothing else that a name in it may hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.faults.beside import slow_opens
from chaos.machine.linux.cgroup import Hierarchy, counts, cpu_hierarchy, group_of
from chaos.machine.linux.containers import Container, container_of
from chaos.machine.linux.memory_group import memory_groups
from chaos.machine.linux.mounts import all_mounts, may_mount, mounts_at
from chaos.machine.linux.net import connected
from chaos.machine.linux.permissions import CAP_DAC_OVERRIDE, has_capability
from chaos.machine.linux.procfs import kernel_lines, read_signals
from chaos.machine.remote import program
from chaos.machine.running.outputs import standard_outputs_of
from chaos.platforms.docker import processes
from chaos.store.baseline_key import processor_model

ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r"
"""All that ``str.splitlines`` takes for the end of a line, but for the newline."""

NAME = f"a{ENDS}b\u2003c"
"""With another character too that ``str.split`` takes for a space."""

_STATUS = "".join(f"{name}:\t{0:016x}\n" for name in ("SigPnd", "ShdPnd", "SigIgn")) + f"SigCgt:\t{1:016x}\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for pid in ("7", "self"):
        (tmp_path / pid / "fdinfo").mkdir(parents=True)
        (tmp_path / pid / "fd").mkdir()
        (tmp_path / pid / "task").mkdir()
    return tmp_path


def write(path: Path, text: str) -> None:
    path.write_bytes(os.fsencode(text))


def test_only_a_newline_ends_a_line() -> None:
    assert kernel_lines(f"{NAME}\n\nlast\n") == [NAME, "", "last"]
    assert kernel_lines("one\ntwo") == ["one", "two"]
    assert kernel_lines("") == []
    assert kernel_lines("\n") == [""]


def test_mounts_are_told_whatever_their_names_hold(proc: Path) -> None:
    write(
        proc / "self" / "mountinfo",
        f"1 0 0:1 / /before rw - ext4 /dev/a rw\n2 0 0:2 /{NAME} /{NAME}\\040\\011 rw - tmpfs a\\043{NAME} rw\n"
        "a line of three\n3 0 0:3 / /after rw - ext4 /dev/b rw\n",
    )
    point = f"/{NAME} \t"
    assert [mount.point for mount in all_mounts("self", proc)] == ["/before", point, "/after"]
    (mount,) = mounts_at(Path(point), "self", proc)
    assert (mount.root, mount.source, mount.type) == (f"/{NAME}", f"a#{NAME}", "tmpfs")
    assert program._mounts(proc / "self" / "mountinfo") >= {"/before", point, "/after"}


def test_a_mount_that_is_watched_is_found_behind_any_other(proc: Path) -> None:
    (proc / "self" / "fdinfo" / "5").write_text("pos:\t0\nflags:\t02\nmnt_id:\t3\n")
    write(
        proc / "self" / "mountinfo",
        f"2 0 0:2 / /x\x0b3 rw - tmpfs a rw\n4 0 0:2 /{NAME} /{NAME} rw - tmpfs a rw\n"
        f"3 0 0:3 /{NAME} /{NAME}\\040 rw - ext4 /dev/b rw\n",
    )
    assert slow_opens._mount_point(5, str(proc / "self")) == f"/{NAME} "


def test_control_groups_are_found_whatever_their_names_hold(proc: Path) -> None:
    for controllers, controller in (("4:cpu,cpuacct", "cpu"), ("5:memory", "memory")):
        write(proc / "7" / "cgroup", f"9:name=x:/{NAME}\n{controllers}:/{NAME}/job\n")
        assert group_of(7, Hierarchy(Path("/cg"), 1, controller), proc) == Path(f"/cg/{NAME}/job")
    write(proc / "7" / "cgroup", f"odd\n0::/{NAME}\n")
    assert group_of(7, Hierarchy(Path("/cg"), 2), proc) == Path(f"/cg/{NAME}")


def test_hierarchies_are_found_whatever_else_is_mounted(proc: Path) -> None:
    mount = proc / f"mounted {NAME}"
    (mount / NAME).mkdir(parents=True)
    point = str(mount).replace(" ", "\\040")
    write(proc / "self" / "cgroup", f"4:cpu,memory:/{NAME}\n")
    write(
        proc / "self" / "mountinfo",
        f"2 0 0:2 / /{NAME} rw - tmpfs a rw\n3 0 0:3 / {point} rw - cgroup cgroup rw,cpu,memory\n",
    )
    assert cpu_hierarchy(proc) == Hierarchy(mount, 1)
    assert memory_groups(proc).parent == mount / NAME


def test_a_process_says_nothing_of_itself_by_its_name(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for end in ENDS:
        for claim in ("SigCgt:\tzz", "CapEff:\tffffffffffffffff", "NSpid:\t8 9"):
            text = f"Name:\tx{end}{claim}\nNSpid:\t7\nCapEff:\t{0:016x}\n{_STATUS}"
            for pid in ("7", "self"):
                write(proc / pid / "status", text)
            found = read_signals(7, proc)
            assert found is not None
            assert found.caught == {1}
            assert not has_capability(7, CAP_DAC_OVERRIDE, proc)
            assert not may_mount(proc)
            assert container_of(7, proc) is None
            monkeypatch.setattr(processes, "PROC", proc)
            assert processes._own_pid(7) == 7
    write(proc / "7" / "status", "Name:\tx\nNSpid:\t7\t2\n")
    assert container_of(7, proc) == Container(None, 2)


def test_lines_that_say_less_than_they_should_are_passed_over(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connected, "PROC", proc)
    (proc / "self" / "net").mkdir()
    tcp = "  sl  local_address rem_address   st\n   0: 0100007F:0016 0200007F:0017 01\n   1:\n\n"
    (proc / "self" / "net" / "tcp").write_text(tcp)
    assert connected.connections("self", ["127.0.0.2"]) == 1
    (proc / "cpu.stat").write_text("nr_periods 3\nodd\nnr_throttled 2\nwaited x\n")
    assert counts(proc / "cpu.stat") == {"nr_periods": 3, "nr_throttled": 2}
    write(proc / "7" / "status", "Name:\tx\nNSpid:\n")
    assert container_of(7, proc) is None


def test_a_log_is_one_that_its_process_writes(proc: Path, tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    (proc / "7" / "fd" / "1").symlink_to(tmp_path / "log")
    for flags, found in ((f"odd:\t{NAME}\nflags:\t0100001\n", 1), (f"odd:{ENDS}flags:\t01\nflags:\t0\n", 0)):
        write(proc / "7" / "fdinfo" / "1", flags)
        assert len(standard_outputs_of(7, proc)) == found


def test_the_processor_is_told_by_lines_of_the_kernel(tmp_path: Path) -> None:
    write(tmp_path / "cpuinfo", "model name\t: A\x1cflags: B\nflags\t\t: fpu\n")
    assert processor_model(tmp_path / "cpuinfo") == '{"flags": "fpu", "model name": "A\\u001cflags: B"}'
