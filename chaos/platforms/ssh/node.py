"""A node of the platform ``ssh``: a host, with the remote helper on it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.remote.client import HelperClient
from chaos.platforms.nodes import NodeState, Site
from chaos.platforms.ssh.inventory import Host

if TYPE_CHECKING:
    from chaos.platforms.network.links import NodeNetwork
    from chaos.platforms.ssh.connection import Connection
    from chaos.platforms.ssh.host_helper import HostHelper

MEETING = "meeting"


class SshNode:
    """One host of a run."""

    place: Mapping[str, Any] = MappingProxyType({})
    node_network: NodeNetwork | None = None

    def __init__(self, number: int, host: Host, site: Site, owners: dict[Path, str]) -> None:
        """Keep the host; ``owners``, shared by all hosts of the run, maps each copied log to its host."""
        from chaos.platforms.ssh.reach import Reach

        self._reach = Reach(host, site.clock)
        self.number = number
        self.address = host.data_address
        self.known: NodeState = "running"
        self.host = host
        self._site = site
        self._owners = owners
        self._helper: HostHelper | None = None
        self._settled: HelperClient | None = None
        self._ordered = False

    @property
    def private(self) -> Path:
        """The run's private directory for socket and secret on the host."""
        return self.helper.private

    @property
    def helper(self) -> HostHelper:
        """The remote helper on the host."""
        assert self._helper is not None
        return self._helper

    def ready(self) -> None:
        """Check that a helper answers there: a host that went and came back gets a new helper. Raises PlatformError."""
        if self._helper is not None and self._helper.lost is None and self.known == "running":
            return
        again = self._helper is not None
        connection = self._reach.connected(self.host.boot if again else 0.0)
        self._helper = self._start(connection)
        self.known, self._settled, self._ordered = "running", None, False

    def state(self) -> NodeState:
        """Return whether the host still has its processes.

        It is determined once for each remote helper that was lost.
        """
        if self._helper is None or self.known == "gone" or self._helper.lost is None or self._settled is self._helper:
            return self.known
        before = self._helper.introduction.boot
        boot = self._reach.boot_within(self.host.vanished, ending=before if self._ordered else None)
        if boot is None:
            self.known = "gone"
            self._record("host.vanished", why=self._helper.lost, seconds=self.host.vanished, boot=before)
        elif boot != before:
            self.known = "gone"
            self._record("host.rebooted", why=self._helper.lost, boot={"before": before, "after": boot})
        else:
            self._record("host.lost", why=self._helper.lost, boot=before)
        self._settled = self._helper
        return self.known

    def ended(self) -> ExitStatus:
        """Return an unknown status: nothing reports how processes end when their host goes."""
        return ExitStatus()

    def reboot(self, boot: str) -> None:
        """Order the reboot, over the connection that has shown the boot. Raises PlatformError."""
        from chaos.platforms.ssh.connection import HostUnreachable
        from chaos.platforms.ssh.reach import boot_shown

        if self.host.reboot is None:
            raise PlatformError(f"{self.host}: the inventory has no command that reboots it ('reboot')")
        command = shlex.join(self.host.reboot)
        self.helper.catch_up()
        with self._reach.connected(0.0) as connection:
            if (now := boot_shown(connection)) != boot:
                raise PlatformError(f"{self.host}: is in boot {now} before its reboot was ordered, not in {boot}")
            self._record("host.reboot", command=command)
            try:
                code, output = connection.run(command)
            except HostUnreachable:
                code, output = -1, ""  # it was quicker than its answer
            if code > 0:
                raise PlatformError(f"{self.host}: {command} ended with {code}: {output.strip()}")
            self._ordered = True

    def boot(self) -> str | None:
        """Return the host's boot ID now; None while it does not answer. Raises PlatformError when it refuses."""
        boot = self._reach.boot_within(0.0)
        if self._ordered and boot not in (None, self.helper.introduction.boot):
            self.known = "gone"
        return boot

    def close(self) -> None:
        """Close the remote helper."""
        if self._helper is not None:
            self._helper.close()

    def _start(self, connection: Connection) -> HostHelper:
        from chaos.platforms.ssh.host_helper import HostHelper

        site = self._site
        try:
            return HostHelper(
                connection,
                self.number,
                site.token,
                site.visitors,
                run_here=site.run_dir,
                private_here=site.private,
                meeting_here=site.private / MEETING,
                scenario_here=site.readable[0],
                owners=self._owners,
                tell=self._record,
            )
        except BaseException:
            connection.close()
            raise

    def _record(self, event: str, **fields: Any) -> None:
        self._site.record_event(event, node=self.number, host=self.host.name, **fields)
