"""What a run's checkpoints are: whose, of which step, how whole, and with what in them."""
