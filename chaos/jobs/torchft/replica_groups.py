"""The program that runs a job of torchft on one host: a lighthouse, and a process for each replica group.

``python replica_groups.py '{"groups": …}' COMMAND …`` starts the command for each group, with the variables of
torchft's own examples (REPLICA_GROUP_ID, NUM_REPLICA_GROUPS, TORCHFT_LIGHTHOUSE) and those by which torchrun numbers a
single rank. A group that fails is started again, as Slurm, Kubernetes or torchrun would do it, while the lighthouse
lives and restarts are left. Nothing starts the lighthouse again. The program ends when no group runs any more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
ROLE_VARIABLE, LIGHTHOUSE = "CHAOS_ROLE", "lighthouse"

_LOOK_EVERY = 0.05
_LIGHTHOUSE_PROGRAM = str(Path(__file__).resolve().with_name("lighthouse.py"))


@dataclass(frozen=True)
class Options:
    """The first argument: how many groups there are, how often each may be started again, and the lighthouse.

    ``ports`` are that of the lighthouse and that of each group's own store. Times are in milliseconds.
    """

    groups: int
    restarts: int
    min_groups: int
    join_timeout: int
    heartbeat_timeout: int
    ports: Sequence[int]


class ReplicaGroups:
    """The lighthouse and the groups of one launch."""

    def __init__(self, options: Options, command: list[str]) -> None:
        self._options = options
        self._command = command
        self._restarts = dict.fromkeys(range(options.groups), 0)
        self._lighthouse = self._start_lighthouse()
        self._running = {group: self._start(group) for group in range(options.groups)}
        self._failed: set[int] = set()

    def run(self) -> int:
        """Start groups again until none runs any more. Returns 0 if all have ended well, else 1."""
        while self._running:
            for group, process in list(self._running.items()):
                code = process.poll()
                if code is not None:
                    self._ended(group, code)
            time.sleep(_LOOK_EVERY)
        if self._lighthouse.poll() is None:
            self._lighthouse.terminate()
        self._lighthouse.wait()
        return int(bool(self._failed))

    def _ended(self, group: int, code: int) -> None:
        del self._running[group]
        if code == 0:
            return
        if self._lighthouse.poll() is not None:
            self._give_up(group, code, "the lighthouse has ended")
        elif self._restarts[group] >= self._options.restarts:
            self._give_up(group, code, f"it has been started again {self._options.restarts} times")
        else:
            self._restarts[group] += 1
            self._running[group] = self._start(group)
            print(f"Replica group {group} has ended ({code}), and is started again.", flush=True)

    def _give_up(self, group: int, code: int, why: str) -> None:
        self._failed.add(group)
        print(f"Replica group {group} has ended ({code}), and is not started again: {why}.", flush=True)

    def _start_lighthouse(self) -> subprocess.Popen[bytes]:
        options = self._options
        arguments = (
            f"--bind={LOOPBACK}:{options.ports[0]}",
            f"--min_replicas={options.min_groups}",
            f"--join_timeout_ms={options.join_timeout}",
            f"--heartbeat_timeout_ms={options.heartbeat_timeout}",
        )
        return subprocess.Popen(
            [sys.executable, _LIGHTHOUSE_PROGRAM, *arguments],
            env={**os.environ, ROLE_VARIABLE: LIGHTHOUSE},
            stdin=subprocess.DEVNULL,
        )

    def _start(self, group: int) -> subprocess.Popen[bytes]:
        options = self._options
        variables = {
            **os.environ,
            "REPLICA_GROUP_ID": str(group),
            "NUM_REPLICA_GROUPS": str(options.groups),
            "TORCHFT_LIGHTHOUSE": f"http://{LOOPBACK}:{options.ports[0]}",
            "RANK": "0",
            "LOCAL_RANK": "0",
            "WORLD_SIZE": "1",
            "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": LOOPBACK,
            "MASTER_PORT": str(options.ports[1 + group]),
        }
        return subprocess.Popen(self._command, env=variables, stdin=subprocess.DEVNULL, start_new_session=True)


def main(arguments: list[str]) -> int:
    """Run the groups to their ends."""
    options, *command = arguments
    return ReplicaGroups(Options(**json.loads(options)), command).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
