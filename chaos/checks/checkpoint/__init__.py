"""The subjects of the check ``checkpoint``: end-of-life and periodic checkpoints, their records and values."""
