"""From a cell to its plan, and whether this machine and platform can run it."""
