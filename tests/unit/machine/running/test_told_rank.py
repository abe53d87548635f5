"""A worker to which msrun has given no number is the rank that MindSpore has said in its own log, or none yet."""

from __future__ import annotations

import os
import struct
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from chaos.attach.choose import chosen_ranks, named_job
from chaos.jobs.kind import JobError
from tests.unit.machine.fake_proc import FakeProc
from tests.unit.machine.running.fake_jobs import found, look, variables


def unnumbered(of_scheduler: bool = True) -> dict[str, str]:
    """What msrun of MindSpore 2.10 gives a worker on several nodes without ``--node_rank``."""
    own = {name: value for name, value in variables(0).items() if name != "MS_NODE_ID"}
    if not of_scheduler:
        del own["RANK_ID"]
    return {**own, "TZ": "UTC0"}


def line(pid: int, rank: int, written: datetime | None = None) -> str:
    time = f"{written or datetime.now(timezone.utc):%Y-%m-%d-%H:%M:%S}"
    return (
        f"[WARNING] DISTRIBUTED({pid},7fb198a71100,python):{time}.689.115 "
        f"[mindspore/ccsrc/cluster/topology/cluster_context.cc:428] PostProcess] This node {rank + 7} rank id: {rank}\n"
    )


def add_workers(proc: FakeProc, work: Path, own: dict[str, str]) -> list[Path]:
    """Two workers under msrun, and their logs."""
    proc.add(100, 1, "python", "/venv/bin/msrun", "train.py", variables={}, cwd=work)
    logs = [work / "logs" / f"worker_{number}.log" for number in range(2)]
    for number, log in enumerate(logs):
        proc.add(110 + number, 100, "python", "train.py", variables=own, cwd=work, log=log)
        (proc.root / str(110 + number) / "fdinfo").mkdir()
        (proc.root / str(110 + number) / "fdinfo" / "1").write_text("pos:\t0\nflags:\t0100001\n")
    return logs


def chosen(proc: FakeProc, name: str, rank: int) -> int:
    job = named_job(look(proc), name, here=Path("/"), proc_root=proc.root)
    (process,) = chosen_ranks(job, [rank], name, here=Path("/"))
    return process.pid


@pytest.mark.parametrize("of_scheduler", [True, False])
def test_the_rank_id_of_the_scheduler_is_none_of_its_workers(proc: FakeProc, work: Path, of_scheduler: bool) -> None:
    add_workers(proc, work, unnumbered(of_scheduler))
    for name in ("100", "110", "111", str(work)):
        with pytest.raises(JobError, match=r"(?s)the rank numbers of these processes are unknown.*PID 110.*PID 111"):
            chosen(proc, name, 0)


def test_the_rank_is_the_one_in_the_own_log(proc: FakeProc, work: Path) -> None:
    logs = add_workers(proc, work, unnumbered())
    logs[0].write_text(
        line(99, 0) + "This node 0 rank id: 0\n" + line(110, 3)
    )  # an earlier launch's, a script's, its own
    logs[1].write_text(line(111, 2))
    (job,) = look(proc).jobs
    assert found(job) == [("launcher", None, 100), ("rank", 2, 111), ("rank", 3, 110)]
    assert (chosen(proc, str(work), 3), chosen(proc, "110", 2)) == (110, 111)
    with pytest.raises(JobError, match="not among the ranks"):
        chosen(proc, "110", 0)


def test_a_log_that_names_two_ranks_names_none(proc: FakeProc, work: Path) -> None:
    logs = add_workers(proc, work, unnumbered())
    logs[0].write_text(line(110, 3) + line(110, 1))
    logs[1].write_text(line(111, 2))
    with pytest.raises(JobError, match=r"(?s)not known.*PID 110"):
        chosen(proc, str(work), 3)
    assert chosen(proc, str(work), 2) == 111


def test_one_number_for_several_workers_of_a_launcher_is_refused_without_blame(proc: FakeProc, work: Path) -> None:
    """An MS_NODE_ID that was exported before msrun."""
    add_workers(proc, work, variables(0))
    with pytest.raises(JobError, match=r"(?s)the launcher has started the same rank twice\. Give.*PID 110.*PID 111"):
        chosen(proc, str(work), 0)


def add_worker(proc: FakeProc, work: Path, zone: str | None = "UTC0") -> tuple[Path, datetime]:
    """A worker that was started just now, its log, and when that was."""
    uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])
    proc.started = int(uptime * os.sysconf("SC_CLK_TCK")) - 110
    own = unnumbered()
    del own["TZ"]
    return add_workers(proc, work, own if zone is None else {**own, "TZ": zone})[0], datetime.now(timezone.utc)


def test_what_an_earlier_launch_with_the_same_pid_has_said_is_not_believed(proc: FakeProc, work: Path) -> None:
    """A container that is started again gives its processes the PIDs of those before, and appends to their logs."""
    log, started = add_worker(proc, work)
    earlier, timeless = line(110, 3, started - timedelta(minutes=1)), line(110, 4).replace(":20", ":no time, 20")
    log.write_text(earlier + timeless)
    with pytest.raises(JobError, match=r"(?s)not known.*PID 110"):
        chosen(proc, str(work), 3)
    log.write_text(earlier + timeless + line(110, 1, started + timedelta(seconds=4)))
    assert chosen(proc, str(work), 1) == 110


@pytest.mark.parametrize("by", ["TZ", "TZ with a path", "TZ without a file", "localtime", "no localtime"])
def test_the_time_of_a_line_is_that_of_the_zone_of_the_process(proc: FakeProc, work: Path, by: str) -> None:
    names = {
        "TZ": "Asia/Shanghai",
        "TZ with a path": ":/usr/share/zoneinfo/Asia/Shanghai",
        "TZ without a file": "CST-8",
    }
    log, started = add_worker(proc, work, names.get(by))
    root = work / "root"
    place = root / "usr/share/zoneinfo/Asia"
    place.mkdir(parents=True)
    (root / "etc").mkdir()
    (place / "Shanghai").write_bytes(SHANGHAI)
    if by == "localtime":
        (root / "etc/localtime").symlink_to("/usr/share/zoneinfo/Asia/Shanghai")
    (proc.root / "110" / "root").unlink()
    (proc.root / "110" / "root").symlink_to(root)
    there = started if by == "no localtime" else started + timedelta(hours=8)
    log.write_text(line(110, 3, there - timedelta(minutes=1)))
    with pytest.raises(JobError, match=r"(?s)not known.*PID 110"):
        chosen(proc, str(work), 3)
    log.write_text(line(110, 3, there + timedelta(seconds=4)))
    assert chosen(proc, str(work), 3) == 110


SHANGHAI = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lBB", 8 * 3600, 0, 0) + b"CST\0"
"""The file of a zone that is always eight hours before UTC (RFC 8536)."""
