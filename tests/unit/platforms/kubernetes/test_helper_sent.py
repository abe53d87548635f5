"""A remote helper that is sent over a stream works, and leaves nothing in its pod, also when it is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.machine.remote.bundle import bundle, helper_argv
from chaos.machine.remote.client import HelperClient
from chaos.machine.remote.transport import SubprocessTransport


def test_a_helper_that_was_sent_leaves_no_file_when_it_is_killed(token: str, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary)}
    transport = SubprocessTransport(helper_argv(sys.executable), environment)
    transport.write(bundle())
    helper = HelperClient(transport, 0, token)
    try:
        assert helper.find() == []
        assert helper.clock_offset(SYSTEM_CLOCK).error >= 0
        assert list(temporary.iterdir()) == []
        opened = {str(path.readlink()) for path in Path(f"/proc/{transport.pid}/fd").iterdir()}
        assert any("remote_helper.pyz" in path and "deleted" in path for path in opened), (
            "it is that file that is looked for"
        )
        os.kill(transport.pid, signal.SIGKILL)
        wait_for("end", lambda: helper.lost is not None, seconds=60)
        assert list(temporary.iterdir()) == []
    finally:
        helper.close()
