"""The dialogue between the controller and the agent of the cluster, which starts lost ranks again.

The agent registers four functions; only when all are there is it asked at all. It answers by notifying, from inside
such a function or later from another thread (order and codes as published for MindIO TFT 7.3).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from chaos.rehearsal.ttp.log import TtpLog

ACTIONS = ("report_fault_ranks", "report_stop_complete", "report_strategies", "report_result")
STRATEGIES = ("exit", "dump", "retry", "recover")
"""In the order in which they are offered."""

OK, NO_PROCESSORS, RECOVER_ALLOWED, DUMP_ALLOWED, EXIT_ONLY = 0, 404, 405, 406, 499
"""Codes of a reported result: it worked, no rank is left, or what may still be tried."""

_TAKEN, _REFUSED = 0, 1


class AgentDialogue:
    """What the controller says to the agent, and the agent's answers."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._answers: dict[str, Any] = {}
        self._answered = threading.Condition()
        self._asked: set[str] = set()

    # The agent's side.

    def register(self, action: str, function: Callable[..., Any]) -> int:
        """Take the agent's function for an action. Raises ValueError for an action that is not one of ACTIONS."""
        if action not in ACTIONS:
            raise ValueError(f"no action {action!r}: it must be one of {', '.join(ACTIONS)}")
        self._functions[action] = function
        return _TAKEN

    def notify(self, question: str, answer: Any) -> int:
        """Take the agent's answer. 0 when it was asked for, 1 when not."""
        with self._answered:
            if question not in self._asked:
                return _REFUSED
            self._asked.discard(question)
            self._answers[question] = answer
            self._answered.notify_all()
        return _TAKEN

    # The controller's side; one thread.

    @property
    def registered(self) -> bool:
        """Whether there is an agent to talk to."""
        return self._functions.keys() >= set(ACTIONS)

    def report_faults(self, faults: Mapping[int, int], seconds: float, log: TtpLog) -> bool:
        """Tell which ranks have failed and wait for the order to stop. False when it does not come in time."""
        stopped = self._ask("stop_train", seconds, log, "report_fault_ranks", dict(faults))
        return stopped is not None

    def report_stopped(self, faults: Mapping[int, int], seconds: float, log: TtpLog) -> dict[int, int] | None:
        """Tell that training has stopped. Returns the faulty ranks of the whole job, None without an answer."""
        told = self._ask("on_global_rank", seconds, log, "report_stop_complete", OK, "stop ok", dict(faults))
        return None if told is None else {int(rank): int(kind) for rank, kind in dict(told).items()}

    def report_recoverable(
        self, code: int, text: str, faults: Mapping[int, int], strategy: str, seconds: float, log: TtpLog
    ) -> dict[int, int] | None:
        """Tell that a strategy has failed after which ranks may be replaced. Returns as :meth:`report_stopped` does."""
        told = self._ask("on_global_rank", seconds, log, "report_result", code, text, dict(faults), strategy)
        return None if told is None else {int(rank): int(kind) for rank, kind in dict(told).items()}

    def report_strategies(
        self, faults: Mapping[int, int], offered: Sequence[str], seconds: float, log: TtpLog
    ) -> str | None:
        """Offer strategies. Returns the one that is chosen, None without an answer or for one that is not offered."""
        return self._choice(offered, seconds, log, "report_strategies", dict(faults), list(offered))

    def report_result(self, code: int, text: str, faults: Mapping[int, int], strategy: str, log: TtpLog) -> None:
        """Tell how a strategy ended, when nothing is left to choose."""
        self._tell(log, "report_result", code, text, dict(faults), strategy)

    def report_paused(self, code: int, text: str, log: TtpLog) -> None:
        """Tell that training has paused, or cannot; whoever asked for it says when it goes on."""
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
        """Tell that a strategy has failed. Returns the next one, as :meth:`report_strategies` does."""
        return self._choice(offered, seconds, log, "report_result", code, text, dict(faults), strategy)

    def _choice(self, offered: Sequence[str], seconds: float, log: TtpLog, action: str, *arguments: Any) -> str | None:
        chosen: str | None = self._ask("change_strategy", seconds, log, action, *arguments)
        if chosen is not None and chosen not in offered:
            log.warning("TTP mindx_engine.cpp:220", f"strategy {chosen} is not one of {list(offered)}")
            return None
        return chosen

    def _ask(self, question: str, seconds: float, log: TtpLog, action: str, *arguments: Any) -> Any:
        """Call the agent and wait for its answer to ``question``; None when it does not come in time."""
        with self._answered:
            self._answers.pop(question, None)
            self._asked.add(question)
        self._tell(log, action, *arguments)
        log.warning("TTP controller.cpp:925", f"wait Mindx notify {question}...")
        with self._answered:
            came = self._answered.wait_for(lambda: question in self._answers, seconds)
            self._asked.discard(question)
            answer = self._answers.pop(question, None)
        log.info("TTP mindx_engine.cpp:157", f"wait mindx wake up action ret:{int(not came)}")
        return answer

    def _tell(self, log: TtpLog, action: str, *arguments: Any) -> None:
        shown = ", ".join(repr(argument) for argument in arguments)
        tail = "," if len(arguments) == 1 else ""
        log.info("PYH ttp_mindx_api.py:67", f"do action {action}, arg=({shown}{tail})")
        try:
            result = self._functions[action](*arguments)
        except Exception as error:  # whatever the agent's function raises is its failure, said in the log
            log.warning("PYH ttp_mindx_api.py:70", f"action {action} failed: {error}")
            return
        log.info("TTP mindx_engine.cpp:67", f"{action.replace('_', ' ')} action ret:{result}")
