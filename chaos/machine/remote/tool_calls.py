"""The harness's side of the helper's calls of the vendor's tools: its node as the machine that a rank runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chaos.machine.linux.commands import SECONDS, CommandError, Done, NoSuchTool
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.remote.replies import Asking, by_name, fields, list_of, optional, text, whole

_MORE_SECONDS = 15.0
"""Seconds for the way there and back, and for a tool that the kernel does not let end at once."""


class ToolCalls(Asking):
    """Typed calls. Every call raises HelperLost when the helper has ended, and PlatformError for a refused request."""

    def tool(self, argv: tuple[str, ...], answer: str = "") -> Done:
        """Run a tool of the vendor there, after an earlier call has ended.

        Raises CommandError and NoSuchTool, too.
        """

        def done(value: Any) -> Done:
            return Done(argv, whole(fields(value)["code"]), text(value["output"]), text(value["errors"]))

        seconds, raises = 2 * SECONDS + _MORE_SECONDS, (NoSuchTool, CommandError)
        return self._ask(done, "tool", seconds=seconds, raises=raises, argv=list(argv), answer=answer)

    def lacking_tools(self) -> list[str]:
        """Return what device faults lack there, in words."""
        return self._ask(list_of(text), "lacking_tools")

    def device_variables(self, identity: ProcessIdentity) -> dict[str, str] | None:
        """Return the variables of a process of the run that name its device; None where it has ended."""
        return self._ask(optional(by_name(text)), "device_variables", identity=asdict(identity))


@dataclass(frozen=True)
class NodeMachine:
    """The machine that a remote helper is on."""

    helper: ToolCalls

    def commands(self, *argv: str, answer: str = "") -> Done:
        """Run a tool of the vendor there."""
        return self.helper.tool(argv, answer)

    def variables(self, identity: ProcessIdentity) -> Mapping[str, str] | None:
        """Return the variables that name the device of a process."""
        return self.helper.device_variables(identity)
