"""The store in which ranks meet, for each release of PyTorch: whether the ranks of a later start can meet there (F-16).

Read in the sources of torch/distributed (``rendezvous.py``; ``elastic/rendezvous``: ``dynamic_rendezvous.py``,
``static_tcp_rendezvous.py``; ``elastic/agent/server``) of 2.1.2, 2.4.1, 2.5.1, 2.7.1, 2.13.0 and 2.14.1:

- Until 2.4 the static rendezvous alone hands torchrun's store to the ranks. With c10d rank 0 makes one for each start.
- From 2.5 on c10d hands it over as well, unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE is 1.
- Until 2.5 the keys in a shared store begin with ``/worker/attempt_N``. N is TORCHELASTIC_RESTART_COUNT, which each
  node counts by itself, so ranks of nodes that count differently do not meet.
- From 2.6 on all starts have the same keys: the new ranks read the addresses of the ended ones.

With c10d torchrun of 2.3 closes its rendezvous when it stops the ranks, and ends with RendezvousClosedError in place of
a restart (pytorch#123678, mended in 2.4; seen with 2.3.1).
"""

from __future__ import annotations

from chaos.jobs.torch.release import numbers_of
from chaos.scenario.models.scenario import Scenario

SHARED = (2, 5)
"""The first release in which c10d hands torchrun's store to the ranks."""

SAME_KEYS = (2, 6)
"""The first release in which all starts of the ranks have the same keys in a shared store."""

_CLOSES = (2, 3)
"""The release in which torchrun closes its rendezvous before a restart."""

_VARIABLE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"


def told(version: str) -> str:
    """Return in words what torchrun of a release does with the store of its ranks."""
    numbers = numbers_of(version)
    if numbers >= SAME_KEYS:
        return f"torchrun shares a store between restarts (F-16): set {_VARIABLE} in your launch lines"
    if numbers >= SHARED:
        return (
            "torchrun shares a store between restarts, with keys for each restart of a node (F-16): for several nodes "
            f"set {_VARIABLE} in your launch lines"
        )
    if numbers[:2] == _CLOSES:
        return "torchrun starts no ranks again with c10d, since it closes its rendezvous (pytorch#123678)"
    return "torchrun shares no store between restarts, but with the static rendezvous (F-16)"


def lost_starts(scenario: Scenario, version: str | None) -> str:
    """Return why the ranks of a later start would not meet; empty where they do. ``version`` is None if not known."""
    options, nodes = scenario.job.torchrun, scenario.cluster.nodes
    static = options.rendezvous == "static"
    if not static and version is not None and numbers_of(version)[:2] == _CLOSES:
        return f"torchrun closes its rendezvous before the ranks could start again (PyTorch {version}; pytorch#123678)"
    if not static and options.store == "own":
        return ""
    numbers = SAME_KEYS if version is None else numbers_of(version)
    where = f"PyTorch {'2.6 and later' if version is None else version}"
    if not static and numbers < SHARED:
        return ""
    if numbers >= SAME_KEYS:
        what = "with the addresses of the ended ranks in it"
        return f"torchrun hands the same store to every start of the ranks, {what} ({where}; F-16)"
    if nodes == 1:
        return ""
    return (
        "in the store that torchrun hands to every start of the ranks, each node finds its ranks by the number of its "
        f"own restarts, which differ from node to node ({where}; F-16)"
    )
