"""The program of the lighthouse: torchft reads the options from the command line of a script."""

from __future__ import annotations

import sys


def main() -> int:
    """Serve until a signal ends the process."""
    from torchft._torchft import lighthouse_main

    lighthouse_main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
