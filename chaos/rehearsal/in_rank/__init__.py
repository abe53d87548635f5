"""What is altered inside a rank of a rehearsal."""
