"""The helper's calls of the vendor's tools on its node: the calls that device faults need, and no others."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.linux.commands import SECONDS, CommandError, SystemCommands, find_tool
from chaos.machine.linux.process import ProcessIdentity, has_ended, state
from chaos.machine.linux.procfs import environment, living

TOOLS = ("npu-smi", "hccn_tool")
VARIABLES = ("ASCEND_DEVICE_ID", "DEVICE_ID", "ASCEND_RT_VISIBLE_DEVICES")
"""Variables of a rank that name its device (chaos.machine.ascend.device)."""

_MARK = "CHAOS_TOOL"
_LOOK_SECONDS = 0.05
_NUMBER = "[0-9]{1,4}"
_CALLS = tuple(
    re.compile(call.replace("N", _NUMBER))
    for call in (
        "npu-smi info",
        "npu-smi info -m",
        "npu-smi set -t reset -i N -c N",
        "hccn_tool -i N -net_health -g",
        "hccn_tool -i N -link -s down",
        "hccn_tool -i N -cfg recovery",
    )
)
_ANSWERS = ("", "y\n")


class ToolRequests:
    """The part of the remote helper that handles devices; arguments and results are JSON."""

    _run: str

    def tool(self, argv: list[str], answer: str) -> dict[str, Any]:
        """Run a tool of the vendor and wait for its end. Raises CommandError, and ValueError for any other call."""
        words = " ".join(argv)
        if answer not in _ANSWERS or not any(call.fullmatch(words) for call in _CALLS):
            raise ValueError(f"{words!r} is no call that a fault of a device needs; it was not run")
        self._await_others()
        done = SystemCommands(marks={_MARK: self._run})(*argv, answer=answer)
        return {"code": done.code, "output": done.output, "errors": done.errors}

    def _await_others(self) -> None:
        """Wait for calls that an earlier, dead helper began: they would take effect after the fault is undone."""
        deadline = time.monotonic() + SECONDS
        while any((of or {}).get(_MARK) == self._run and stat.ppid != os.getpid() for stat, of in living()):
            if time.monotonic() > deadline:
                raise CommandError(f"a tool that was begun before is still under way after {SECONDS:g} s")
            time.sleep(_LOOK_SECONDS)

    def lacking_tools(self) -> list[str]:
        """Return what device faults lack here, in words."""
        lacking = [f"there is no {name}" for name in TOOLS if find_tool(name) is None]
        return lacking if os.geteuid() == 0 else [*lacking, "the user who logs in must be root there"]

    def device_variables(self, identity: dict[str, Any]) -> dict[str, str] | None:
        """Return the variables of a process of the run that name its device; None where it has ended."""
        who = ProcessIdentity(int(identity["pid"]), int(identity["start_time"]), str(identity["boot"]))
        variables = environment(who.pid)
        if has_ended(state(who)):
            return None
        if (variables or {}).get(RUN_VARIABLE) != self._run:
            raise ValueError(f"{who} does not carry this run's {RUN_VARIABLE}; its device is not reported")
        return {name: value for name, value in (variables or {}).items() if name in VARIABLES}
