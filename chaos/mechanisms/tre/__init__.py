"""TRE: after an abnormal step training goes back to a checkpoint."""
