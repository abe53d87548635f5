"""A plain Python rank under either SDK: trains two arrays with the others and records every call and every handler.

Usage: ``python rank.py RANK INCARNATION`` in a directory with job.json. The calls come in the order in which MindSpore
2.10 makes them: update begins, replica group once, update ends, pause; after an error a report, then the next action.
It trains on a communicator that its handlers stop and make anew, as they do with the device's, and ends with a digest.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy

from chaos.rehearsal.device.communication_errors import CommunicationAborted
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.ttp.timings import PROFILES
from tests.conformance import agent
from tests.conformance.record import Record
from tests.conformance.training import advance, digest, first_state, share

ADDRESS = "127.0.0.1"
TOLD_SECONDS = 1.0
JOB: dict[str, Any] = json.loads(Path("job.json").read_text("utf-8"))
RANK, INCARNATION = int(sys.argv[1]), int(sys.argv[2])
RANKS = int(JOB["ranks"])
PROFILES["fast"] = replace(PROFILES["fast"], **JOB["fast"])
HANDLERS = ("save_ckpt", "rename", "exit", "stop", "clean", "repair", "rollback", "rebuild_group", "stream_sync")

# MindIO TFT asks MindSpore for the number of its device when a processor is made, and for nothing else.
if "mindspore" not in sys.modules:
    stub = types.ModuleType("mindspore")
    stub.context = types.SimpleNamespace(get_context=lambda key: RANK)  # type: ignore[attr-defined]
    sys.modules["mindspore"] = stub

from mindio_ttp import framework_ttp as tft  # noqa: E402 - the package imports MindSpore


class Uce(RuntimeError):
    """Memory of this rank's device is lost."""


class Hcce(RuntimeError):
    """Communication of this rank's device has failed."""


class Imprecise(RuntimeError):
    """This rank has found its own results wrong."""


class Replaced(RuntimeError):
    """The first collective of a process that takes a lost one's place: its state must come from a replica."""


