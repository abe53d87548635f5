"""A controller outside the ranks: started before the launcher, which takes this process's place.

Usage: ``python -m chaos.rehearsal.ttp.outside RANKS ADDRESS PORT LAUNCHER [ARGUMENT …]``. In production the agent of
MindCluster hosts the controller in this way, with rank -1.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str]) -> None:
    """Fork: the child is the controller until nothing is left to watch, this process becomes the launcher.

    Not before the controller listens: without one the ranks would look for it until their patience is over.
    """
    ranks, address, port, *launcher = arguments
    ready, listening = os.pipe()
    if child := os.fork():
        os.close(listening)
        if os.read(ready, 1):
            os.close(ready)
            os.execv(launcher[0], launcher)
        # It has said why. Its code is that of the vendor's controller that cannot start.
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.close(ready)
    os.setsid()
    # Imported here: only the controller needs them.
    from mindio_ttp import framework_ttp

    framework_ttp.tft_init_controller(-1, int(ranks), False)
    framework_ttp.tft_start_controller(address, int(port), False, "")
    os.write(listening, b"1")
    os.close(listening)
    framework_ttp.wait_controller_finished()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
