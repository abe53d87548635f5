"""Starts a command once for each rank, and starts all ranks again when one fails, as a supervisor of one's own does.

python supervisor.py RANKS LOGS LIMIT COMMAND…. It knows nothing of chaos. Ranks that it starts again get --is-recover=1
as a further argument. It ends with 0 when every rank has, and with 1 when it has started them LIMIT times again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def start(ranks: int, logs: str, again: int, command: Sequence[str]) -> list[subprocess.Popen[bytes]]:
    """One process for each rank, with a log of its own."""
    processes = []
    for rank in range(ranks):
        variables = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks)}
        name = f"worker_{rank}.log" if not again else f"worker_{rank}.again-{again}.log"
        with Path(logs, name).open("wb") as log:
            processes.append(subprocess.Popen(command, env=variables, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
    return processes


def failed(processes: Sequence[subprocess.Popen[bytes]]) -> bool:
    """Wait until every process has ended well, or one has not; then the others are ended."""
    while None in (states := [process.poll() for process in processes]):
        if any(state not in (None, 0) for state in states):
            break
        time.sleep(0.05)
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    return any(process.wait() for process in processes)


def main() -> int:
    ranks, logs, limit, *command = sys.argv[1:]
    for again in range(int(limit) + 1):
        recover = ["--is-recover=1"] if again else []
        if not failed(start(int(ranks), logs, again, [*command, *recover])):
            return 0
        print(f"the ranks have failed, {int(limit) - again} restarts are left", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
