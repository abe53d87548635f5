"""Process-level rescheduling (ARF): lost ranks get a new process and the state of a replica; the others live on."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any, Callable

from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.replicas import Replicas
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.status import INIT_FINISH, PREREPAIR_FINISH
from chaos.rehearsal.ttp.timings import Timings

_SEND, _RECEIVE = 0, 3


class RecoverFailed(RuntimeError):
    """The lost ranks were not replaced. ``lost`` are all ranks whose state is gone by now."""

    def __init__(self, text: str, lost: Collection[int]) -> None:
        super().__init__(text)
        self.lost = frozenset(lost)


class OrderedToEnd(RuntimeError):
    """The agent has ordered another end during the wait for new processes: ``strategy`` is dump or exit."""

    def __init__(self, strategy: str) -> None:
        super().__init__(strategy)
        self.strategy = strategy


class Recover:
    """Replaces ``lost`` ranks: stop and clean the others, rebuild the groups, copy from replicas, roll back, go on."""

    def __init__(
        self,
        roster: Roster,
        replicas: Replicas,
        timings: Timings,
        log: TtpLog,
        *,
        enter: Callable[[str], None],
        closing: threading.Event,
        ordered: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._roster = roster
        self._replicas = replicas
        self._timings = timings
        self._log = log
        self._enter = enter
        self._closing = closing
        self._ordered = ordered
        self._lost: set[int] = set()

    def run(self, lost: Collection[int], step: int, *, stopped: bool = False) -> None:
        """Bring the whole job back to ``step``. Raises RecoverFailed or OrderedToEnd.

        ``stopped``: an online repair has stopped and cleaned the survivors already; it is not done again.
        """
        self._lost = set(lost)
        survivors = self._survivors()
        if not stopped:
            self._stop(survivors)
        self._enter("STATE_OP_REPAIR")
        self._log.info("TTP controller.cpp:2244", "Start do arf repair")
        new = self._await_new(INIT_FINISH, self._timings.replacement, "no new process")
        everyone = [*survivors, *new]
        self._all(everyone, "rebuild", "PT_COMM", lost=sorted(self._lost))
        self._log.info("TTP controller.cpp:3156", "controller:0 execute hccl process group destroy & rebuid success")
        self._await_new(PREREPAIR_FINISH, self._timings.action, "not ready for the state of a replica")
        self._repair(step)
        self._log.info("TTP controller.cpp:1244", "start rollback")
        self._all(everyone, "rollback", "ROLLBACK", step=step)
        self._log.info("TTP controller.cpp:3237", "Controller:0 rollback success")
        self._log.info("TTP controller.cpp:1251", "start notify all rank normal...")
        # A rank trains on after this message, so a rank that dies from here on is a fault of its own.
        self._log_sent("NOTIFY_NORMAL", len(everyone))
        self._roster.ask(everyone, "go on", self._timings.action, step=step)
        for member in new:
            member.reboot = False

    def _stop(self, survivors: list[Member]) -> None:
        self._enter("STATE_OP_ENV_CLEAR")
        self._log.info("TTP controller.cpp:1177", "start notify all device stop...")
        self._all(survivors, "stop", "DEVICE_STOP", strategy="recover")
        self._log.info("TTP controller.cpp:1184", "start notify all device clean...")
        self._all(survivors, "clean", "DEVICE_CLEAN", broken=[])
        self._log.info("TTP controller.cpp:1210", "notify all device stop & clean ok!")

    def _survivors(self) -> list[Member]:
        return [member for member in self._roster.members() if member.rank not in self._lost]

    def _await_new(self, status: int, seconds: float, what: str) -> list[Member]:
        """Wait until every lost rank has a new process that reports ``status``. Raises as :meth:`run` does."""

        def new() -> list[Member]:
            members = [member for member in self._roster.members() if member.rank in self._lost]
            return [member for member in members if member.reboot and member.status == status]

        def dead() -> list[Member]:
            living = self._survivors() + [member for member in self._roster.members() if member.reboot]
            return [member for member in living if self._roster.lost(member)]

        def over() -> bool:
            return self._closing.is_set() or len(new()) == len(self._lost) or bool(dead() or self._ordered())

        self._roster.wait_until(over, seconds, poll=self._timings.check_interval)
        if (strategy := self._ordered()) is not None:
            self._log.warning("TTP controller.cpp:2208", f"mindx notify to {strategy}, controller do arf repair failed")
            raise OrderedToEnd(strategy)
        if died := sorted({member.rank for member in dead()}):
            raise RecoverFailed(f"ranks {died} died meanwhile", self._lost | set(died))
        ready = new()
        if len(ready) < len(self._lost):
            missing = sorted(self._lost - {member.rank for member in ready})
            raise RecoverFailed(f"ranks {missing}: {what} within {seconds:g} s", self._lost)
        return ready

    def _repair(self, step: int) -> None:
        actions: dict[int, dict[str, Any]] = {}
        for group in self._replicas.groups():
            for rank in sorted(self._lost.intersection(group)):
                source = self._source(group, rank)
                if source is None:
                    raise RecoverFailed(f"dp:{list(group)} has no complete data. ret:1", self._lost)
                actions[rank] = {"repair_type": _RECEIVE, "src": [source], "dst": [rank]}
                sending = actions.setdefault(source, {"repair_type": _SEND, "src": [], "dst": []})
                sending["src"].append(source)
                sending["dst"].append(rank)
        for info in actions.values():  # the vendor's line names all ranks that take part, of whichever group
            info["rank_list"] = sorted(actions)
        members = [self._roster.member(rank) for rank in sorted(actions)]
        self._all(members, "repair", "REPAIR", step=step, actions={str(rank): info for rank, info in actions.items()})

    def _source(self, group: tuple[int, ...], rank: int) -> int | None:
        """Return the rank that gives its state to ``rank``.

        It is the next member of its group that has one (cyclic, as the vendor's SDK).
        """
        place = group.index(rank)
        others = (*group[place + 1 :], *group[:place])
        return next((other for other in others if other not in self._lost), None)

    def _all(self, members: list[Member], message: str, name: str, **fields: Any) -> None:
        """Have every member act on a message.

        Raises RecoverFailed as soon as one dies, when one fails or does not answer.
        """
        self._log_sent(name, len(members))
        timings = self._timings
        missing = self._roster.ask(members, message, timings.action, patience=timings.collection, **fields)
        if died := {member.rank for member in members if member.link_broken is not None}:
            raise RecoverFailed(f"{message}: ranks {sorted(died)} died", self._lost | died)
        if missing:
            silent = {member.rank for member in missing}
            raise RecoverFailed(f"{message}: no answer of ranks {sorted(silent)}", self._lost | silent)
        failed = [member.rank for member in members if member.replies[message].get("result", 0) != 0]
        if failed:
            raise RecoverFailed(f"{message} failed, ranks: {failed}", self._lost)
        self._log.info("TTP action_engine.cpp:71", f"do action success. opcode: ACTION_OP_{name}")

    def _log_sent(self, name: str, count: int) -> None:
        self._log.info("TTP action_engine.cpp:538", f"send msg success, msg_type:TTP_MSG_OP_{name} rank_num:{count}")
