"""The script of a fake job: trains as many steps as it is told. What it was started with is written for the tests.

``--wait-at N`` lets the ranks wait in step N until the file ``go`` is in the current directory.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from mindspore.tensor import Tensor
from mindspore.train.model import Model


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        select.select([], [], [], 0.005)


def was_reset(told: Path) -> bool:
    """Whether the device was reset since this process began to use it: then nothing of it works here any more."""
    return told.exists() and told.read_text("utf-8") == str(os.getpid())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--wait-at", type=int, default=0)
    parser.add_argument("--fail-at", type=int, default=0)
    parser.add_argument("--device", type=Path, help="uses a played device in every step (kit/hosts/played_tools.py)")
    parser.add_argument("--listen", type=int, help="a port that rank 0 listens on, or ends")
    arguments = parser.parse_args()
    rank, ranks = os.environ["MS_NODE_ID"], int(os.environ["MS_WORKER_NUM"])
    if arguments.listen is not None and rank == "0":
        listener = socket.create_server(("127.0.0.1", arguments.listen))
        listener.set_inheritable(False)
    started = {"argv": sys.argv, "environment": dict(os.environ)}
    Path(f"started-{rank}.json").write_text(json.dumps(started), "utf-8")

    def in_step(step: int) -> None:
        print(f"step {step} done", flush=True)
        if arguments.device is not None and was_reset(arguments.device / f"reset-{int(rank) % 2}"):
            raise RuntimeError("the device of this process was reset")
        if step == arguments.fail_at:
            raise RuntimeError(f"step {step} fails")
        if step == 1:
            # As in a job that reduces its gradients, no rank is done before all have begun.
            Path(f"begun-{rank}").touch()
            wait_until(lambda: len(list(Path().glob("begun-*"))) == ranks)
        if step == arguments.wait_at:
            wait_until(lambda: Path("go").exists())

    Model(in_step=in_step).train(1, [[Tensor([float(step)])] for step in range(arguments.steps)], callbacks=[])


if __name__ == "__main__":
    main()
