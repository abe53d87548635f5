"""The interface of MindIO TFT 7.3 by which a cluster's agent steers the controller (``mindio_ttp.controller_ttp``).

The functions may be called before the controller is made, in its process. Each notification returns 0 when it was
taken, 1 when the controller had not asked.
"""

from __future__ import annotations

from typing import Any, Callable

from chaos.rehearsal.ttp.agent_dialogue import AgentDialogue
from chaos.rehearsal.ttp.pause import Pausing

dialogue = AgentDialogue()
"""The one of this process."""

pausings: list[Pausing] = []
"""That of this process's controller, once it is made."""

_TAKEN, _REFUSED = 0, 1
_PAUSE_SECONDS = 600.0
"""How long a pause may last where the agent does not say: what MindCluster takes for a network switch by default."""


def tft_register_mindx_callback(action: str, func: Callable[..., Any]) -> int:
    """Register the agent's function for an action; once all four are there, the agent chooses the strategies."""
    return dialogue.register(action, func)


def tft_notify_controller_stop_train(
    fault_ranks: dict[int, int], stop_type: str = "stop", timeout: float | None = None
) -> int:
    """Order to stop training because of these ranks; or to ``pause`` it, for at most ``timeout`` seconds."""
    if stop_type == "pause" and pausings:
        pausings[-1].request(_PAUSE_SECONDS if timeout is None else timeout)
        return _TAKEN
    if stop_type != "stop":
        return _REFUSED
    return dialogue.notify("stop_train", dict(fault_ranks))


def tft_notify_controller_on_global_rank(fault_ranks: dict[int, int], time: float | None = None) -> int:
    """Say which ranks of the whole job are faulty."""
    del time
    return dialogue.notify("on_global_rank", dict(fault_ranks))


def tft_notify_controller_change_strategy(strategy: str, params: str = "") -> int:
    """Choose one of the offered strategies; ``continue`` ends a pause."""
    del params
    if strategy == "continue" and pausings:
        pausings[-1].go_on()
        return _TAKEN
    return dialogue.notify("change_strategy", strategy)


def tft_notify_controller_prepare_action(action: str, fault_ranks: dict[int, int] | None = None) -> int:
    """Prepare a hot switch: the move of a rank to a spare node, which this stand-in does not know.

    It has nothing to do with switching the network, which takes place during a pause.
    """
    del fault_ranks
    raise RuntimeError(f"this stand-in cannot {action}")


def tft_notify_controller_dump() -> int:
    """Choose to save and end, in the place of a strategy."""
    return dialogue.notify("change_strategy", "dump")
