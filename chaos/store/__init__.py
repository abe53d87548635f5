"""The files of runs on disk: their directories and the owners, the key of a user, and the cache of baselines."""
