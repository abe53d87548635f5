"""The plan for faults of the network between nodes."""

from __future__ import annotations

from chaos.faults.network.plan_partition import (
    check_partitions,
    explain_partitions,
    settle_partition,
    waits_for_the_end,
)
from chaos.faults.network.plan_ports import check_ports
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Rules
from chaos.plan.problems import Problems


def check(draft: Draft, problems: Problems) -> None:
    """Note ports that are not there, and partitions whose effect on the job is not known."""
    check_ports(draft, problems)
    check_partitions(draft, problems)


RULES = Rules(
    order=60,
    listed=10,
    settle=settle_partition,
    check=check,
    explain=explain_partitions,
    waits=waits_for_the_end,
)
