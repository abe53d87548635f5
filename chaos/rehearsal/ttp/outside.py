"""A controller outside the ranks: started before the launcher, which takes this process's place.

Usage: ``python -m chaos.rehearsal.ttp.outside RANKS ADDRESS PORT LAUNCHER [ARGUMENT …]``. In production the agent of
MindCluster hosts the controller in this way, with rank -1.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str]) -> None:
    """Fork: the child is the controller until nothing is left to watch, this process becomes the launcher."""
    ranks, address, port, *launcher = arguments
    if os.fork():
        os.execv(launcher[0], launcher)
    os.setsid()
    # Imported here: only the controller needs them.
    from mindio_ttp import framework_ttp

    framework_ttp.tft_init_controller(-1, int(ranks), False)
    framework_ttp.tft_start_controller(address, int(port), False, "")
    framework_ttp.wait_controller_finished()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
