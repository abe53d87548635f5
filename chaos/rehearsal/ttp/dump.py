"""The end-of-life checkpoint: one complete copy of every replica group is saved, then one rank renames."""

from __future__ import annotations

from collections.abc import Collection

from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.replicas import Replicas
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.timings import Timings


class Dump:
    """Has good ranks save."""

    def __init__(self, roster: Roster, replicas: Replicas, timings: Timings, log: TtpLog) -> None:
        self._roster = roster
        self._replicas = replicas
        self._timings = timings
        self._log = log

    def run(self, step: int, good: Collection[int]) -> bool:
        """Save the state of ``step`` by the lowest of the ``good`` ranks of each group. Failures are in the log.

        Returns whether there is a checkpoint.
        """
        savers, without = self._replicas.savers(set(good))
        if without:
            self._log.warning("TTP controller.cpp:2400", f"dp:{list(without[0])} has no complete data. ret:1")
            return False
        members = [self._roster.member(rank) for rank in savers]
        self._log.info(
            "TTP action_engine.cpp:538", f"send msg success, msg_type:TTP_MSG_OP_CKPT_SEND rank_num:{len(savers)}"
        )
        missing = self._roster.ask(members, "dump", self._timings.action, step=step)
        failed = [m.rank for m in members if m not in missing and m.replies["dump"].get("result") != 0]
        if missing:
            silent = ", ".join(str(member.rank) for member in missing)
            self._log.error(
                "TTP action_engine.cpp:138",
                "ProcessInner failed after reply error retry. opCode: ACTION_OP_SAVECKPT, sn: 0, "
                f"not reply ranks: [{silent}].",
            )
        if missing or failed:
            self._log.error("TTP controller.cpp:1150", "DumpCallback: save ckpt failed, ret: 1")
            return False
        return self._rename(step, self._roster.member(self._replicas.renamer(savers)))

    def _rename(self, step: int, member: Member) -> bool:
        self._log.info("TTP controller.cpp:2457", "Start rename.")
        if self._roster.ask([member], "rename", self._timings.action, step=step) or (
            member.replies["rename"].get("result") != 0
        ):
            self._log.error("TTP controller.cpp:1158", "DumpCallback: rename failed, ret: 1")
            return False
        self._log.info("TTP controller.cpp:2478", f"finish rename, rank:{member.rank}")
        self._log.info("TTP controller.cpp:1162", "DumpCallback return TTP_OK")
        return True
