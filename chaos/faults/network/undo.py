"""Undoing faults of the network between nodes: the holder of a fault's rules forgets them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.storage.undo import is_in_run
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.network.router import Router

_NO_HARM = "the network of the run has gone with its harness"


def mend_network(step: UndoStep, context: UndoContext) -> str:
    """Remove a fault's rules from the run's router, or from its hosts.

    Arguments: run_dir, fault, nodes (numbers) that may have a limit; hosts (numbers) that may have rules, where the
    nodes are hosts.
    """
    match step.arguments:
        case {"run_dir": str(run_dir), "fault": str(fault), "nodes": list(nodes)} if all(
            isinstance(node, int) for node in nodes
        ):
            directory = Path(run_dir)
        case _:
            raise CannotUndo(f"step {step.id} does not say which network: {step.arguments}")
    if not directory.is_absolute() or not is_in_run(directory / "x", context):
        raise CannotUndo(f"{directory} is no directory of this run; nothing was changed")
    if "hosts" in step.arguments:
        return _mend_hosts(step, fault, context)
    try:
        router = Router.recorded(directory)
        if router is None or not router.is_there:
            return _NO_HARM
        rules = router.mend(fault)
        limits = sum(router.free(fault, node) for node in nodes)
    except (PlatformError, ValueError, OSError) as error:
        raise CannotUndo(f"the run's network could not be put back: {error}") from error
    return f"removed {rules} rules and {limits} limits from the run's network"


def _mend_hosts(step: UndoStep, fault: str, context: UndoContext) -> str:
    """Put back every host that answers, also where another one does not."""
    hosts = step.arguments["hosts"]
    if context.nodes is None or not (isinstance(hosts, list) and all(isinstance(host, int) for host in hosts)):
        raise CannotUndo(f"step {step.id} does not say how its hosts are reached: {step.arguments}")
    nodes = context.nodes

    def mend(number: int) -> int | str:
        try:
            with nodes.helper(number) as helper:
                return 0 if helper is None else helper.lift(fault)
        except (PlatformError, LookupError) as error:
            return str(error)

    with ThreadPoolExecutor(max(1, len(hosts))) as pool:
        mended = list(pool.map(mend, hosts))
    lifted = sum(answer for answer in mended if isinstance(answer, int))
    failures = [answer for answer in mended if isinstance(answer, str)]
    if failures:
        others_text = f"removed {lifted} rules from the other hosts; " if len(failures) < len(hosts) else ""
        raise CannotUndo(f"{others_text}{'; '.join(failures)}; when they answer again, run chaos heal")
    return f"removed {lifted} rules from the hosts"
