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
from pathlib import Path
from typing import Any

from tests.conformance.record import Record

ADDRESS = "127.0.0.1"


def start_controller(tft: Any, rank: int, job: dict[str, Any], record: Record) -> None:
    """Make and start the controller; with an agent, register its answers first."""
    if job["agent"] is not None:
        register(job["agent"], record)
    tft.tft_init_controller(rank, job["ranks"], False, job["arf"])
    tft.tft_start_controller(ADDRESS, job["port"], False, "")


def register(wanted: list[str], record: Record) -> None:
    """Answer every report as a cluster that allows the strategies ``wanted``, the best first."""
    from mindio_ttp import controller_ttp as steer

    stopping: list[bool] = []

    def tell(name: str, *arguments: Any) -> None:
        record.write("agent", name, list(arguments), getattr(steer, f"tft_notify_controller_{name}")(*arguments))

    def faults(ranks: Any, *codes: Any) -> int:
        record.write("agent", "report_fault_ranks", {str(rank): kind for rank, kind in ranks.items()})
        if not stopping:  # it is told again of faults that came while the ranks were being stopped
            stopping.append(True)
            tell("stop_train", {})
        return 0

    def stopped(code: int, message: str, ranks: Any) -> int:
        record.write("agent", "report_stop_complete", code, {str(rank): kind for rank, kind in ranks.items()})
        tell("on_global_rank", {})
        return 0

    def strategies(ranks: Any, names: list[str]) -> int:
        record.write("agent", "report_strategies", {str(rank): kind for rank, kind in ranks.items()}, list(names))
        choose([name for name in wanted if name in names])
        return 0

    def choose(possible: list[str]) -> None:
        chosen = possible[0] if possible else "exit"
        if chosen == "recover":
            Path("replace-wanted").touch()
        tell("change_strategy", chosen)

    def result(code: int, message: str, ranks: Any, strategy: str = "") -> int:
        record.write("agent", "report_result", code, {str(rank): kind for rank, kind in ranks.items()}, strategy)
        if code in (405, 406):
            allowed = {405: ("recover", "dump", "exit"), 406: ("dump", "exit")}[code]
            choose([name for name in wanted if name in allowed])
        stopping.clear()
        return 0

    for name, function in (
        ("report_fault_ranks", faults),
        ("report_stop_complete", stopped),
        ("report_strategies", strategies),
        ("report_result", result),
    ):
        steer.tft_register_mindx_callback(name, function)


def main() -> None:
    """Host the controller until this process is ended."""
    job = json.loads(Path("job.json").read_text("utf-8"))
    sys.modules.setdefault("mindspore", types.ModuleType("mindspore"))
    from mindio_ttp import framework_ttp

    record = Record("agent")
    start_controller(framework_ttp, -1, job, record)
    limit = threading.Timer(job["limit"], os._exit, (77,))
    limit.daemon = True
    limit.start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
