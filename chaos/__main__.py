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
    finally:
        _forget_interrupt()


def _forget_interrupt() -> None:
    """Let the exit code stand after an interrupt that came while a string was executed, as a dataclass is made of one.

    CPython (seen with 3.11) remembers such an interrupt, also when it was handled, and ends ``python -m`` by SIGINT in
    place of the exit code. The next string that is executed makes it forget.
    """
    exec("")


if __name__ == "__main__":
    sys.exit(main())
