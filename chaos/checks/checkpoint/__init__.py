"""What the check ``checkpoint`` looks at: end-of-life and periodic checkpoints, their records and values."""
