"""The keys of the platform ``ssh`` (``cluster.ssh``)."""

from __future__ import annotations

from pydantic import Field

from chaos.scenario.models.terms import Model


class Ssh(Model):
    """The hosts that the job lives on."""

    inventory: str = Field(
        min_length=1,
        description="Inventory of the hosts (docs/guides/ssh.md in the repository), relative to the scenario file.",
    )
