"""The control endpoints of a rehearsal: they act for the harness as a cluster's manager acts inside a job.

In production ``taskd`` receives the cluster's orders and calls the SDK's controller (pause, continue) and, in each
rank, MindSpore's function that switches the network. Here the harness gives these orders, over the run's own socket. A
pause ends when the connection of its requester ends, for whatever reason.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from types import ModuleType
from typing import Any, Callable

from chaos.agent.channel import Channel
from chaos.agent.start import Agent

_CONTROLLER_MODULES = ("mindio_ttp.controller_ttp", "mindio_ttp.framework_ttp")
"""The SDK's controller may start in either module: the vendor's controller is in the first and exported by the second.
"""


def install(agent: Agent) -> None:
    """Open a control endpoint beside the controller, wherever it starts, and one in each rank that can be paused."""
    if "TSP:1" not in os.environ.get("MS_ENABLE_TFT", ""):
        return
    controller = _ControllerEndpoint(agent)
    for name in _CONTROLLER_MODULES:
        agent.imports.watch(name, controller.hook)
    if agent.place.rank is not None:
        _open(agent, "worker", _Worker(agent).obey, lambda: None)


def _open(agent: Agent, endpoint: str, obey: Callable[[dict[str, Any]], None], on_end: Callable[[], None]) -> None:
    """Connect to the harness and obey its orders, in a thread, until it is gone; then call ``on_end``."""
    configuration = agent.configuration
    if configuration.socket is None or configuration.secret is None:
        return
    with open(configuration.secret, encoding="ascii") as file:
        secret = file.read().strip()

    def serve() -> None:
        assert configuration.socket is not None
        try:
            channel = Channel(configuration.socket, secret)
        except OSError:  # the harness has gone already, and will send no order
            return
        known = channel.introduce(
            endpoint=endpoint,
            run=configuration.run,
            attempt=configuration.attempt,
            rank=agent.place.rank,
            pid=os.getpid(),
        )
        if not known:
            return
        while (message := channel.receive()) is not None:
            obey(message)
        on_end()

    threading.Thread(target=serve, name=f"endpoint-{endpoint}", daemon=True).start()


class _ControllerEndpoint:
    """Beside the SDK's controller: pauses the training and lets it go on."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._opened = False
        self._paused_for: str | None = None
        self._continue: Callable[[str], Any] | None = None

    def hook(self, module: ModuleType) -> None:
        """Open the control endpoint once the controller is started."""
        start = getattr(module, "tft_start_controller", None)
        if start is None:
            return

        @functools.wraps(start)
        def start_with_endpoint(*args: Any, **kwargs: Any) -> Any:
            result = start(*args, **kwargs)
            if not self._opened:
                self._opened = True
                _open(self._agent, "controller", self.obey, self._end_pause)
            return result

        module.tft_start_controller = start_with_endpoint  # type: ignore[attr-defined]

    def obey(self, message: dict[str, Any]) -> None:
        """Obey an order of the harness: ``pause`` for a fault, once, with a limit in seconds, or ``continue``."""
        if message.get("message") == "pause" and self._paused_for != message["fault"]:
            from mindio_ttp import controller_ttp

            self._paused_for = message["fault"]
            self._continue = controller_ttp.tft_notify_controller_change_strategy
            if controller_ttp.tft_notify_controller_stop_train({}, "pause", int(message["limit"])) != 0:
                print("the SDK's controller does not take the order to pause", file=sys.stderr, flush=True)
        elif message.get("message") == "continue" and self._paused_for == message["fault"]:
            self._end_pause()

    def _end_pause(self) -> None:
        if self._paused_for is not None and self._continue is not None:
            self._paused_for = None
            self._continue("continue")


class _Worker:
    """In a rank: switches the network while the training is paused."""

    def __init__(self, agent: Agent) -> None:
        assert agent.place.ranks is not None and agent.record is not None
        self._ranks = list(range(agent.place.ranks))
        self._record = agent.record

    def obey(self, message: dict[str, Any]) -> None:
        """Obey ``switch``: use the backup network on all ranks, by MindSpore's own function where it is loaded."""
        switch = _switch()
        if message.get("message") != "switch" or switch is None:
            return
        try:
            done = bool(switch(self._ranks, [True] * len(self._ranks)))
            self._record.write("network.switched", fault=message["fault"], ok=done)
        except (RuntimeError, ValueError, OSError) as error:
            self._record.write("network.switched", fault=message["fault"], ok=False, error=str(error))


def _switch() -> Callable[..., Any] | None:
    """Return the function that switches the network in this process.

    It is MindSpore's, or that of the device of a plain rank.
    """
    management = sys.modules.get("mindspore.communication.management")
    if management is not None:
        return management._comm_switch_nic  # type: ignore[no-any-return]
    machine = sys.modules.get("chaos.rehearsal.plain.machine")
    return None if machine is None else machine.device().switch_network
