"""The dialogue between the controller and the agent of the cluster, which starts lost ranks again.

The agent registers four functions; the controller asks it only when all are there. It answers by notifying, from inside
such a function or later from another thread (order and codes as published for MindIO TFT 7.3). Each notification is an
order whether it was asked for or not: the controller keeps the last one, obeys a stop or a dump in the middle of the
training, and exits at an unexpected order where it waits for another.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from chaos.rehearsal.ttp.log import TtpLog

ACTIONS = ("report_fault_ranks", "report_stop_complete", "report_strategies", "report_result")
STRATEGIES = ("exit", "dump", "retry", "recover")
"""Strategies in the order of the offer."""

OK, NO_PROCESSORS, RECOVER_ALLOWED, DUMP_ALLOWED, EXIT_ONLY = 0, 404, 405, 406, 499
"""Codes of a reported result: it worked, no rank is left, or the strategies that may still be tried."""

STOP, WHO, CHANGE, DUMP = "stop_train", "on_global_rank", "change_strategy", "dump"
"""The agent's orders. ``DUMP`` is its own order to save and end the job, not the strategy of that name."""

_AWAITED = {
    "report_fault_ranks": "stop train",
    "report_stop_complete": "all fault ranks",
    "report_strategies": "repair strategy",
    "report_result": "repair strategy",
}
_TAKEN, _REFUSED = 0, 1
_FAULT_TYPES = range(3)


