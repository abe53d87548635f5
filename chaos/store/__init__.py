"""What runs leave on disk: their directories, who owns them, the key of a user, and the cache of baselines."""
