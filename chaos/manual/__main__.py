"""``python -m chaos.manual``: write the generated pages anew. Run it in the root of the repository."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from chaos.manual.pages import pages


def main() -> int:
    """Write every page; return 64 outside the repository's root, and refuse arguments."""
    parser = argparse.ArgumentParser("python -m chaos.manual", description="Write the generated pages of docs/ anew.")
    parser.parse_args()
    docs, scenarios = Path("docs"), Path("scenarios")
    if not docs.is_dir() or not scenarios.is_dir():
        print("there is no docs/ or no scenarios/ here: run it in the root of the repository", file=sys.stderr)
        return 64
    for name, page in pages(scenarios).items():
        (docs / name).write_text(page(), "utf-8")
        print(docs / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
