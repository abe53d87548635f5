"""A /proc of made-up processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from chaos.machine.job.processes import find_run_processes

MINDSPORE = "/venv/mindspore/_c_expression.cpython-311-x86_64-linux-gnu.so"
PYTORCH = "/venv/torch/lib/libtorch_python.so"


@dataclass
class FakeProc:
    """A /proc of made-up processes. Directories and logs are real ones, so that the links of a process lead there."""

    root: Path
    started: int = field(default=100)

    def __post_init__(self) -> None:
        (self.root / "self").mkdir()

    def add(
        self,
        pid: int,
        ppid: int,
        *argv: str,
        session: int | None = None,
        state: str = "S",
        comm: str = "x",
        variables: dict[str, str] | None,
        cwd: Path | None = None,
        log: Path | None = None,
        cgroup: str = "0::/\n",
        inner_pid: int | None = None,
        forked: bool = False,
        trains: bool = False,
        library: str = MINDSPORE,
        network: str = "net:[1]",
    ) -> None:
        """Without ``variables`` the environment may not be read. ``forked``: it has executed no program of its own.

        ``trains``: it has loaded its framework, by the path of its library.
        """
        directory = self.root / str(pid)
        (directory / "fd").mkdir(parents=True)
        fields = [
            state,
            ppid,
            pid,
            pid if session is None else session,
            0,
            0,
            0x40 * forked,
            *[0] * 10,
            1,
            0,
            self.started + pid,
            *[0] * 30,
        ]
        (directory / "stat").write_text(f"{pid} ({comm}) {' '.join(map(str, fields))}\n")
        (directory / "cmdline").write_text("".join(f"{argument}\0" for argument in argv))
        (directory / "maps").write_text(f"7f00-7f01 r-xp 00000000 00:01 2 {library}\n" if trains else "")
        (directory / "cgroup").write_text(cgroup)
        pids = [pid] if inner_pid is None else [pid, inner_pid]
        (directory / "status").write_text(f"Name:\tx\nNSpid:\t{' '.join(map(str, pids))}\n")
        (directory / "root").symlink_to("/")
        (directory / "ns").mkdir()
        (directory / "ns" / "net").symlink_to(network)
        if variables is not None:
            (directory / "environ").write_text("".join(f"{name}={value}\0" for name, value in variables.items()))
        if cwd is not None:
            (directory / "cwd").symlink_to(cwd)
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()
            (directory / "fd" / "1").symlink_to(log)

    def roles(self, run: str = "r1") -> dict[int, tuple[str, int | None]]:
        processes = find_run_processes(run, proc_root=self.root)
        return {process.pid: (process.role, process.rank) for process in processes}
