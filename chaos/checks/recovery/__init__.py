"""What the check ``recovery`` looks at: the phases of a recovery, their times, and its options."""
