"""The fake job with a rank 0 that listens at the port of its launch, which somebody else may have taken."""

from __future__ import annotations

import socket
from dataclasses import replace

from chaos.jobs.kind import Command, Launch
from tests.unit.fake_job.kind import FakeJobKind

STRANGERS: list[socket.socket] = []
"""Listeners of this process at ports of launches."""


class ListeningJobKind(FakeJobKind):
    """Gives its launch's port to somebody else first, as many times as the job is told to."""

    def prepare(self, launch: Launch) -> None:
        """Take the port in place of the job."""
        super().prepare(launch)
        if len(STRANGERS) < int(launch.scenario.job.environment.get("STRANGERS", "0")):
            STRANGERS.append(socket.create_server(("127.0.0.1", launch.ports[0])))

    def command(self, launch: Launch) -> Command:
        """Have rank 0 listen."""
        command = super().command(launch)
        return replace(command, argv=(*command.argv, f"--listen={launch.ports[0]}"))


KIND = ListeningJobKind()
