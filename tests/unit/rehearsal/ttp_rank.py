"""A rank without MindSpore: trains on the communicator and the SDK stand-in alone, and does what its test says.

Usage: ``python ttp_rank.py RANK`` in a directory with job.json, with CHAOS_AGENT set. What happens is left there as
files: saved-S/rank_R, done-S, left-R, exited-R.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
from mindio_ttp import framework_ttp as tft

from chaos.rehearsal import finished_ranks
from chaos.rehearsal.device.communication_errors import CommunicationAborted
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.ttp.timings import PROFILES

JOB: dict[str, Any] = json.loads(Path("job.json").read_text("utf-8"))
RANK = int(sys.argv[1])
RANKS = int(JOB["ranks"])
ADDRESS = "127.0.0.1"
os.environ["MINDIO_FOR_MINDSPORE"] = "1"
PROFILES["fast"] = replace(PROFILES["fast"], **JOB["timings"])


def pause(seconds: float) -> None:
    select.select([], [], [], seconds)


def saving(step: int, info: list[dict[str, Any]], arguments: Any, context: Any) -> None:
    assert arguments == f"arguments of {RANK}"
    assert context == "context"
    if RANK in JOB["saving_fails"]:
        raise OSError("no space left")
    directory = Path(f"saved-{step}")
    directory.mkdir(exist_ok=True)
    (directory / f"rank_{RANK}").write_text(json.dumps(info), "utf-8")


def renaming(step: int, context: Any) -> None:
    with Path(f"done-{step}").open("a") as file:
        file.write(f"{RANK}\n")


def exiting(context: Any) -> None:
    Path(f"exited-{RANK}").touch()
    finished_ranks.note(finished_ranks.EXITING, RANK)
    os._exit(1)


def register() -> None:
    tft.tft_register_save_ckpt_handler(saving, "context")
    tft.tft_register_rename_handler(renaming, "context")
    tft.tft_register_exit_handler(exiting, "context")
    if JOB["controller"] == RANK:
        tft.tft_init_controller(RANK, RANKS, False)
        tft.tft_start_controller(ADDRESS, JOB["port"], False, "")
    tft.tft_init_processor(RANK, RANKS, False, False, "")
    tft.tft_start_processor(ADDRESS, JOB["port"])
    if JOB["groups"]:
        group = next(group for group in JOB["groups"] if RANK in group)
        tft.tft_set_optimizer_replica(RANK, [{"rank_list": group, "replica_cnt": len(group), "replica_shift": 0}])
    tft.tft_set_step_args(f"arguments of {RANK}")


def act(what: str) -> None:
    """What this rank does now: end, stop, fail, or leave."""
    if what.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[what])
    elif what == "error":
        tft.tft_report_error(tft.ReportState.RS_UNKNOWN.value)
    elif what == "busy":
        hold_interpreter(JOB["busy_seconds"])
    else:
        leave()
        os._exit(0)


def hold_interpreter(seconds: float) -> None:
    """Work without letting another thread run, as a rank that compiles."""
    before, end = sys.getswitchinterval(), time.monotonic() + seconds
    sys.setswitchinterval(1000)
    while time.monotonic() < end:
        pass
    sys.setswitchinterval(before)


def leave() -> None:
    """The end of training, in the order in which MindSpore does it."""
    finished_ranks.note(finished_ranks.TRAINED, RANK)
    if JOB["controller"] == RANK:
        tft.tft_destroy_controller()
    tft.tft_destroy_processor()
    Path(f"left-{RANK}").touch()


def step_of(step: int, reduce: Callable[[], object]) -> None:
    mine = {(when, what) for rank, at, when, what in JOB["acts"] if rank == RANK and at == step}
    for when, what in mine:
        if when == "begin":
            act(what)
    reduce()
    tft.tft_start_updating_os(-1)
    for when, what in mine:
        if when == "update":
            act(what)
    tft.tft_end_updating_os(step)
    for when, what in mine:
        if when == "end":
            act(what)


def main() -> None:
    register()
    secret = Path("secret").read_bytes()
    one = Communicator(RANK, range(RANKS), str(Path("links").absolute()), secret, limit_seconds=60, on_refused=print)
    one.join()
    alone = JOB["alone"]
    with contextlib.suppress(CommunicationAborted):
        for step in range(1, JOB["steps"] + 1):
            pause(JOB["step_seconds"])
            step_of(step, (lambda: None) if alone else lambda: one.all_reduce(numpy.zeros(4, "float32")))
        leave()
        pause(JOB["after_seconds"].get(str(RANK), 0.0))


if __name__ == "__main__":
    limit = threading.Timer(JOB["limit"], os._exit, (77,))
    limit.daemon = True
    limit.start()
    main()
