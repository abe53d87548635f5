"""The cluster agent's side of a conformance job: hosts the controller, answers it, and records what both say.

Usage: ``python agent.py`` for a controller outside the ranks. In rank 0 the same answers are registered when the job
has an agent, as MindSpore's own stub does for ARF.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import types
from collections.abc import Collection
from pathlib import Path
from typing import Any

from chaos.rehearsal.taskd.strategies import PROCESS_FAULT, RETRY_FAILED, Situation, choose, offered_after
from tests.conformance.record import Record

ADDRESS = "127.0.0.1"
POLL_SECONDS = 0.05
ANSWER_SECONDS = 0.2
PAUSE_SECONDS, PAUSE_LIMIT_SECONDS = 0.5, 60


class Agent:
    """Answers every report as MindCluster does for a job with the strategies ``allowed``; not at all if ``silent``."""

    def __init__(self, allowed: list[str], record: Record, *, silent: bool) -> None:
        self._allowed = allowed
        self._silent = silent
        self._record = record
        self._stopping = False
        self._pausing = False
        self._faults: dict[int, int] = {}
        self._offered: Collection[str] = ()
        self._chosen = ""
        self._tried: set[str] = set()

    def register(self) -> None:
        """Register with the controller of this process."""
        from mindio_ttp import controller_ttp

        for name in ("report_fault_ranks", "report_stop_complete", "report_strategies", "report_result"):
            controller_ttp.tft_register_mindx_callback(name, getattr(self, name))

    def pause(self, seconds: int) -> None:
        """Ask for a pause, which the controller ends after ``seconds``."""
        self._pausing = True
        self._tell("stop_train", {}, "pause", seconds)

    def dump(self) -> None:
        """Order to save and end the job, which nobody has asked for."""
        self._chosen = "dump"
        self._tell("dump")

    def report_fault_ranks(self, ranks: dict[int, int], *codes: Any) -> int:
        """Ranks are at fault. Later versions of the SDK give the codes too, and report again once all have stopped."""
        self._hear("report_fault_ranks", _by_name(ranks))
        if not self._stopping:
            self._stopping = True
            self._tell("stop_train", {})
        return 0

    def report_stop_complete(self, code: int, message: str, ranks: dict[int, int]) -> int:
        """All ranks have stopped, or training has paused."""
        self._hear("report_stop_complete", code, _by_name(ranks))
        if self._pausing:
            threading.Timer(PAUSE_SECONDS, self._tell, ("change_strategy", "continue")).start()
        else:
            self._tell("on_global_rank", {})
        return 0

    def report_strategies(self, ranks: dict[int, int], names: list[str]) -> int:
        """These strategies are possible."""
        self._hear("report_strategies", _by_name(ranks), list(names))
        self._faults, self._offered = dict(ranks), list(names)
        self._choose()
        return 0

    def report_result(self, code: int, message: str, ranks: dict[int, int], strategy: str = "") -> int:
        """A strategy has ended."""
        self._hear("report_result", code, _by_name(ranks))
        self._stopping = self._pausing = False
        if code:
            self._tried.add(self._chosen)
            if code == RETRY_FAILED:  # who is faulty is asked once more, and strategies are offered anew
                # Not from within this call: that answer would be lost.
                threading.Timer(ANSWER_SECONDS, self._tell, ("on_global_rank", {})).start()
                return 0
            if self._chosen == "dump":  # the controller ends the ranks by itself, unless it is told to
                return 0
            self._faults.update(ranks)
            self._offered = offered_after(code, self._offered)
            self._choose()
        return 0

    def _choose(self) -> None:
        """Choose, and have processes started in place of the faulty ranks where that is the choice."""
        lost = PROCESS_FAULT in self._faults.values()
        self._chosen = choose(Situation(self._allowed, self._offered, lost, nodes_hit=1, tried=self._tried))
        recover = self._chosen in ("recover", "recover-in-place")
        if recover:
            Path("replace-wanted.tmp").write_text(json.dumps(sorted(self._faults)), "utf-8")
            Path("replace-wanted.tmp").rename("replace-wanted")
        self._tell("change_strategy", "recover" if recover else self._chosen)

    def _hear(self, name: str, *values: Any) -> None:
        self._record.write("agent", name, *values)

    def _tell(self, name: str, *arguments: Any) -> None:
        from mindio_ttp import controller_ttp

        if self._silent:
            return
        self._record.write("agent", name, *arguments)
        getattr(controller_ttp, f"tft_notify_controller_{name}")(*arguments)


def start_controller(tft: Any, rank: int, job: dict[str, Any], record: Record) -> Agent | None:
    """Make and start the controller; with an agent, register its answers first."""
    agent = None
    if job["agent"] is not None:
        agent = Agent(job["agent"], record, silent=job["silent"])
        agent.register()
    tft.tft_init_controller(rank, job["ranks"], False, job["arf"])
    tft.tft_start_controller(ADDRESS, job["port"], False, "")
    return agent


def main() -> None:
    """Host the controller until all ranks have trained to the end, then destroy it; else until this process is ended.

    A rank's own leaving waits for that: the vendor's processor goes when its controller does.
    """
    job = json.loads(Path("job.json").read_text("utf-8"))
    sys.modules.setdefault("mindspore", types.ModuleType("mindspore"))  # MindIO TFT wants no more of it here
    from mindio_ttp import framework_ttp

    agent = start_controller(framework_ttp, -1, job, Record("agent"))
    limit = threading.Timer(job["limit"], os._exit, (77,))
    limit.daemon = True
    limit.start()
    while len(list(Path().glob("ended-*"))) < job["ranks"]:
        if agent is not None and Path("pause-wanted").exists():
            Path("pause-wanted").unlink()
            agent.pause(PAUSE_LIMIT_SECONDS)
        threading.Event().wait(POLL_SECONDS)
    framework_ttp.tft_destroy_controller()
    os._exit(0)


def _by_name(ranks: dict[int, int]) -> dict[str, int]:
    return {str(rank): kind for rank, kind in sorted(ranks.items())}


if __name__ == "__main__":
    main()
