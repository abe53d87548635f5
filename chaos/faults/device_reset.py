"""``device-reset``: the chip that a rank trains on is reset under it, by ``npu-smi set -t reset``."""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.on_device import NEEDS, NEEDS_SCENARIO, Cards, on_node, place_of, told
from chaos.history.ledger import UndoStep
from chaos.plan.hazard import Hazard
from chaos.platforms.ascend.machine import RankMachine
from chaos.platforms.ascend.tools import reset_command
from chaos.platforms.base import Job


class DeviceReset:
    """Resets a chip. On Ascend alone: ``npu-smi set -t reset -i NPU -c CHIP``.

    The rank's process loses its device and ends; on a board of several chips others may be hit.
    """

    name = "device-reset"
    means = "device"
    effect = "death"
    signal: int | None = None
    needs = NEEDS
    needs_from_start = NEEDS_SCENARIO
    hazard = Hazard(
        "high",
        "resets a chip under everything that uses it; on some boards the others are reset with it",
        "nothing to undo; it is looked whether the chip is healthy again",
    )

    def __init__(self, machine: RankMachine | None = None) -> None:
        """``machine`` is that of all ranks; None: each rank's own."""
        self._cards = Cards(machine)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """See that each chip is healthy afterwards. Raises FaultMissed where a chip is not known."""
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
        """Reset the chip. Raises FaultMissed in the tool's words where it refuses."""
        del job
        device = self._cards.of(victim)
        with told():
            self._cards.tools(victim).reset(device.npu, device.chip)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The tool has ended with 0, or :meth:`inject` would have raised; and the process has ended with an error."""
        device = self._cards.of(victim)
        status = job.exit_status(victim.identity)
        if status is None:
            return None
        if status.code == 0:
            raise FaultMissed(f"rank {victim.rank} ended with exit code 0, as if its chip had not been reset")
        command = " ".join(reset_command(device.npu, device.chip))
        return {"signal": status.signal, "device": device.to_json(), "command": command, "exit": str(status)}


KIND = DeviceReset()
