"""The command line in this process, in a directory of its own."""

from tests.unit.cli.conftest import chaos, reports

__all__ = ["chaos", "reports"]
