"""The agent's talk with the SDK's controller, which it hosts: the strategy to follow, and its result.

The controller (``mindio_ttp``, the vendor's or the stand-in) calls from its own thread; work on processes is handed to
the agent's.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Collection
from typing import Any, Callable

from chaos.rehearsal.taskd.settings import Settings
from chaos.rehearsal.taskd.strategies import OK, PROCESS_FAULT, RETRY_FAILED, Situation, choose, offered_after

RESTARTS = ("recover", "recover-in-place")

Later = Callable[[float, Callable[..., None], Any], None]
"""Calls a function with one argument after some seconds."""


def _later(seconds: float, function: Callable[..., None], argument: Any) -> None:
    timer = threading.Timer(seconds, function, (argument,))
    timer.daemon = True
    timer.start()


class Dialogue:
    """Answers the controller. ``orders`` receives the ranks that have to be started again."""

    def __init__(self, settings: Settings, say: Callable[[str], None], later: Later = _later) -> None:
        self.orders: queue.SimpleQueue[tuple[int, ...]] = queue.SimpleQueue()
        self.heard = False
        self._ended = False
        self._settings = settings
        self._say = say
        self._later = later
        self._faults: dict[int, int] = {}
        self._offered: tuple[str, ...] = ()
        self._tried: set[str] = set()
        self._strategy = ""

    def start(self) -> None:
        """Start the controller with rank -1, outside of all ranks. Ends this process when it cannot listen."""
        assert self._settings.controller is not None
        from mindio_ttp import controller_ttp, framework_ttp

        address, port = self._settings.controller
        framework_ttp.tft_init_controller(-1, self._settings.ranks, False, "ARF" in self._settings.switches)
        for action in ("report_fault_ranks", "report_stop_complete", "report_strategies", "report_result"):
            controller_ttp.tft_register_mindx_callback(action, getattr(self, action))
        framework_ttp.tft_start_controller(address, port, False, "")

    def end(self) -> None:
        """End the controller: all ranks have trained to their end, and a rank's own part ends with the controller."""
        from mindio_ttp import framework_ttp

        if not self._ended:
            self._ended = True
            framework_ttp.tft_destroy_controller()

    def gives_up(self, ranks: Collection[int]) -> bool:
        """Return whether these ranks are all faulty and the job is to end: nothing that is still to come ends them."""
        return self._strategy in ("dump", "exit") and set(ranks) <= set(self._faults)

    # The controller's calls. Versions differ in the number of arguments, so unused ones may be missing.

    def report_fault_ranks(self, faults: dict[int, int], *_: Any) -> int:
        """Note faulty ranks: training has to stop everywhere."""
        from mindio_ttp import controller_ttp

        self.heard = True
        self._remember(faults)
        self._say(f"ranks {sorted(faults)} are faulty, types {self._types()}; training has to stop")
        controller_ttp.tft_notify_controller_stop_train(dict(self._faults))
        return 0

    def report_stop_complete(self, code: int, message: str, faults: dict[int, int], *_: Any) -> int:
        """Name the faulty ranks of the whole job: training has stopped."""
        del code, message
        self._say_who_is_faulty(faults)
        return 0

    def report_strategies(self, faults: dict[int, int], strategies: list[str], *_: Any) -> int:
        """Choose one of the strategies that the SDK offers."""
        self._remember(faults)
        self._offered = tuple(strategies)
        self._follow()
        return 0

    def report_result(self, code: int, message: str, faults: dict[int, int], strategy: str, *_: Any) -> int:
        """Note that a strategy has succeeded, or choose another one."""
        self._say(f"strategy {strategy}: result {code}, {message}")
        if code == OK:
            if self._strategy != "dump":  # after a dump the ranks are about to exit, and the agent waits for that
                self._forget()
            return 0
        self._tried.add(self._strategy)
        if code == RETRY_FAILED:
            # The controller asks once more for the faulty ranks, and then for the strategy. The cluster's manager
            # answers later, over the network: an answer from within this call is lost (MindIO TFT 26.1, observed).
            self._later(self._settings.timings.monitor, self._say_who_is_faulty, faults)
            return 0
        self._remember(faults)
        self._offered = offered_after(code, self._offered)
        self._follow(asked=self._strategy != "dump")
        return 0

    def _say_who_is_faulty(self, faults: dict[int, int]) -> None:
        from mindio_ttp import controller_ttp

        self._remember(faults)
        self._remember(dict.fromkeys(self._moved_along(), PROCESS_FAULT))
        controller_ttp.tft_notify_controller_on_global_rank(dict(self._faults))

    def _follow(self, *, asked: bool = True) -> None:
        """Choose, and notify the controller if it asked. Lost ranks are started again only now.

        A rank that registered before its predecessor's death has been dealt with would pass for its predecessor. After
        a failed dump the controller is about to end the ranks by itself, and does not on an order (MindIO TFT 26.1,
        observed: it then leaves that to the cluster for good).
        """
        from mindio_ttp import controller_ttp

        hit = {self._node(rank) for rank in self._faults}
        process_fault = PROCESS_FAULT in self._faults.values()
        now = Situation(self._settings.strategies, self._offered, process_fault, len(hit), self._tried)
        self._strategy = strategy = choose(now)
        self._say(f"strategies offered: {', '.join(self._offered)}; strategy {strategy} is chosen")
        if strategy in RESTARTS:
            self.orders.put(tuple(sorted(self._faults)))
        if asked:
            controller_ttp.tft_notify_controller_change_strategy("recover" if strategy in RESTARTS else strategy)

    def _moved_along(self) -> list[int]:
        """Return healthy ranks that are started again too.

        With recover, the cluster moves a node's container as a whole.
        """
        hit = {self._node(rank) for rank in self._faults}
        allowed = self._settings.strategies
        if (
            self._settings.nodes == 1
            or PROCESS_FAULT not in self._faults.values()
            or "recover" not in allowed
            or ("recover-in-place" in allowed and len(hit) == 1)
        ):
            return []
        return [rank for rank in range(self._settings.ranks) if self._node(rank) in hit and rank not in self._faults]

    def _remember(self, faults: dict[int, int]) -> None:
        self._faults.update({int(rank): int(kind) for rank, kind in faults.items()})

    def _forget(self) -> None:
        self._faults, self._offered, self._strategy = {}, (), ""
        self._tried.clear()
        self.heard = False

    def _node(self, rank: int) -> int:
        return rank * self._settings.nodes // self._settings.ranks

    def _types(self) -> str:
        return ", ".join(str(kind) for _, kind in sorted(self._faults.items()))
