"""``python -m chaos`` and the console script are the command ``chaos``."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Run the command line. An installation that is broken ends with 3: Python's own 1 would read as a verdict."""
    gc.set_threshold(100_000)  # a start makes fewer objects, and next to no garbage; 700 are the default
    try:
        from chaos.cli.main import entry

        return entry()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if sys.stderr is not None:
            print(f"chaos: the command cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
