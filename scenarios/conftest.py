"""Of scenarios that show one promise some run every day, and the cells that are named here every night."""

import pytest

from chaos.pytest_plugin.scenario_item import ScenarioItem

NIGHTLY = {
    "mindformers-kill-resume": ["config=llama.yaml", "config=qwen3.yaml"],
    "partition": ["direction=in", "direction=both"],
    "plain-clock-skew": ["offset=-3600"],
    "plain-damaged-checkpoint": ["damage=rename-checkpoint"],
    "plain-damaged-group": ["interval=8"],
    "plain-ecc": ["phase=step.end"],
    "plain-hang": ["kind=hold-gil"],
    "plain-kill-phases": ["phase=optimizer.update"],
    "plain-late-rank": ["kind=hang"],
    "plain-nonfinite-loss": ["value=inf"],
    "plain-rsc-groups": ["phase=allreduce.enter"],
    "plain-stages": ["rank=1"],
    "plain-suspend-rank": ["agent=true"],
    "plain-uce": ["phase=optimizer.update"],
    "plain-uce-no-replica": ['strategy="low level"'],
}
"""Cells by scenario. Other cells of each run every day."""

SHOWN_BY = {
    "arf": "plain-arf",
    "disk-full": "plain-disk-full",
    "ecc": "plain-ecc",
    "hcce": "plain-hcce",
    "rsc": "plain-rsc",
    "tre": "plain-tre",
    "tsp": "plain-tsp",
}
"""What plain ranks show every day in seconds, and a job of MindSpore every night in a minute."""

RUN_BY_TESTS = {
    "kill-rank": "tests/rehearsal/test_kill_rank.py",
    "plain-kill-rank": "tests/rehearsal/test_plain.py",
    "plain-partition-lasts": "tests/rehearsal/nodes/test_partition_that_lasts.py",
}
"""Scenarios that tests run every day, as a user does, and look at more closely."""


AT_NIGHT = {
    "distributed-recovery": "each rank loads what only some have read",
    "kill-controller": "the rank that holds the controller is lost",
    "kill-during-save": "a rank is lost while it saves",
    "kill-node": "all ranks of a node are lost at once",
    "memory-store": "a recovery from memory is compared with one from files",
    "mindformers-callbacks": "callbacks of MindFormers' own; mindformers-kill-resume trains with MindFormers every day",
    "order-uce-arf-ttp": "three mechanisms answer in the vendor's order",
    "plain-arf-node-in-vain": "a node is lost, and rescheduling does not help",
    "plain-arf-twice": "a rank is lost while another is rescheduled",
    "plain-arf-twice-clean": "a rank is lost after another was rescheduled",
    "plain-network-loss": "packets between nodes are lost for a while",
    "plain-network-rate": "the network between nodes is slow for a while",
    "plain-own-launcher-nodes": "a launcher of one's own starts the ranks of each of two nodes",
    "plain-partition-heals": "a partition ends before anybody is lost",
    "plain-stages-arf": "a rank of the last stage of a pipeline is replaced",
    "plain-stages-restart": "a pipeline that nothing protects is started again",
    "plain-stages-slices": "a pipeline has slices, too",
    "plain-stages-uce": "a memory error in a stage of a pipeline is repaired",
    "port-blocked": "a port lets nothing through for a second",
    "read-only": "a save is refused for the reason that plain-storage-refused shows every day",
    "straggler": "a slow rank holds all up, and none is lost",
    "strategy-dump-exit": "the cluster's agent allows two strategies",
    "terminate-rank": "a rank takes SIGTERM, and trains on",
    "tre-overwritten-names": "a known finding of MindSpore's",
    "tsp-death": "a rank is lost while all are paused",
    "uce": "a memory error is repaired from a replica",
    "uce-low-level": "a memory error is repaired by its older strategy",
}
"""Scenarios that take long, most of them of MindSpore, and what they show. Unit tests show it every day, without it."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cells of the night, and begin with the longest, so that no worker is left alone with them."""
    for item in items:
        if isinstance(item, ScenarioItem) and _is_of_the_night(item):
            item.add_marker("nightly")
    items.sort(key=_length)


def _is_of_the_night(item: ScenarioItem) -> bool:
    scenario = item.cell.scenario.name
    named = [cell.name in NIGHTLY.get(scenario, ()) for cell in item.cells]
    return all(named) or any(scenario in names for names in (SHOWN_BY, RUN_BY_TESTS, AT_NIGHT))


def _length(item: pytest.Item) -> int:
    """Return the place of a cell in the order of a run: jobs of real scripts, of MindSpore, and of plain ranks last."""
    if item.path.parent.name in ("mindformers", "mindspore"):
        return 0
    return 2 if item.name.startswith("plain-") else 1
