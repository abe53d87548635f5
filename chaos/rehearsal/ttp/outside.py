"""A controller outside the ranks: started before the launcher, which takes this process's place.

Usage: ``python -m chaos.rehearsal.ttp.outside RANKS ADDRESS PORT LAUNCHER [ARGUMENT …]``. In production the agent of
MindCluster hosts the controller in this way, with rank -1.
"""

from __future__ import annotations

import os
import sys
import time

from chaos.agent.leaving import leave
from chaos.rehearsal import finished_ranks

_POLL_SECONDS = 0.1
_EXIT_SECONDS = 3.0
"""How long no further rank has been ordered to exit when all have been: the vendor orders one after the other."""


def main(arguments: list[str]) -> None:
    """Fork: the child is the controller until nothing is left to watch, this process becomes the launcher.

    It does so only once the controller listens: without a controller the ranks would look for it until their patience
    is over.
    """
    ranks, address, port, *launcher = arguments
    ready, listening = os.pipe()
    if child := os.fork():
        os.close(listening)
        if os.read(ready, 1):
            os.close(ready)
            os.execv(launcher[0], launcher)
        # It has printed the reason. Its code is that of the vendor's controller that cannot start.
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.close(ready)
    os.setsid()
    # Imported here: only the controller needs them.
    from mindio_ttp import framework_ttp

    framework_ttp.tft_init_controller(-1, int(ranks), False)
    framework_ttp.tft_start_controller(address, int(port), False, "")
    os.write(listening, b"1")
    os.close(listening)
    why = _wait_for_end(int(ranks))
    framework_ttp.tft_destroy_controller()
    leave(0, f"the controller outside the ranks ends: {why}")


def _wait_for_end(ranks: int) -> str:
    """Wait until every rank has trained to its end, or all living ranks have been ordered to exit.

    Returns which it is.
    """
    exiting, since = 0, time.monotonic()
    while finished_ranks.count_noted(finished_ranks.TRAINED) < ranks:
        if (now := finished_ranks.count_noted(finished_ranks.EXITING)) != exiting:
            exiting, since = now, time.monotonic()
        if exiting and time.monotonic() - since > _EXIT_SECONDS:
            return f"{exiting} of {ranks} ranks were told to exit, the last {_EXIT_SECONDS:g} s ago"
        time.sleep(_POLL_SECONDS)
    return f"all {ranks} ranks have trained to their end"


if __name__ == "__main__":
    main(sys.argv[1:])
