"""``dns-gone``: stops name resolution on the targets' nodes; addresses are reached as before.

A look-up fails at once ("Temporary failure in name resolution"). Names in ``/etc/hosts`` still resolve.

On Ascend: CoreDNS does not answer.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.condition import LASTS, Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, make_once, node_ended, node_of, restore_steps
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended

SURFACE = "names"


class DnsGone(Condition):
    """Takes the resolution of names from whole nodes."""

    surface = SURFACE
    name = "dns-gone"
    parameters = LASTS
    needs = ("network-namespaces",)
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Let each node reach its resolvers again."""
        return restore_steps(fault, victims, "names", "let names be resolved again on")

    def inject(self, job: Job, victim: Victim) -> None:
        """Make the resolvers of the node unreachable, once. Raises FaultMissed where no name was resolved before."""
        node = node_of(job, victim)
        before = node.names() if victim.fault not in node.acts else {"found": True}
        if not before["found"]:
            raise FaultMissed(f"the node of rank {victim.rank} resolved no name before this fault was made: {before}")
        make_once(victim, node, lambda _: node.names_cut() != [], lambda: node.cut_names(before))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return a name that no longer resolves, though its address is reached.

        Raises FaultMissed if the rank has ended.
        """
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        node = node_of(job, victim)
        shown, names = self.still(job, victim), node.names()
        if shown is None or names["found"] or not names["error"]:
            return None
        return {**shown, **{key: names[key] for key in ("name", "before", "error", "address", "reached")}}

    look_every = 1.0
    """The node may end, or be ended by another fault."""

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the addresses that have no route there, by the kernel, whatever the rank does."""
        cut = node_of(job, victim).names_cut()
        return {"signal": None, "cut": cut} if cut else None

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the node has ended."""
        return node_ended(job, victim)

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether nothing keeps the node from its resolvers."""
        return self.gone(job, victim) or not node_of(job, victim).names_cut()


KIND = DnsGone()
"""The kind."""
