"""Undoing faults of a device: its network is recovered, or it is seen to be healthy; nothing is assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chaos.base.wait import Deadline, DeadlineExpired, wait_for
from chaos.faults.action import CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.ascend.hccn import SUCCESS
from chaos.machine.ascend.tools import AscendTools, health_command, recovery
from chaos.machine.ascend.unreadable import UnreadableOutput
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.commands import CommandError, NoSuchTool
from chaos.machine.remote.tool_calls import NodeMachine

LINK_SECONDS = 120.0
CHIP_SECONDS = 300.0
AGAIN_SECONDS = 1.0
"""Seconds between two tries to recover a link."""

MAX_CARD = 1023
"""Largest number of a card, or of a node, that a ledger may name."""

_FAILS = (CommandError, UnreadableOutput, DeadlineExpired, PlatformError)


def recover_link(step: UndoStep, context: UndoContext) -> str:
    """Recover the network of a card and wait until it is healthy. Arguments: card, and its node where it has one.

    A recovery that fails is tried again within the same limit: a card whose link went down just now may refuse it.
    """
    card, where = _number(step, "card"), _where(step)
    by_hand = (
        f"by hand, as root{where}: {' '.join(recovery(card))}; then {' '.join(health_command(card))} must say {SUCCESS}"
    )
    try:
        with _tools(step, context) as tools:
            _wait("link", _recovering(tools, card, context), SUCCESS, LINK_SECONDS, context)
    except _FAILS as error:
        raise CannotUndo(f"the link of card {card}{where} is down or not known to be up: {error}; {by_hand}") from error
    return f"recovered the network of card {card}{where}: net health {SUCCESS}"


def _recovering(tools: AscendTools, card: int, context: UndoContext) -> Callable[[], str]:
    """Return a look at a card's network: it tries a recovery now and then, and looks once one has succeeded."""
    pause = Deadline("recovery", 0, context.clock)
    refused: CommandError | None = None
    recovered = False

    def look() -> str:
        nonlocal pause, refused, recovered
        if not recovered:
            if refused is not None and not pause.expired:
                raise refused
            pause = Deadline("recovery", AGAIN_SECONDS, context.clock)
            try:
                tools.recover(card)
            except CommandError as error:
                refused = error
                raise
            recovered = True
        return tools.net_health(card)

    return look


def see_chip(step: UndoStep, context: UndoContext) -> str:
    """Wait until npu-smi lists a chip as OK. Arguments: npu, chip, and its node where it has one."""
    npu, chip, where = _number(step, "npu"), _number(step, "chip"), _where(step)

    def health(tools: AscendTools) -> str:
        return next((row.health for row in tools.table().chips if (row.npu, row.chip) == (npu, chip)), "not listed")

    try:
        with _tools(step, context) as tools:
            _wait("chip", lambda: health(tools), "OK", CHIP_SECONDS, context)
    except _FAILS as error:
        by_hand = "look at it with npu-smi info, and reset it or reboot the machine"
        raise CannotUndo(f"NPU {npu} chip {chip}{where} is not known to be healthy: {error}; {by_hand}") from error
    return f"NPU {npu} chip {chip}{where} is OK"


@contextmanager
def _tools(step: UndoStep, context: UndoContext) -> Iterator[AscendTools]:
    """Give the tools of the card's machine. Raises CannotUndo, and PlatformError where the machine does not answer."""
    if "node" not in step.arguments:
        yield AscendTools(context.commands)
        return
    number = _number(step, "node")
    if context.nodes is None:
        raise CannotUndo(f"step {step.id}: it is not known how node {number} is reached")
    with context.nodes.helper(number) as helper:
        if helper is None:
            raise PlatformError(f"node {number} is no more")
        yield AscendTools(NodeMachine(helper).commands)


def _where(step: UndoStep) -> str:
    return f" on the host of node {_number(step, 'node')}" if "node" in step.arguments else ""


def _wait(name: str, look: Callable[[], str], expected: str, seconds: float, context: UndoContext) -> None:
    """Wait for an answer. While a card comes back its tools fail, hang or print half a table: that is *not yet*.

    Raises DeadlineExpired, with the last answer, and CommandError at once where there is no such tool.
    """
    last = ["it says nothing"]

    def reached() -> bool:
        try:
            answer = look()
        except NoSuchTool:
            raise
        except (CommandError, UnreadableOutput) as error:
            last[0] = str(error)
            return False
        last[0] = f"it says {answer}"
        return answer == expected

    wait_for(name, reached, seconds=seconds, clock=context.clock, detail=lambda: last[0])


def _number(step: UndoStep, name: str) -> int:
    value = step.arguments.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_CARD:
        raise CannotUndo(f"step {step.id} does not name a {name}: {step.arguments}")
    return value
