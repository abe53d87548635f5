"""Bringing all good ranks to one step, before anything is repaired or saved."""

from __future__ import annotations

from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.roster import Roster
from chaos.rehearsal.ttp.status import NORMAL
from chaos.rehearsal.ttp.timings import Timings

_TRIES = 3


def pre_lock(roster: Roster, timings: Timings, log: TtpLog, controller: int, bad: set[int], online: bool) -> int:
    """Bring all good ranks to the highest step that any rank has reported. Returns -1 when they do not get there.

    A lost rank's last report counts too: a rank that is behind such a step has its gradients, and only has to finish.
    Where steps were counted anew since, none ever gets there, and nothing can be saved. A rank that dies meanwhile is
    added to the ``bad`` ones. ``online``: no rank has lost anything.
    """
    for attempt in range(1, _TRIES + 1):
        good = [member for member in roster.members() if member.rank not in bad]
        if not good and online:  # an error of communication on all ranks
            return _common_step(roster)
        step = max((member.step for member in roster.members()), default=0)
        log.info("TTP controller.cpp:1552", f"controller:{controller} pre lock start.")
        silent = roster.ask(good, "pre-lock", timings.pre_lock, step=step)
        log.info("TTP controller.cpp:1556", f"controller prelock step: {step} try times: {attempt}")
        if not silent and all(member.step == step and not member.updating for member in good):
            log.info("TTP controller.cpp:1558", f"controller:{controller} pre lock success.")
            return step
        if not silent and any(member.step < step and member.status == NORMAL for member in good):
            log.error("TTP controller.cpp:1561", f"controller:{controller} pre lock error.")
            return -1
        bad |= {member.rank for member in silent if member.link_broken}
    log.error("TTP controller.cpp:1566", f"controller:{controller} pre lock max_step error, try limit.")
    return -1


def _common_step(roster: Roster) -> int:
    steps = {member.step for member in roster.members()}
    return steps.pop() if len(steps) == 1 else -1
