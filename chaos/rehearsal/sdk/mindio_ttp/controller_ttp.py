"""The controller's interface of MindIO TFT 7.3 (``mindio_ttp.controller_ttp``).

A cluster's agent hosts the controller by it and steers it. There is one controller a process, so this module holds it.
The functions of the agent may be registered before the controller is made, in its process.
"""

from __future__ import annotations

from typing import Any, Callable

from chaos.agent.leaving import leave
from chaos.rehearsal.ttp.agent_dialogue import CHANGE, DUMP, STOP, WHO, AgentDialogue
from chaos.rehearsal.ttp.controller import Controller
from chaos.rehearsal.ttp.own_run import configuration, log, secret, timings
from chaos.rehearsal.ttp.pause import Pausing

dialogue = AgentDialogue()
"""The dialogue of this process."""

pausings: list[Pausing] = []
"""The pausing of this process's controller, once it is made."""

_TAKEN, _REFUSED = 0, 1
_PAUSE_SECONDS = 600.0
"""How long a pause may last where the agent does not say: MindCluster's default for a network switch."""

_controller: Controller | None = None


def tft_init_controller(
    rank: int, world_size: int, enable_local_copy: bool, enable_arf: bool = False, enable_zit: bool = False
) -> None:
    """Make the controller; rank 0, or -1 outside the ranks. An existing controller stays."""
    del enable_local_copy
    global _controller
    if _controller is not None and not _controller.closed:
        log().info("TTP controller.cpp:112", f"controller has already inited, rank:{rank}")
        return
    if enable_zit:
        raise RuntimeError("this stand-in does not shrink a job: ZIT must be off")
    settings, writer = configuration(), log()
    _controller = Controller(
        rank,
        world_size,
        run=settings.run,
        secret=secret(settings),
        timings=timings(settings, world_size),
        log=writer,
        arf=enable_arf,
        agent=dialogue,
    )
    pausings.append(_controller.pausing)
    writer.info(
        "TTP controller.cpp:145",
        f"Init controller success, rank:{rank}, world size:{world_size}, is master controller:1, "
        f"arf:{int(enable_arf)}, zit:0 FrameworkType:1",
    )


def tft_start_controller(bind_ip: str, port: int, enable_tls: bool = True, tls_info: str = "") -> None:
    """Start the controller; like the vendor's it ends the process with 2 when it cannot listen."""
    del enable_tls, tls_info
    assert _controller is not None
    if _controller.started:
        log().info("TTP controller.cpp:303", f"controller has started, ip: {bind_ip}, port: {port}")
        return
    try:
        _controller.start(bind_ip, port, configuration().address)
    except (OSError, ValueError) as error:
        advice = "end the program that listens there, or choose another MS_TFT_PORT"
        leave(2, f"mindio_ttp: the controller cannot listen on {bind_ip}:{port}: {error}; {advice}")


def tft_destroy_controller() -> None:
    """Stop the controller, where there is one."""
    if _controller is not None:
        _controller.close()


def tft_query_high_availability_switch() -> bool:
    """Return whether high availability is on: any rank's processor is connected to this process's controller."""
    log().info("PYH ttp_controller.py:77", "query high availability switch...")
    return _controller is not None and _controller.connected


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
    return dialogue.notify(STOP, dict(fault_ranks))


def tft_notify_controller_on_global_rank(fault_ranks: dict[int, int], time: float | None = None) -> int:
    """Say which ranks of the whole job are faulty."""
    del time
    return dialogue.notify(WHO, dict(fault_ranks))


def tft_notify_controller_change_strategy(strategy: str, params: str = "") -> int:
    """Choose one of the offered strategies; ``continue`` ends a pause."""
    del params
    if strategy == "continue" and pausings:
        pausings[-1].go_on()
        return _TAKEN
    return dialogue.notify(CHANGE, strategy)


def tft_notify_controller_prepare_action(action: str, fault_ranks: dict[int, int] | None = None) -> int:
    """Prepare a hot switch: the move of a rank to a spare node, which this stand-in does not know.

    It is unrelated to switching the network, which takes place during a pause. No other action can be prepared.
    """
    del fault_ranks
    if action not in ("hot switch", "stop switch"):
        return _REFUSED
    raise RuntimeError(f"this stand-in cannot {action}")


def tft_notify_controller_dump() -> int:
    """Order to save and end the job, whether the controller has asked or not.

    It is no answer to an offer of strategies: there the controller exits without a checkpoint.
    """
    return dialogue.notify(DUMP, None)
