"""The command line and the environment of torchrun (``python -m torch.distributed.run``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from chaos.agent.launcher.rank_variables import VARIABLE, written
from chaos.jobs.kind import Launch

TORCHRUN = "torch.distributed.run"
"""The module of torchrun."""

RANK_VARIABLES = (("RANK", "WORLD_SIZE"),)

_OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""With the value 1 torchrun gives the ranks of each start a store of their own (PyTorch 2.6 and later)."""


def torchrun_argv(
    launch: Launch, rank_command: Sequence[str], *, port: int, restarts: int, program: str = TORCHRUN
) -> tuple[str, ...]:
    """Return the command line of torchrun on this host, or on one node, for a script and its arguments.

    ``restarts`` is the number of times that torchrun may start all ranks again. The files in which ranks say how they
    failed (``error.json``) are beside the logs: torchrun's own choice, the directory for temporary files, would keep
    them. ``program`` is the module that is torchrun.
    """
    scenario, place = launch.scenario, launch.place
    options = scenario.job.torchrun
    local = scenario.cluster.ranks if place is None else len(place.ranks)
    rendezvous = (
        f"--rdzv-backend={options.rendezvous}",
        f"--rdzv-endpoint={launch.master}:{port}",
        f"--rdzv-id=chaos-{port}",
    )
    return (
        str(launch.python),
        "-m",
        program,
        f"--nnodes={1 if place is None else place.nodes}",
        f"--nproc-per-node={local}",
        *rendezvous,
        *_of_the_node(launch),
        f"--local-addr={launch.master if place is None else place.address}",
        f"--max-restarts={restarts}",
        f"--monitor-interval={options.monitor_interval:g}",
        f"--log-dir={launch.logs / 'torchrun'}",
        *rank_command,
    )


def _of_the_node(launch: Launch) -> tuple[str, ...]:
    """Return the options by which the launchers of several nodes meet, and how long they wait for each other.

    c10d numbers the nodes by the order of their addresses. It finds out by the name of the host who holds the store of
    all nodes, and nodes of one host share a name. The static rendezvous has neither, and a number for each node.
    """
    options, place = launch.scenario.job.torchrun, launch.place
    if options.rendezvous == "static":
        return (f"--node-rank={0 if place is None else place.node}",)
    settings = [] if place is None else [f"is_host={str(place.node == 0).lower()}"]
    if options.join_timeout is not None:
        settings.append(f"join_timeout={math.ceil(options.join_timeout)}")
    return (f"--rdzv-conf={','.join(settings)}",) if settings else ()


def torchrun_environment(launch: Launch) -> Mapping[str, str]:
    """Return the environment of torchrun and its ranks: numbers of ranks, their store, the loopback interface.

    On one of several nodes the agent in torchrun finds the interface (:mod:`chaos.agent.torch.interface`).

    torchrun gives each rank a thread of its own only if nobody says otherwise; it is said here, without its warning.
    """
    environment = {VARIABLE: written(RANK_VARIABLES), "OMP_NUM_THREADS": "1"}
    if launch.scenario.job.torchrun.store == "own":
        environment[_OWN_STORE] = "1"
    if launch.place is None:
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    return environment