class Rank:
    """One process's training and its part in every repair."""

    def __init__(self) -> None:
        self.record = Record(f"{RANK}.{INCARNATION}")
        self.state = first_state(RANK, INCARNATION)
        self.done = 0
        self.groups_told = False
        self.acts = [act for act in JOB["acts"] if act["rank"] == RANK and act.get("incarnation", 0) == INCARNATION]
        self.generation = "0"
        self.links: Communicator | None = None
        self.agent: agent.Agent | None = None

    # Calls of the SDK.

    def call(self, name: str, *arguments: Any) -> Any:
        """Call the SDK and record what it answers."""
        result = getattr(tft, name)(*arguments)
        self.record.write("call", name, list(arguments), result)
        return result

    def report(self, state: str) -> None:
        """Report an error, and record it by its name: its number is not the same in all versions."""
        self.record.write("call", "tft_report_error", [state], None)
        tft.tft_report_error(tft.ReportState[state].value)

    def register(self) -> None:
        for name in HANDLERS:
            getattr(tft, f"tft_register_{name}_handler")(self.handler(name), f"context of {name}")
        if JOB["controller"] == RANK:
            self.agent = agent.start_controller(tft, RANK, JOB, self.record)
        tft.tft_init_processor(RANK, RANKS, False, False, "", True, JOB["arf"])
        tft.tft_start_processor(ADDRESS, JOB["port"])
        if self.call("tft_is_reboot_node"):
            self.report("RS_INIT_FINISH")
            self.call("tft_get_reboot_type")
            if self.call("tft_wait_next_action") != tft.Action.RETRY.value:
                os._exit(1)
        tft.tft_set_step_args(f"arguments of {RANK}")

    # Handlers.

    def handler(self, name: str) -> Callable[..., Any]:
        function = getattr(self, f"on_{name}", None)

        def called(*arguments: Any) -> Any:
            self.record.write("handler", name, *arguments)
            self.act("handler", name)
            if RANK in JOB["raising"].get(name, []):
                raise OSError(f"{name} fails")
            result = function(*arguments) if function else None
            self.record.write("returned", name, result)
            return result

        return called

    def on_save_ckpt(self, step: int, info: Any, arguments: Any, context: Any) -> None:
        directory = Path(f"saved-{step}")
        directory.mkdir(exist_ok=True)
        (directory / f"rank_{RANK}").write_bytes(self.state.tobytes())

    def on_exit(self, context: Any) -> None:
        Path(f"exited-{RANK}").touch()
        if JOB["controller"] == RANK:
            # The controller goes with this process. The vendor's tells the ranks one after the other, and one that has
            # not been told looks for a controller for more than a minute.
            deadline = time.monotonic() + TOLD_SECONDS
            while len(list(Path().glob("exited-*"))) < RANKS and time.monotonic() < deadline:
                threading.Event().wait(0.02)
        os._exit(1)

    def on_stop(self, arguments: Any, context: Any) -> None:
        assert self.links is not None
        self.links.abort()

    def on_clean(self, is_uce: bool, arguments: Any, context: Any) -> int:
        answer = JOB["clean"].get(str(RANK), 0)
        repair_type = self.call("tft_get_repair_type")
        if repair_type == "retry":
            self.join(str(int(self.generation) + 1))
        if answer == "raise":
            raise OSError("the device cannot be cleaned")
        return int(answer)

    def on_rebuild_group(self, lost: Any, arguments: Any, context: Any) -> None:
        self.join(f"arf-{len(list(Path().glob('replaced-*')))}")

    def on_repair(self, step: int, rebuild: bool, bad: Any, info: Any, arguments: Any, context: Any) -> None:
        assert self.links is not None
        kinds = tft.RepairType
        if info["repair_type"] == kinds.RT_SEND.value:
            for other in info["dst"]:
                self.links.send(other, self.state)
        elif info["repair_type"] in (kinds.RT_UCE_HIGHLEVEL.value, kinds.RT_RECV_REPAIR.value):
            self.state = self.links.receive(info["src"][0], self.state).copy()

    def join(self, generation: str) -> None:
        """Join the communicator of that generation, in place of the one before."""
        directory = Path("links", generation).absolute()
        directory.mkdir(parents=True, exist_ok=True)
        secret = Path("secret").read_bytes()
        if self.links is not None:
            self.links.close()
        self.links = Communicator(
            RANK, range(RANKS), str(directory), secret, limit_seconds=JOB["collective_limit"], on_refused=print
        )
        self.links.join()
        self.generation = generation

    # Faults.

    def act(self, when: str, where: str | int) -> None:
        """Do what the job says for this place, once."""
        for act in [candidate for candidate in self.acts if candidate["when"] == when and candidate["at"] == where]:
            self.acts.remove(act)
            if "delay" in act:
                threading.Timer(act["delay"], os.kill, (os.getpid(), signal.Signals[act["what"]])).start()
                continue
            self.record.write("act", act["what"])
            if act["what"].startswith("SIG"):
                os.kill(os.getpid(), signal.Signals[act["what"]])
            elif act["what"] == "uce":
                self.state.fill(numpy.nan)
                raise Uce("UCEError")
            elif act["what"] == "hcce":
                raise Hcce("HCCEError")
            elif act["what"] == "imprecise":
                self.state += 1.0
                raise Imprecise("results differ")
            elif act["what"] == "uce-low":
                raise Uce("UCEError")
            elif act["what"] == "order-dump":
                assert self.agent is not None
                self.agent.dump()
                threading.Event().wait()  # the job ends by it
            elif act["what"] == "pause":
                Path("pause-wanted").touch()
            elif act["what"] == "unknown":
                raise RuntimeError("an error that nobody knows")
            elif act["what"] != "mark":
                raise ValueError(act["what"])

    # Training.

    def train(self) -> None:
        assert self.links is not None
        for step in range(self.done + 1, JOB["steps"] + 1):
            threading.Event().wait(JOB["step_seconds"])
            self.act("begin", step)
            gradient = self.links.all_reduce(share(self.state, RANK, step)) / RANKS
            tft.tft_start_updating_os(-1)
            self.act("update", step)
            advance(self.state, gradient)
            if not self.groups_told:
                self.groups_told = True
                self.tell_group()
            self.done = step
            self.act("updated", step)
            tft.tft_end_updating_os(self.number(step))
            if JOB["pauses"]:
                tft.tft_pause_train(step)
            self.record.write("step", str(step))
            self.act("end", step)

    def number(self, step: int) -> int:
        """How the SDK is told of a step: some ranks may count anew after one, as MindSpore does after a rollback."""
        anew = JOB["recount"]
        return step - anew["after"] if anew and RANK in anew["ranks"] and step > anew["after"] else step

    def tell_group(self) -> None:
        group = next(group for group in JOB["groups"] if RANK in group)
        entries = [{"type": 1, "rank_list": group, "replica_cnt": len(group), "replica_shift": 0}]
        tft.tft_set_optimizer_replica(RANK, entries)

    def run(self) -> None:
        """Train to the end, through every repair. Raises what ends the job."""
        self.register()
        if INCARNATION == 0:
            self.join("0")
        while True:
            try:
                if INCARNATION and not self.groups_told and not self.done:
                    raise Replaced("ARF FINISH")
                self.train()
                break
            except (CommunicationAborted, Uce, Hcce, Imprecise, Replaced) as error:
                reported = {
                    Uce: "RS_UCE",
                    Hcce: "RS_HCCL_FAILED",
                    Imprecise: "RS_RETRY",  # which 7.3.2 does not have
                    CommunicationAborted: "RS_NORMAL",
                    Replaced: "RS_PREREPAIR_FINISH",
                }[type(error)]
                self.report(reported)
                if self.call("tft_wait_next_action") != tft.Action.RETRY.value:
                    raise
                self.done = self.call("tft_get_repair_step")
            except Exception:
                # Whatever it is: MindSpore's wrapper reports what it does not know as RS_UNKNOWN and raises it again,
                # and an SDK is compared by what it makes of that. Nothing is swallowed here.
                self.report("RS_UNKNOWN")
                raise
        self.record.write("end", digest(self.state), self.done)
        Path(f"ended-{RANK}").touch()
        if JOB["controller"] == RANK:
            tft.tft_destroy_controller()
        tft.tft_destroy_processor()


if __name__ == "__main__":
    limit = threading.Timer(JOB["limit"], os._exit, (77,))
    limit.daemon = True
    limit.start()
    Rank().run()
