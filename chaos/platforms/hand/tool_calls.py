"""The harness's side of what a hand does with the vendor's tools: its node as the machine that a rank runs on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chaos.platforms.base import PlatformError
from chaos.platforms.commands import SECONDS, Done
from chaos.platforms.process import ProcessIdentity

_MORE_SECONDS = 15.0
"""For the way there and back, and for a tool that the kernel does not let end at once."""


class ToolCalls(ABC):
    """Typed calls. Every one raises HandLost when the hand has ended, and PlatformError for what it refuses."""

    def tool(self, argv: tuple[str, ...], answer: str = "") -> Done:
        """Run a tool of the vendor there, after one that was begun before has ended. Raises CommandError, too."""
        told = self._call("tool", seconds=2 * SECONDS + _MORE_SECONDS, argv=list(argv), answer=answer)
        try:
            return Done(argv, int(told["code"]), str(told["output"]), str(told["errors"]))
        except (KeyError, TypeError, ValueError) as error:
            raise PlatformError(f"{self}: does not say what {' '.join(argv)} did: {error}") from error

    def lacking_tools(self) -> list[str]:
        """What faults of a device lack there, in words."""
        return [str(one) for one in self._call("lacking_tools")]

    def device_variables(self, identity: ProcessIdentity) -> dict[str, str] | None:
        """The variables of a process of the run that name its device; None where it has ended."""
        told = self._call("device_variables", identity=asdict(identity))
        return None if told is None else {str(name): str(value) for name, value in dict(told).items()}

    @abstractmethod
    def _call(self, request: str, /, *, seconds: float = 0.0, **arguments: Any) -> Any: ...


@dataclass(frozen=True)
class NodeMachine:
    """The machine that a hand is on."""

    hand: ToolCalls

    def commands(self, *argv: str, answer: str = "") -> Done:
        """Run a tool of the vendor there."""
        return self.hand.tool(argv, answer)

    def variables(self, identity: ProcessIdentity) -> Mapping[str, str] | None:
        """Those that name the device of a process."""
        return self.hand.device_variables(identity)
