"""What `chaos watch` shows: of an attached job, and of a run."""
