"""The plan's knowledge of the platform that a job runs on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlatformTraits:
    """Properties of a platform that decide which faults and jobs can be planned there.

    ``one_launcher``: one launcher starts all ranks, so the job's nodes are groups of ranks. ``harness_machine``: the
    harness runs on the machine that the ranks run on, and would end with it. ``own_files``: each node has a copy of the
    run's directory, and sees nothing that other nodes write. Where the platform does not suit them, ``for_hosts`` is
    the advice for a job on several hosts, ``for_machine`` for a fault that takes a machine.
    """

    one_launcher: bool = False
    harness_machine: bool = False
    own_files: bool = False
    for_hosts: str = ""
    for_machine: str = ""


SEVERAL_HOSTS = PlatformTraits()
"""A platform of several machines that share their files; the harness runs on none of them."""
