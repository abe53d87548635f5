"""What the plan has to know about the platform that a job lives on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlatformTraits:
    """Properties of a platform that decide what can be planned for a job there.

    ``one_launcher``: one launcher starts all ranks, so the job's nodes are groups of ranks. ``harness_machine``: the
    harness runs on the machine that the ranks run on, and would end with it. ``own_files``: each node has a copy of the
    run's directory, and sees nothing that other nodes write. ``for_hosts`` is what to do for a job on several hosts,
    ``for_machine`` for a fault that takes a machine, where the platform is none for it.
    """

    one_launcher: bool = False
    harness_machine: bool = False
    own_files: bool = False
    for_hosts: str = ""
    for_machine: str = ""


SEVERAL_HOSTS = PlatformTraits()
"""A platform of several machines that share their files, none of which the harness runs on."""
