"""The launcher of plain ranks: as much of msrun as a job without MindSpore needs.

``python plainrun.py RANKS[:OWN,…] LOGS COMMAND …`` starts the command once for each rank, or for each of the node's own
ranks, each in a session of its own, with msrun's variables and logs, and ends, as msrun does with ``--join=False``.
Where a cluster agent (``taskd``) is on the path it hands the ranks over to it, again as msrun does, and stays until the
job is over.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Collection
from typing import Any

_ALL = -1


class Ranks:
    """The processes of this host's ranks, started and watched by the functions that msrun hands over."""

    def __init__(self, ranks: int, numbers: Collection[int], logs: str, command: list[str]) -> None:
        self._size = ranks
        self._own = numbers
        self._logs = logs
        self._command = command
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start_all(self) -> int:
        """Start every rank. Returns 0, or 1 where one has ended at once."""
        return self.start(self._own)

    def start(self, ranks: Collection[int]) -> int:
        """Start these ranks; an existing log is overwritten. Returns 0, or 1 where one has ended at once."""
        for rank in ranks:
            self._start(rank)
        return int(any(self._processes[rank].poll() is not None for rank in ranks))

    def kill(self, pids: Collection[int]) -> int:
        """Kill these processes, all of them for ``[-1]``.

        A process that has ended is left out: its number may be another's.
        """
        for process in self._processes.values():
            if (_ALL in pids or process.pid in pids) and process.poll() is None:
                process.send_signal(signal.SIGKILL)
        return 0

    def monitor(self, ranks: Collection[int]) -> dict[int, dict[str, Any]]:
        """Return process and status of these ranks, of all for ``[-1]``.

        The status is None while the process runs, then its return code.
        """
        return {
            rank: {"pid": process.pid, "status": process.poll(), "global_rank": rank}
            for rank, process in self._processes.items()
            if _ALL in ranks or rank in ranks
        }

    def _start(self, rank: int) -> None:
        path = os.path.join(self._logs, f"worker_{rank}.log")
        variables = {
            **os.environ,
            "MS_ROLE": "MS_WORKER",
            "MS_NODE_ID": str(rank),
            "MS_WORKER_NUM": str(self._size),
            "RANK_ID": str(rank),
            "RANK_SIZE": str(self._size),
        }
        with open(path, "wb") as log:
            self._processes[rank] = subprocess.Popen(
                self._command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        print(f"Start worker process with rank id:{rank}, log file:{path}. ", flush=True)


def main(arguments: list[str]) -> None:
    """Start the ranks, or hand them over to the cluster agent."""
    ranks, logs, *command = arguments
    size, _, listed = ranks.partition(":")
    numbers = [int(number) for number in listed.split(",")] if listed else range(int(size))
    processes = Ranks(int(size), numbers, logs, command)
    if importlib.util.find_spec("taskd") is None:
        processes.start_all()
        return
    from taskd.api.taskd_agent_api import init_taskd_agent, register_func, start_taskd_agent

    # It serves this framework's jobs only; it is handed functions like msrun's.
    if not init_taskd_agent({"Framework": "MindSpore"}):
        sys.exit("the cluster agent does not start")
    for name, function in {
        "START_ALL_WORKER": processes.start_all,
        "START_WORKER_LIST": processes.start,
        "KILL_WORKER": processes.kill,
        "MONITOR": processes.monitor,
    }.items():
        register_func(name, function)
    start_taskd_agent()


if __name__ == "__main__":
    main(sys.argv[1:])
