"""Stand-in for MindCluster's package of the same name. On a job's path only during a rehearsal."""
