"""The page of many runs: the night at a glance, and which faults were tried."""
