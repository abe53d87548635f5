"""TTP: a last checkpoint is saved when the job ends."""
