"""Defects of a job in plain Python that is started again with a damaged checkpoint."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import RESUME, replaces

_CHECKPOINTS = "chaos.rehearsal.plain.checkpoints"


def checksum_not_looked_at(agent: Agent) -> None:
    """Load checkpoints whatever their checksum says."""

    @replaces(agent, "chaos.rehearsal.plain.ckpt", "_checked")
    def checked(original: Any, raw: bytes, path: str, checked_by_crc: bool) -> bytes:
        try:
            return bytes(original(raw, path, checked_by_crc))
        except ValueError as error:
            acted(agent, f"loaded all the same: {error}")
            return raw[:-17]


def anew(agent: Agent) -> None:
    """Begin training anew."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, _CHECKPOINTS, "Checkpoints.resume")
    def resume(original: Any, self: Any) -> int:
        acted(agent, "no checkpoint is looked for")
        return 0


def older_step(agent: Agent) -> None:
    """Give up the newest step with the damaged file."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, _CHECKPOINTS, "Checkpoints._periodic_steps")
    def steps(original: Any, self: Any, ranks: Any) -> Any:
        files = original(self, ranks)
        if files:
            acted(agent, f"the checkpoints of step {max(files)} are given up")
        return {step: path for step, path in files.items() if step != max(files)}


def content_of_the_save_before(agent: Agent) -> None:
    """Let each save of the resumed job hold the content of the save before, under the later step."""
    if agent.configuration.attempt != RESUME:
        return
    before: dict[str, Any] = {}

    @replaces(agent, _CHECKPOINTS, "write_ckpt")
    def write(original: Any, path: str, values: Any, *args: Any, **kwargs: Any) -> None:
        now = {name: array.copy() for name, array in values.items()}
        if before:
            acted(agent, f"{path} holds what was saved before it")
            values = {**before, "step_num": values["step_num"], "epoch_num": values["epoch_num"]}
        before.update(now)
        original(path, values, *args, **kwargs)
