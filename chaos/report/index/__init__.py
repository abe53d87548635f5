"""The page of many runs: the night at a glance, and what has been tried."""
