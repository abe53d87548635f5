"""The saves of checkpoints that are not written at once: in memory first, or by a thread of the job's own."""
