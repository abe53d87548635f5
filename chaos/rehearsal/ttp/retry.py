"""Online repair: stop, clean, repair from a replica, roll back, go on. All processes live, and none is replaced."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Callable

from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.replicas import Replicas
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.status import RETRY, UCE
from chaos.rehearsal.ttp.timings import Timings

CLEANED, UNCLEAN, LOW_LEVEL = 0, 1, 2
"""The answers of a clean handler: the device is clean, is not, or its memory was given back without being lost."""

SILENT = -1
"""Instead of an answer: none came in time."""

_SEND, _UCE_HIGH, _RECEIVE = 0, 1, 3


class RetryFailed(RuntimeError):
    """The repair cannot go on, and no end-of-life checkpoint may follow: the ranks may have changed their state.

    ``unclean`` are ranks that report a failed clean-up; a new process in their place may still repair the job.
    """

    def __init__(self, text: str, unclean: Collection[int] = ()) -> None:
        super().__init__(text)
        self.unclean = frozenset(unclean)


def losing(members: Iterable[Member]) -> dict[int, int]:
    """Return the ranks whose state may not be sound, with their status.

    An error of communication harms none.
    """
    return {member.rank: member.status for member in members if member.status in (UCE, RETRY)}


class Retry:
    """One repair of all ranks at a common step."""

    def __init__(
        self, roster: Roster, replicas: Replicas, timings: Timings, log: TtpLog, enter: Callable[[str], None]
    ) -> None:
        self._roster = roster
        self._replicas = replicas
        self._timings = timings
        self._log = log
        self._enter = enter

    def run(self, members: list[Member], step: int) -> None:
        """Repair ``members``, which are all ranks of the job. Raises RetryFailed."""
        broken = losing(members)
        if broken and (lost := self._replicas.savers({member.rank for member in members} - broken.keys())[1]):
            raise RetryFailed(f"dp:{list(lost[0])} has no complete data. ret:1")
        self._enter("STATE_OP_ENV_CLEAR")
        self._log.info("TTP controller.cpp:1177", "start notify all device stop...")
        self._all(members, "stop", "DEVICE_STOP")
        self._log.info("TTP controller.cpp:1184", "start notify all device clean...")
        cleaned = self._clean(members, broken)
        self._log.info("TTP controller.cpp:1210", "notify all device stop & clean ok!")
        self._enter("STATE_OP_REPAIR")
        if broken:
            self._log.info("TTP controller.cpp:2148", "Start do retry repair")
            self._repair(step, broken, cleaned)
        self._log.info("TTP controller.cpp:1244", "start rollback")
        self._all(members, "rollback", "ROLLBACK", step=step)
        self._log.info("TTP controller.cpp:3237", "Controller:0 rollback success")
        self._log.info("TTP controller.cpp:1251", "start notify all rank normal...")
        self._all(members, "go on", "NOTIFY_NORMAL", step=step)

    def _clean(self, members: list[Member], broken: Collection[int]) -> dict[int, int]:
        """Clean all devices. Returns each rank's answer.

        An answer that is neither clean nor low level ends the repair.
        """
        self._ask(members, "clean", "DEVICE_CLEAN", broken=sorted(broken))
        answers = {member.rank: int(member.replies.get("clean", {}).get("result", SILENT)) for member in members}
        failed = sorted(rank for rank, answer in answers.items() if answer not in (CLEANED, LOW_LEVEL))
        if failed:
            # A handler that has raised counts as neither: the state of its device is unknown.
            unclean = [rank for rank in failed if answers[rank] == UNCLEAN]
            raise RetryFailed(f"device clean failed, ranks: {failed}", unclean)
        return answers

    def _repair(self, step: int, broken: dict[int, int], cleaned: dict[int, int]) -> None:
        """Copy to every broken rank from the next good one of its group.

        Memory that was not lost needs no copy.
        """
        actions: dict[int, dict[str, Any]] = {}
        for group in self._replicas.groups():
            for rank in sorted(broken.keys() & set(group)):
                if cleaned[rank] == LOW_LEVEL:
                    continue
                at = group.index(rank)
                source = next(other for other in (*group[at:], *group[:at]) if other not in broken)
                pair = {"src": [source], "dst": [rank]}
                actions[rank] = {"repair_type": _UCE_HIGH if broken[rank] == UCE else _RECEIVE, **pair}
                sending = actions.setdefault(source, {"repair_type": _SEND, "src": [], "dst": []})
                sending["src"].append(source)
                sending["dst"].append(rank)
        if not actions:
            return
        for info in actions.values():  # the vendor's line names all ranks that take part, of whichever group
            info["rank_list"] = sorted(actions)
        members = [self._roster.member(rank) for rank in sorted(actions)]
        self._all(members, "repair", "REPAIR", step=step, actions={str(rank): info for rank, info in actions.items()})

    def _all(self, members: list[Member], message: str, name: str, **fields: Any) -> None:
        """Have every member act on a message. Raises RetryFailed when one does not answer or fails."""
        self._ask(members, message, name, **fields)
        failed = [member.rank for member in members if member.replies.get(message, {}).get("result", 0) != 0]
        if failed:
            raise RetryFailed(f"{message} failed, ranks: {failed}")

    def _ask(self, members: list[Member], message: str, name: str, **fields: Any) -> None:
        self._log.info(
            "TTP action_engine.cpp:538", f"send msg success, msg_type:TTP_MSG_OP_{name} rank_num:{len(members)}"
        )
        # In a repair one rank waits for another, which may have failed.
        patience = self._timings.collection if message == "repair" else None
        missing = self._roster.ask(members, message, self._timings.action, patience=patience, **fields)
        answered = [member for member in members if member not in missing]
        if missing and not any(member.replies[message].get("result", 0) != 0 for member in answered):
            raise RetryFailed(f"{message}: no answer of ranks {[member.rank for member in missing]}")
        self._log.info("TTP action_engine.cpp:71", f"do action success. opcode: ACTION_OP_{name}")
