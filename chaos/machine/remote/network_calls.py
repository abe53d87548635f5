"""The harness's side of the helper's changes to the network of its node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chaos.machine.linux.net.connections import Connection
from chaos.machine.linux.net.echo import Echoes
from chaos.machine.linux.net.netfilter import Rule, RuleCounter
from chaos.machine.remote.replies import Asking, connection, echoes, fields, list_of, rule_counter, text, whole, yes


@dataclass(frozen=True)
class NetworkView:
    """The view of a node.

    ``connections`` are its connections with some others, ``fault_rules`` the rules of a fault, ``run_rules`` the rules
    of the whole run, and ``echoes`` the result of echo requests to the others.
    """

    connections: int
    fault_rules: list[RuleCounter]
    run_rules: list[RuleCounter]
    echoes: Echoes


class NetworkCalls(Asking):
    """Typed calls. Every call raises HelperLost when the helper has ended, and PlatformError for a refused request."""

    def check_network(
        self, own_address: str, others: Sequence[str], resetting: Sequence[str] = (), holding: Sequence[str] = ()
    ) -> None:
        """Check that rules about these addresses can be laid there.

        ``resetting`` and ``holding`` are the names of faults that reset connections and that let packets wait. Raises
        PlatformError where the rules cannot or may not be laid.
        """
        self._call(
            "network_check",
            own_address=own_address,
            others=list(others),
            resetting=list(resetting),
            holding=list(holding),
        )

    def lay(self, fault: str, rules: Sequence[Rule]) -> None:
        """Lay rules of a fault there, all at once; rules that it has laid there already stay."""
        self._call("lay", fault=fault, rules=[asdict(rule) for rule in rules])

    def list_rules(self, fault: str | None = None) -> list[RuleCounter]:
        """Return the rules of a fault there, or of the whole run, with the kernel's counters."""
        return self._ask(list_of(rule_counter), "list_rules", fault=fault)

    def lift(self, fault: str | None = None) -> int:
        """Remove the rules of a fault there, or of the whole run; return their number."""
        return self._ask(whole, "lift", fault=fault)

    def look(self, fault: str, addresses: Sequence[str], *, count: int, wait: float) -> NetworkView:
        """Return the effects there of a fault that cuts off these addresses, all by one call."""
        return self._ask(_view, "look", fault=fault, addresses=list(addresses), count=count, wait=wait)

    def echo(self, addresses: Sequence[str], *, count: int, interval: float, wait: float) -> Echoes:
        """Return the result of echo requests from there (:func:`chaos.machine.linux.net.echo.ask`)."""
        return self._ask(echoes, "echo", addresses=list(addresses), count=count, interval=interval, wait=wait)

    def devices(self) -> list[str]:
        """Return the devices there in which packets of the run are to wait."""
        return self._ask(list_of(text), "devices")

    def connections_at(self, own_address: str, port: int, others: Sequence[str]) -> int:
        """Return the number of connections that others have with a TCP port there."""
        return self._ask(whole, "look_at_port", own_address=own_address, port=port, others=list(others))

    def attempt(self, own_address: str, address: str, port: int, wait: float) -> bool:
        """Return whether a TCP port answers to that node, by a connection or a refusal, within ``wait`` seconds."""
        return self._ask(yes, "attempt", own_address=own_address, address=address, port=port, wait=wait)

    def send_from(self, own_address: str, port: int, addresses: Sequence[str]) -> None:
        """Let one packet go from a port there to each address, which nobody answers."""
        self._call("send_from", own_address=own_address, port=port, addresses=list(addresses))

    def connected(self, own_address: str, others: Sequence[str], *, of_run: bool) -> list[Connection]:
        """Return the connections there with others; with ``of_run`` those that processes of the run have."""
        return self._ask(list_of(connection), "connected", own_address=own_address, others=list(others), of_run=of_run)

    def reset(self, connection: Connection) -> bool:
        """Let the kernel there reset a connection of the run.

        Returns whether it has; False for a connection that is gone.
        """
        return self._ask(yes, "reset", connection=asdict(connection))


def _view(value: Any) -> NetworkView:
    fault_rules, every = (list_of(rule_counter)(fields(value)[key]) for key in ("own", "all"))
    return NetworkView(whole(value["connections"]), fault_rules, every, echoes(value["echoes"]))
