"""The chooser of the strategy: the cluster's agent where one has registered, else the controller itself."""

from __future__ import annotations

from typing import Callable

from chaos.rehearsal.ttp.agent_dialogue import CHANGE, DUMP, EXIT_ONLY, OK, STOP, AgentDialogue
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.strategies import Possible
from chaos.rehearsal.ttp.timings import Timings


class Choice:
    """The choice of one strategy after the other, until one succeeds or the job is ended."""

    def __init__(self, agent: AgentDialogue, timings: Timings, log: TtpLog) -> None:
        self._agent = agent
        self._seconds = timings.agent_answer
        self._log = log
        self._reported_faults: dict[int, int] = {}

    @property
    def agent(self) -> bool:
        """Whether an agent has registered."""
        return self._agent.registered

    def listen(self, knows: Callable[[int], bool]) -> None:
        """Take the agent's orders from now on."""
        self._agent.listen(knows)

    def close(self) -> None:
        """Take no more orders."""
        self._agent.close()

    def training(self) -> None:
        """Note that training goes on: earlier orders are over."""
        self._agent.forget()

    def ordered(self) -> tuple[str, dict[int, int]] | None:
        """Return the agent's own order to stop or dump, with the ranks that it names; None where it gave none."""
        order = self._agent.last_order()
        if order is None or order[0] not in (STOP, DUMP):
            return None
        return order[0], dict(order[1]) if order[0] == STOP else {}

    def ordered_to_end(self) -> str | None:
        """Return the agent's unrequested order to dump or to exit; None where it gave none."""
        order = self._agent.last_order()
        return str(order[1]) if order is not None and order[0] == CHANGE and order[1] in ("dump", "exit") else None

    def first(self, faults: dict[int, int], possible: Callable[[], Possible]) -> str:
        """Return the strategy for ``faults``, to which the agent may add ranks that are faulty elsewhere in the job.

        ``possible`` returns the possible strategies for the resulting faults.
        """
        if not self.agent:
            return possible().default()
        stop = self._agent.report_faults(faults, self._seconds, self._log)
        if stop == DUMP:
            self._reported_faults = dict(faults)
            return "dump"
        if stop is None:
            return self._unanswered()
        everywhere = self._agent.report_stopped(faults, self._seconds, self._log)
        if everywhere is None:
            return self._unanswered()
        return self._offer(faults, everywhere, possible)

    def _offer(self, faults: dict[int, int], everywhere: dict[int, int], possible: Callable[[], Possible]) -> str:
        for rank, kind in everywhere.items():
            faults.setdefault(rank, kind)
        self._reported_faults = dict(faults)
        chosen = self._agent.report_strategies(faults, possible().offered(), self._seconds, self._log)
        return chosen or self._unanswered()

    def next(
        self, failed: str, text: str, possible: Possible, faults: dict[int, int], again: Callable[[], Possible]
    ) -> str:
        """Return the strategy after a failed one, whose reason ``text`` gives.

        The agent gets the faults of the beginning, as from the vendor's SDK: later ones it must see itself. Only where
        a replacement may follow, the agent gets the present ``faults``, names those of the whole job once more, and is
        offered the strategies that are then possible: ``again``.
        """
        self._log.warning("TTP controller.cpp:1260", f"{failed} failed: {text}")
        if not self.agent:
            return possible.default()
        if possible.recover:
            everywhere = self._agent.report_recoverable(possible.code(), text, faults, failed, self._seconds, self._log)
            if everywhere is None:
                return self._unanswered()
            return self._offer(faults, everywhere, again)
        chosen = self._agent.report_failure(
            possible.code(), text, self._reported_faults, failed, possible.offered(), self._seconds, self._log
        )
        return chosen or self._unanswered()

    def succeeded(self, strategy: str) -> None:
        """Report that training goes on."""
        if self.agent:
            self._agent.report_result(OK, "Mindio do repair operation ok", {}, strategy, self._log)

    def paused(self, code: int, text: str) -> None:
        """Report that training has paused, or cannot."""
        if self.agent:
            self._agent.report_paused(code, text, self._log)

    def pause_ended(self, code: int, text: str) -> None:
        """Report that training goes on after a pause, or its other outcome."""
        if self.agent:
            self._agent.report_result(code, text, {}, "continue", self._log)

    def dumped(self, saved: bool, *, faults: dict[int, int] | None = None) -> None:
        """Report that the job ends after an attempt to save.

        ``faults`` are passed where the agent was not asked before.
        """
        if faults is not None:
            self._reported_faults = dict(faults)
        if self.agent:
            code, text = (OK, "do dump success") if saved else (EXIT_ONLY, "save ckpt failed")
            self._agent.report_result(code, text, self._reported_faults, "dump", self._log)

    def _unanswered(self) -> str:
        """Return the strategy without an answer: nothing is repaired and nothing is saved.

        Only the agent may decide otherwise.
        """
        self._log.warning("TTP mindx_engine.cpp:160", "the agent does not answer: exit")
        return "exit"
