"""Faults change the network of a host only where the inventory says so, and only what can be told apart is cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.action import CannotUndo, UndoContext
from chaos.heal.undo import UNDO_ACTIONS
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.ssh.networks import check_host
from chaos.run.prepare.needs import needs_of_scenario
from chaos.run.prepare.on_platform import on_platform, platform_problems
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.run.prepare.registered import look_up_names
from chaos.scenario.load import LoadedScenario, load_scenario
from chaos.store.directory import RunDirectory, create_run
from tests.kit.shipped import shipped

INVENTORY = """inventory: 1
hosts:
  - {name: first, address: node-0.example, data_address: 192.168.7.10, network: true}
  - {name: second, address: node-1.example, data_address: 192.168.7.11, network: true}
  - {name: third, address: node-2.example}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.yaml"
    path.write_text(INVENTORY)
    return path


def on_hosts(scenario: str, inventory: Path) -> LoadedScenario:
    return on_platform(load_scenario(shipped(scenario), names=known_names()), "ssh", inventory)


def problems(scenario: str, inventory: Path) -> list[str]:
    loaded = on_hosts(scenario, inventory)
    return [problem.message for problem in platform_problems(loaded, loaded.cells[0])]


OF_NETWORK = {
    "partition.yaml": None,
    "plain-partition-lasts.yaml": None,
    "plain-partition-heals.yaml": None,
    "port-blocked.yaml": None,
    "plain-network-rate.yaml": None,
    "plain-network-loss.yaml": "loss by their packet filter (nftables)",
    "plain-network-delay.yaml": "delay by their netem, and a host whose kernel has none is refused before",
    "connection-reset.yaml": None,
}
"""The shipped scenarios with faults of the network, and of two ways to make one what the plan says."""


@pytest.mark.parametrize("scenario", OF_NETWORK)
def test_the_shipped_files_are_planned_as_they_are(inventory: Path, scenario: str) -> None:
    assert problems(scenario, inventory) == []
    loaded = on_hosts(scenario, inventory)
    cell = loaded.cells[0]
    assert plan_cell(loaded, cell, 1).faults
    assert (look_up_names(cell.scenario).platform.name, cell.scenario.cluster.platform) == ("ssh-networks", "ssh")


@pytest.mark.parametrize("scenario", OF_NETWORK)
def test_a_fault_that_hosts_make_needs_nothing_of_this_machine_for_it(inventory: Path, scenario: str) -> None:
    loaded, told = on_hosts(scenario, inventory), OF_NETWORK[scenario]
    needs = {"tbf", "impairment", "connection-reset", "network-namespaces"}
    assert not needs & set(needs_of_scenario(loaded.cells[0].scenario))
    reasons = [reason for reason in plan_cell(loaded, loaded.cells[0], 1).explanation.reasons if "is made by" in reason]
    assert (len(reasons) == 1 and told in reasons[0]) if told else reasons == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("192.168.7.11, network: true", "192.168.7.11"), "does not let faults change the network of host second"),
        (("192.168.7.11", "node-1.data"), "the data address node-1.data of host second is no IPv4 number"),
        (("192.168.7.11", "127.0.0.1"), "the data address 127.0.0.1 of host second is no address between hosts"),
        (("192.168.7.11", "192.168.7.10"), "hosts first and second have one data address, 192.168.7.10"),
    ],
)
def test_a_host_that_does_not_do_is_named(inventory: Path, change: tuple[str, str], told: str) -> None:
    inventory.write_text(INVENTORY.replace(*change))
    (found,) = problems("partition.yaml", inventory)
    assert told in found


def test_a_permission_of_all_hosts_is_enough_and_without_a_fault_none_is_asked_for(inventory: Path) -> None:
    text = INVENTORY.replace(", network: true", "")
    inventory.write_text(text)
    assert problems("straggler.yaml", inventory) == []
    inventory.write_text(text.replace("hosts:", "defaults: {network: true}\nhosts:"))
    assert problems("partition.yaml", inventory) == []


class Host:
    """A host that says what it was asked, and hears from some others only."""

    address = "192.168.7.10"
    host = "host first"

    def __init__(self, hears: set[str]) -> None:
        self.helper = self
        self.hears = hears
        self.asked: list[object] = []

    def check_network(self, own: str, others: list[str], resetting: list[str], holding: list[str]) -> None:
        self.asked.append((own, others, resetting, holding))

    def attempt(self, own: str, address: str, port: int, wait: float) -> bool:
        assert (own, port) == (self.address, 9)
        return address in self.hears


def test_a_port_can_be_told_for_blocked_only_between_hosts_that_answer_at_another() -> None:
    host = Host(hears={"192.168.7.11"})
    check_host(host, ["192.168.7.10", "192.168.7.11"], ("port-blocked",))  # type: ignore[arg-type]
    assert host.asked == [("192.168.7.10", ["192.168.7.11"], [], [])]
    host.hears.clear()
    message = r"host first: faults cannot change its network: port-blocked could not be shown.*192\.168\.7\.11 does not"
    with pytest.raises(PlatformError, match=message):
        check_host(host, ["192.168.7.10", "192.168.7.11"], ("port-blocked",))  # type: ignore[arg-type]
    check_host(host, ["192.168.7.10", "192.168.7.11"], ("partition",))  # type: ignore[arg-type]
    check_host(host, ["192.168.7.10"], ("connection-reset", "network-delay", "network-loss"))  # type: ignore[arg-type]
    assert host.asked[-1] == ("192.168.7.10", [], ["connection-reset"], ["network-delay"])


class Nodes:
    """Two hosts, the second of which may not answer."""

    def __init__(self) -> None:
        self.rules = [1, 1]
        self.answers = True

    @contextmanager
    def helper(self, number: int) -> Iterator[object]:
        if number == 1 and not self.answers:
            raise PlatformError("host second: does not answer")

        def lift(fault: str) -> int:
            assert fault == "first"
            lifted, self.rules[number] = self.rules[number], 0
            return lifted

        yield SimpleNamespace(lift=lift)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    made = create_run(tmp_path / "reports", "network")
    yield made
    made.lock.release()


def test_all_that_answer_are_mended_and_the_step_stays_open_for_the_others(run: RunDirectory) -> None:
    nodes = Nodes()
    context = UndoContext(run.token, SYSTEM_CLOCK, nodes=nodes)  # type: ignore[arg-type]
    arguments = {"run_dir": str(run.path.resolve()), "fault": "first", "nodes": [1], "hosts": [0, 1]}
    step = UndoStep("first-network", "first", "mend-network", arguments)
    nodes.answers = False
    with pytest.raises(CannotUndo, match=r"removed 1 rules from the other hosts; host second: .* run chaos heal"):
        UNDO_ACTIONS[step.action](step, context)
    assert nodes.rules == [0, 1]
    nodes.answers = True
    assert UNDO_ACTIONS[step.action](step, context) == "removed 1 rules from the hosts"
    assert UNDO_ACTIONS[step.action](step, context) == "removed 0 rules from the hosts"
    with pytest.raises(CannotUndo, match="does not say how its hosts are reached"):
        UNDO_ACTIONS[step.action](step, UndoContext(run.token, SYSTEM_CLOCK))
    with pytest.raises(CannotUndo, match="is no directory of this run"):
        UNDO_ACTIONS[step.action](step, UndoContext("another", SYSTEM_CLOCK, nodes=nodes))  # type: ignore[arg-type]
