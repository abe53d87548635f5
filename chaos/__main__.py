"""``python -m chaos`` is the command ``chaos``."""

import sys

from chaos.cli.main import entry

if __name__ == "__main__":
    sys.exit(entry())
