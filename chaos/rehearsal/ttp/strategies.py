"""The possible strategies for a fault, and those that may follow a failed one."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.rehearsal.ttp.agent_dialogue import DUMP_ALLOWED, EXIT_ONLY, RECOVER_ALLOWED


@dataclass(frozen=True)
class Possible:
    """The strategies that the state of the ranks allows.

    ``dump``: all good ranks are at one step and every replica group has one. ``retry``: every process lives, all errors
    are of the device or of communication, and every replica group has a rank whose state no error of the device has
    hit. ``recover``: lost processes can be replaced (ARF), by an agent, and every replica group has a good rank to copy
    from.
    """

    dump: bool
    retry: bool
    recover: bool

    def offered(self) -> tuple[str, ...]:
        """Return names in the order of the offer to the agent; ending the job is always possible."""
        return (
            "exit",
            *(("dump",) if self.dump else ()),
            *(("retry",) if self.retry else ()),
            *(("recover",) if self.recover else ()),
        )

    def default(self) -> str:
        """Return the strategy without a chooser.

        Nothing is replaced then, since nobody would start the new process.
        """
        if self.retry:
            return "retry"
        return "dump" if self.dump else "exit"

    def code(self) -> int:
        """Return the agent's code after a failure: the most that is still allowed."""
        if self.recover:
            return RECOVER_ALLOWED
        return DUMP_ALLOWED if self.dump else EXIT_ONLY
