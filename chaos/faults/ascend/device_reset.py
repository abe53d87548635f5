"""``device-reset``: resets the chip that a rank trains on.

The rank ends when it next uses the chip.

On Ascend alone: ``npu-smi set -t reset -i NPU -c CHIP``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chaos.faults.ascend.on_device import NEEDS, NEEDS_SCENARIO, Cards, on_node, place_of, tool_errors
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.ascend.machine import RankMachine
from chaos.machine.ascend.tools import Reset, reset_command
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.job_effect import DEATH
from chaos.plan.points import EXCHANGE
from chaos.plan.rules.hazard import Hazard
from chaos.plan.rules.required_place import RequiredPlace


class DeviceReset(FaultKind):
    """Resets a chip."""

    name = "device-reset"
    surface = "device"
    effect = DEATH
    needs = NEEDS
    needs_from_start = NEEDS_SCENARIO
    shows_when_let_go = True  # a rank that is held at a barrier does not use its device
    required_place = RequiredPlace(
        phases=EXCHANGE, held=False
    )  # later in a step a rank may finish the step or a save before it dies
    hazard = Hazard(
        "high",
        "resets a chip under everything that uses it, on some boards its neighbours too",
        "nothing to undo; the chip's health is checked",
    )

    def __init__(self, machine: RankMachine | None = None) -> None:
        """Take ``machine`` for all ranks; None: each rank's own."""
        self._cards = Cards(machine)
        self._answers: dict[ProcessIdentity, Reset] = {}

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Check that each chip is healthy afterwards. Raises FaultMissed where a chip is not known."""
        steps = {}
        for victim in victims:
            device, place = self._cards.of(victim), place_of(victim)
            where = "".join(f"-node-{node}" for node in place.values())
            name = f"{fault}{where}-npu-{device.npu}-chip-{device.chip}"
            arguments = {"npu": device.npu, "chip": device.chip, **place}
            note = f"npu-smi info{on_node(victim)} must say that NPU {device.npu} chip {device.chip} is OK"
            steps[name] = UndoStep(name, fault, "see-chip", arguments, note)
        return [steps[name] for name in sorted(steps)]

    def inject(self, job: Job, victim: Victim) -> None:
        """Reset the chip. Raises FaultMissed where the tool refuses."""
        del job
        device = self._cards.of(victim)
        with tool_errors():
            self._answers[victim.identity] = self._cards.tools(victim).reset(device.npu, device.chip)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the tool's answer, and the process's end with an error."""
        device = self._cards.of(victim)
        status = job.exit_status(victim.identity)
        if status is None:
            return None
        if status.code == 0:
            raise FaultMissed(f"rank {victim.rank} ended with exit code 0, as if its chip had not been reset")
        command = " ".join(reset_command(device.npu, device.chip))
        answer = self._answers.get(victim.identity, Reset(None, "nothing"))
        shown = {"signal": status.signal, "device": device.to_json(), "command": command, "exit": str(status)}
        return {**shown, "answer": asdict(answer)}

    def lacking(self, victim: Victim) -> str:
        """Return the missing part of the evidence."""
        return f"rank {victim.rank} lives on after the reset of its chip"


KIND = DeviceReset()
