"""The router's namespace, held by a child of the harness: when the harness ends, in any way, the network is gone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from chaos.base.clock import Clock
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.linux.process import identify
from chaos.machine.linux.procfs import PROC
from chaos.machine.remote.transport import OWN_GROUP
from chaos.platforms.network.router import HOLDS_FOR, RECORD, Router

_HOLD = ("unshare", "--net", "--", "cat")
"""The holder of a namespace: it ends when its input does, which is when the harness has ended."""

_START_SECONDS = 10.0


class HeldRouter:
    """A router of the run in ``run_dir``, which has its record meanwhile."""

    def __init__(self, run_dir: Path, clock: Clock) -> None:
        """Make the namespace and its router. Raises PlatformError."""
        self._run_dir = run_dir
        self._made: Router | None = None
        try:
            # Ctrl-C is for the harness: the network has to exist until its faults have been put back.
            environment = {**os.environ, HOLDS_FOR: str(run_dir.resolve())}
            self._holder = subprocess.Popen(
                _HOLD, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, **OWN_GROUP
            )
        except OSError as error:
            raise PlatformError(f"no network namespace can be made: {error}") from error
        try:
            self._made = Router(own_namespace(self._holder.pid, clock))
            self.router.record(run_dir)
            self.router.begin()
        except BaseException:
            self.close()
            raise

    @property
    def router(self) -> Router:
        """The router."""
        assert self._made is not None
        return self._made

    def close(self) -> None:
        """End the holder; may be called twice."""
        if self._made is not None:
            self._made.relays.close()
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait()
        (self._run_dir / RECORD).unlink(missing_ok=True)


def own_namespace(pid: int, clock: Clock) -> Namespace:
    """Return the network namespace of a process, once it has left this process's own. Raises PlatformError."""
    deadline = clock.mono() + int(_START_SECONDS * 1e9)
    while clock.mono() < deadline:
        try:
            if os.readlink(PROC / str(pid) / "ns" / "net") != os.readlink(PROC / "self" / "ns" / "net"):  # noqa: PTH115
                return Namespace(identify(pid))
        except OSError as error:
            raise PlatformError(f"process {pid} has ended before it had a network of its own") from error
        clock.sleep(0.01)
    raise PlatformError(f"process {pid} has no network of its own after {_START_SECONDS:g} s")
