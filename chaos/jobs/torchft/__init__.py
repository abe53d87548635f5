"""Jobs of torchft: replica groups that a lighthouse brings together, each a process of the user's own script."""
