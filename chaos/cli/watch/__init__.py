"""What `chaos watch` shows."""
