"""The page of many runs: times of each phase over nights, with what changed."""
