"""Statements about a job with steps that the agent has not seen, or cannot count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.base.rank_sets import by_word, named
from chaos.machine.linux.children import ExitStatus

ADVICE = "add the three lines of chaos_steps to the loop (`chaos steps` prints the file, whose head shows the lines)"

_ENDED_WELL = str(ExitStatus(code=0))

_NEITHER = "the script never calls Model.train, and chaos recognised no training loop of its own in it"


class StepsSeen:
    """The reports of a launch's agents about steps that they have not seen, or cannot count.

    ``own_script`` says that the job's loop is the user's own, which the agent may not recognise.
    """

    def __init__(self, *, own_script: bool) -> None:
        self._own_script = own_script
        self._trains = False
        self._none: dict[int, str] = {}
        self._unreachable: dict[str, str] = {}
        self._unclear: dict[int, str] = {}

    def take(self, rank: int, event: Mapping[str, Any]) -> None:
        """Take in an event of a rank's agent."""
        match event.get("event"):
            case "train.begin":
                self._trains = True
            case "steps.none":
                self._none[rank] = _why(event)
            case "steps.unclear":
                self._unclear[rank] = str(event.get("reason"))
            case "phase.unreachable":
                self._unreachable[str(event.get("phase"))] = str(event.get("reason"))

    def why_none(self, exited: Mapping[int, str]) -> str:
        """Say why no step was seen in ranks that have ended by themselves; nothing where one of them has failed."""
        if any(status != _ENDED_WELL for status in exited.values()):
            return ""
        reasons = dict.fromkeys(self._none[rank] for rank in exited if rank in self._none)
        return f"no step was seen: {'; '.join(reasons)}" if reasons else ""

    def not_yet(self) -> str:
        """Say what to do about living ranks that have begun no step; nothing where they train."""
        if self._trains or not self._own_script:
            return ""
        return f"; no step was seen: {_NEITHER} until now; if it has a loop, {ADVICE}"

    def missed(self, reason: str) -> str:
        """Say why faults were not made: the ``reason``, and the phases that no step comes to."""
        phases = (f"no step comes to {phase}: {why}" for phase, why in self._unreachable.items())
        return "; ".join([reason, *phases])

    def unclear(self) -> str:
        """Say whose steps cannot be counted and what to do; nothing where all can."""
        parts = [
            f"the steps of {named(ranks)} cannot be counted: {reason}"
            for reason, ranks in by_word(self._unclear).items()
        ]
        return "; ".join([*parts, ADVICE]) if parts else ""


def _why(event: Mapping[str, Any]) -> str:
    if event.get("model_train"):
        return "the script calls Model.train, which has trained no step"
    if event.get("lines"):
        return "the script imports chaos_steps and never calls step_begins(); call it before each step"
    if event.get("gradients"):
        return f"the script computes gradients, and no optimizer that chaos knows updates; {ADVICE}"
    return f"{_NEITHER}; {ADVICE}"
