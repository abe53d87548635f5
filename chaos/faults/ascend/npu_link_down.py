"""``npu-link-down``: takes the link of a rank's card down.

On Ascend alone: ``hccn_tool -i ID -link -s down``.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.ascend.on_device import NEEDS, NEEDS_SCENARIO, Cards, on_node, place_of, tool_errors
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.ascend.hccn import FAULT, SUCCESS
from chaos.machine.ascend.machine import RankMachine
from chaos.machine.ascend.tools import health_command, recovery
from chaos.machine.ascend.unreadable import UnreadableOutput
from chaos.machine.job.protocol import Job
from chaos.machine.linux.commands import CommandError, NoSuchTool
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.job_effect import COMMUNICATION, NONE, JobEffect
from chaos.plan.rules.hazard import Hazard
from chaos.scenario.models.scenario import Scenario


class NpuLinkDown(FaultKind):
    """Takes the link down."""

    name = "npu-link-down"
    surface = "device"
    effect = COMMUNICATION
    needs = NEEDS
    needs_from_start = NEEDS_SCENARIO
    hazard = Hazard(
        "high",
        "takes down the network link of a card, for everything that uses it, until it is recovered",
        "undone by hccn_tool -i ID -cfg recovery",
        stays=True,
    )

    def __init__(self, machine: RankMachine | None = None) -> None:
        """Take ``machine`` for all ranks; None: each rank's own."""
        self._cards = Cards(machine)
        self._last: dict[ProcessIdentity, str] = {}

    def effect_in(self, scenario: Scenario) -> JobEffect:
        """Return no effect within one server: the vendor says that the cards of such a job do not use this link."""
        return self.effect if scenario.cluster.nodes > 1 else NONE

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Recover each card's network, and check its health.

        Raises FaultMissed for a card that is unknown or unhealthy before.
        """
        steps = {}
        for victim in victims:
            card, place = self._cards.of(victim).card, place_of(victim)
            with tool_errors():
                before = self._cards.tools(victim).net_health(card)
            if before != SUCCESS:
                raise FaultMissed(f"the network of card {card} is {before!r} before the fault, not {SUCCESS!r}")
            where = "".join(f"-node-{node}" for node in place.values())
            note = f"{' '.join(recovery(card))}{on_node(victim)}, until {' '.join(health_command(card))} says {SUCCESS}"
            name = f"{fault}{where}-card-{card}"
            steps[name] = UndoStep(name, fault, "recover-link", {"card": card, **place}, note)
        return list(steps.values())

    def inject(self, job: Job, victim: Victim) -> None:
        """Take the link of the rank's card down. Raises FaultMissed where the tool refuses."""
        del job
        with tool_errors():
            self._cards.tools(victim).take_link_down(self._cards.of(victim).card)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the vendor tool's report of the card's network fault."""
        # An answer that cannot be read is *not yet*.
        del job
        device = self._cards.of(victim)
        try:
            after = self._cards.tools(victim).net_health(device.card)
        except NoSuchTool as error:
            raise FaultMissed(str(error)) from error
        except (CommandError, UnreadableOutput) as error:
            self._last[victim.identity] = str(error)
            return None
        self._last[victim.identity] = f"the network of card {device.card} is {after!r}, not {FAULT!r}"
        if after != FAULT:
            return None
        return {"signal": None, "device": device.to_json(), "net_health": {"before": SUCCESS, "after": after}}

    def lacking(self, victim: Victim) -> str:
        """Return the last answer of the tool."""
        return self._last.get(victim.identity, "nobody was asked")


KIND = NpuLinkDown()