class AgentDialogue:
    """The controller's reports to the agent, and the agent's answers."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._answered = threading.Condition()
        self._order: tuple[str, Any] | None = None
        self._woken = False
        self._knows: Callable[[int], bool] | None = None

    # The agent's side.

    def register(self, action: str, function: Callable[..., Any]) -> int:
        """Take the agent's function for an action. Returns 1 where there is no such action, or no function."""
        if action not in ACTIONS or not callable(function):
            return _REFUSED
        self._functions[action] = function
        return _TAKEN

    def notify(self, order: str, value: Any) -> int:
        """Take an order of the agent. Returns 1 where no controller listens, or where the order names unknown ranks."""
        with self._answered:
            if self._knows is None or (order in (STOP, WHO) and not self._fits(value)):
                return _REFUSED
            self._order, self._woken = (order, value), True
            self._answered.notify_all()
        return _TAKEN

    def _fits(self, ranks: Mapping[int, int]) -> bool:
        knows = self._knows
        return knows is not None and all(knows(rank) and kind in _FAULT_TYPES for rank, kind in ranks.items())

    # The controller's side; one thread.

    def listen(self, knows: Callable[[int], bool]) -> None:
        """Take orders from now on. ``knows`` returns whether a rank has registered."""
        self._knows = knows

    def close(self) -> None:
        """Take no more orders."""
        self._knows = None

    def last_order(self) -> tuple[str, Any] | None:
        """Return the last order since :meth:`forget`, requested or not."""
        return self._order

    def forget(self) -> None:
        """Forget the last order: training goes on."""
        with self._answered:
            self._order = None

    @property
    def registered(self) -> bool:
        """Whether there is an agent to talk to."""
        return self._functions.keys() >= set(ACTIONS)

    def report_faults(self, faults: Mapping[int, int], seconds: float, log: TtpLog) -> str | None:
        """Report the failed ranks and wait for the order to stop. Returns that order or ``DUMP``, None for others.

        An order that came before the request is the answer, since it has stopped the training.
        """
        order = self._order_after(seconds, log, "report_fault_ranks", dict(faults), keep=True)
        return order[0] if order is not None and order[0] in (STOP, DUMP) else self._unexpected(order, log)

    def report_stopped(self, faults: Mapping[int, int], seconds: float, log: TtpLog) -> dict[int, int] | None:
        """Report that training has stopped. Returns the faulty ranks of the whole job, None without an answer."""
        answer = self._ask(WHO, seconds, log, "report_stop_complete", OK, "stop ok", dict(faults))
        return None if answer is None else {int(rank): int(kind) for rank, kind in dict(answer).items()}

    def report_recoverable(
        self, code: int, text: str, faults: Mapping[int, int], strategy: str, seconds: float, log: TtpLog
    ) -> dict[int, int] | None:
        """Report a failed strategy after which ranks may be replaced. Returns as :meth:`report_stopped` does."""
        answer = self._ask(WHO, seconds, log, "report_result", code, text, dict(faults), strategy)
        return None if answer is None else {int(rank): int(kind) for rank, kind in dict(answer).items()}

    def report_strategies(
        self, faults: Mapping[int, int], offered: Sequence[str], seconds: float, log: TtpLog
    ) -> str | None:
        """Offer strategies. Returns the chosen one, None without an answer or for one that is not offered."""
        return self._choice(offered, seconds, log, "report_strategies", dict(faults), list(offered))

    def report_result(self, code: int, text: str, faults: Mapping[int, int], strategy: str, log: TtpLog) -> None:
        """Report how a strategy ended, when nothing is left to choose."""
        self._tell(log, "report_result", code, text, dict(faults), strategy)

    def report_paused(self, code: int, text: str, log: TtpLog) -> None:
        """Report that training has paused, or cannot; the requester decides when it goes on."""
        self._tell(log, "report_stop_complete", code, text, {})

    def report_failure(
        self,
        code: int,
        text: str,
        faults: Mapping[int, int],
        strategy: str,
        offered: Sequence[str],
        seconds: float,
        log: TtpLog,
    ) -> str | None:
        """Report a failed strategy. Returns the next one, as :meth:`report_strategies` does."""
        return self._choice(offered, seconds, log, "report_result", code, text, dict(faults), strategy)

    def _choice(self, offered: Sequence[str], seconds: float, log: TtpLog, action: str, *arguments: Any) -> str | None:
        chosen: str | None = self._ask(CHANGE, seconds, log, action, *arguments)
        if chosen is not None and chosen not in offered:
            log.error("TTP mindx_engine.cpp:203", f"receive strategy: {chosen} is not valid!")
            if action == "report_strategies":
                self._tell(log, "report_result", EXIT_ONLY, "invalid strategy", arguments[0], "")
            return None
        return chosen

    def _ask(self, expected: str, seconds: float, log: TtpLog, action: str, *arguments: Any) -> Any:
        """Call the agent and wait for the ``expected`` order. Returns None when another comes, or none in time."""
        order = self._order_after(seconds, log, action, *arguments)
        return order[1] if order is not None and order[0] == expected else self._unexpected(order, log)

    def _order_after(
        self, seconds: float, log: TtpLog, action: str, *arguments: Any, keep: bool = False
    ) -> tuple[str, Any] | None:
        """Call the agent and wait for any order. With ``keep`` an earlier order counts."""
        if not keep:
            with self._answered:
                self._woken = False
        self._tell(log, action, *arguments)
        log.warning("TTP controller.cpp:925", f"wait Mindx notify {_AWAITED[action]}...")
        with self._answered:
            came = self._answered.wait_for(lambda: self._woken, seconds)
            self._woken = False
            order = self._order if came else None
        log.info("TTP mindx_engine.cpp:157", f"wait mindx wake up action ret:{int(not came)}")
        return order

    @staticmethod
    def _unexpected(order: tuple[str, Any] | None, log: TtpLog) -> None:
        if order is not None:
            log.warning("TTP controller.cpp:937", "mindx calling action unexpected! prepare to exit")

    def _tell(self, log: TtpLog, action: str, *arguments: Any) -> None:
        shown = ", ".join(repr(argument) for argument in arguments)
        tail = "," if len(arguments) == 1 else ""
        log.info("PYH ttp_mindx_api.py:67", f"do action {action}, arg=({shown}{tail})")
        try:
            result = self._functions[action](*arguments)
        except Exception as error:  # any error of the agent's function is its failure, reported in the log
            log.warning("PYH ttp_mindx_api.py:70", f"action {action} failed: {error}")
            return
        log.info("TTP mindx_engine.cpp:67", f"{action.replace('_', ' ')} action ret:{result}")
