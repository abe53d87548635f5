"""What a plan refuses: one rule a module."""
