"""The pause of the training (TSP): all ranks stop after the same step, and go on by an order.

A cluster's agent requests it, for instance to switch the network meanwhile. Behaviour and log lines are those of MindIO
TFT 7.3: the controller enters the state PAUSE, collects every rank's step, and has all of them stop one step later, in
``tft_pause_train``. One addition: a rank that has reported its step finishes no further step until it knows the agreed
one. Where a step is shorter than the way to the controller and back, the rank would have passed it otherwise, and the
vendor's controller would wait for it until its time limit.
"""

from __future__ import annotations

import threading
import time
from enum import Enum
from typing import Callable

from chaos.rehearsal.ttp.agent_dialogue import DUMP_ALLOWED, EXIT_ONLY, OK
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.timings import Timings

PAUSED, FAILED = 0, 1
"""A rank's answers: its training is blocked after the step, or it is not."""


class Pause(Enum):
    """The outcome of a pause."""

    CONTINUED = "continued"
    ABNORMAL = "a rank has become abnormal"
    EXPIRED = "nobody said in time that training may go on"


class Pausing:
    """The controller's side. Requests come from any thread; the state machine's thread calls :meth:`run`.

    ``abnormal`` returns whether a rank is abnormal, seen twice; ``closing`` is set when the controller is to end.
    ``paused`` and ``ended`` take a code and a text for the cluster's agent.
    """

    def __init__(
        self,
        roster: Roster,
        timings: Timings,
        log: TtpLog,
        *,
        enter: Callable[[str], None],
        abnormal: Callable[[], bool],
        closing: threading.Event,
        paused: Callable[[int, str], None],
        ended: Callable[[int, str], None],
    ) -> None:
        self._tell_paused = paused
        self._tell_ended = ended
        self._roster = roster
        self._timings = timings
        self._log = log
        self._enter = enter
        self._abnormal = abnormal
        self._closing = closing
        self._seconds: float | None = None
        self._go_on = threading.Event()

    @property
    def requested(self) -> bool:
        """Whether a requested pause has not begun yet."""
        return self._seconds is not None

    def request(self, seconds: float) -> None:
        """Request a pause of at most that long."""
        self._go_on.clear()
        self._seconds = seconds

    def go_on(self) -> None:
        """Let the training go on, or cancel a pause that has not begun."""
        self._go_on.set()

    def run(self) -> Pause:
        """Pause all ranks, wait until training may go on, and let it."""
        seconds, self._seconds = self._seconds or 0.0, None
        if self._go_on.is_set():
            return Pause.CONTINUED
        self._enter("STATE_OP_PAUSE")
        members = self._roster.members()
        if not self._pause(members):
            self._log.warning("TTP controller.cpp:2300", "Controller pause train failed.")
            self._tell_paused(EXIT_ONLY, "Controller pause train failed.")
            self._continue(members)  # the stopped ranks must not wait for ever
            return Pause.ABNORMAL if self._abnormal() else Pause.CONTINUED
        self._log.info("TTP controller.cpp:2305", "Controller pause train success!")
        self._tell_paused(OK, "Controller pause train success!")
        ended = self._wait(time.monotonic() + seconds)
        if ended is Pause.CONTINUED:
            self._continue(members)
            self._tell_ended(OK, "Controller continue training success.")
        else:
            self._log.warning("TTP controller.cpp:2350", f"Controller do pause wait failed. {ended.value}")
            self._tell_ended(DUMP_ALLOWED, "Controller do pause wait failed.")
        return ended

    def _pause(self, members: list[Member]) -> bool:
        silent = self._roster.ask(members, "collect", self._timings.collection, hold=True)
        if silent:
            return False
        self._log.info("TTP controller.cpp:1540", "controller collect latest status end...")
        # The step of a reply: a heartbeat may have carried another since, which knows nothing of the pause point.
        step = max((member.replies["collect"]["step"] for member in members), default=0) + 1
        self._log.info(
            "TTP action_engine.cpp:538", f"send msg success, msg_type:TTP_MSG_OP_PAUSE rank_num:{len(members)}"
        )
        missing = self._roster.ask(members, "pause", self._timings.action, step=step)
        if missing or any(member.replies["pause"]["result"] != PAUSED for member in members):
            return False
        self._log.info("TTP action_engine.cpp:71", "do action success. opcode: ACTION_OP_PAUSE")
        return True

    def _wait(self, deadline: float) -> Pause:
        self._log.info("TTP controller.cpp:2330", "Waiting for MindXCluster notify continue...")
        while not self._go_on.is_set() and not self._closing.is_set():
            if self._abnormal():
                return Pause.ABNORMAL
            if time.monotonic() > deadline:
                return Pause.EXPIRED
            self._go_on.wait(self._timings.check_interval)
        return Pause.CONTINUED

    def _continue(self, members: list[Member]) -> None:
        self._log.info(
            "TTP action_engine.cpp:538", f"send msg success, msg_type:TTP_MSG_OP_CONTINUE rank_num:{len(members)}"
        )
        self._roster.ask(members, "continue", self._timings.action)
        self._log.info("TTP action_engine.cpp:71", "do action success. opcode: ACTION_OP_CONTINUE")


class PausePoint:
    """A rank's side: the point at which its training blocks while a pause is requested."""

    def __init__(self, rank: int, log: TtpLog) -> None:
        self._rank = rank
        self._log = log
        self._changed = threading.Condition()
        self._step: int | None = None
        self._held_until = 0.0
        self._passed = 0
        self._blocked: int | None = None

    def hold(self, seconds: float) -> int:
        """Finish no further step until :meth:`ask` names the step to pause after, or for at most that long.

        Returns the last step that training has finished.
        """
        with self._changed:
            self._held_until = time.monotonic() + seconds
            return self._passed

    def reach(self, step: int) -> None:
        """Note that training has finished ``step``; block while a pause at this step or an earlier one is requested."""
        with self._changed:
            while self._held_until > time.monotonic():
                self._changed.wait(self._held_until - time.monotonic())
            if self._asked_at(step):
                self._log.info("PYH ttp_decorator.py:690", f"[pause] training paused, rank:{self._rank}")
                self._blocked = step
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._asked_at(step))
                self._blocked = None
            self._passed = step

    def ask(self, step: int, seconds: float) -> int:
        """Have the training block after ``step``.

        Returns PAUSED when it does; FAILED when it has passed that step, does not get there in time, or another order
        has come meanwhile.
        """
        began = time.monotonic()
        result = PAUSED if self._ask(step, seconds) else FAILED
        self._log.info(
            "PYH ttp_decorator.py:663",
            f"[Pause] rank:{self._rank} pause training consumed:{time.monotonic() - began:.3f}s, ret:{result}",
        )
        return result

    def _ask(self, step: int, seconds: float) -> bool:
        with self._changed:
            self._let_go()
            if self._passed >= step:
                return False
            self._step = step
            return self._changed.wait_for(lambda: self._step != step or self._blocked == step, seconds) and (
                self._step == step
            )

    def release(self) -> None:
        """Let the training go on."""
        with self._changed:
            self._step = None
            self._let_go()

    def _let_go(self) -> None:
        self._held_until = 0.0
        self._changed.notify_all()

    def _asked_at(self, step: int) -> bool:
        return self._step is not None and step >= self._step
