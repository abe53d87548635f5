"""The pages of a directory of runs over HTTP: index, runs and those in progress. On loopback, read-only, by a token."""
