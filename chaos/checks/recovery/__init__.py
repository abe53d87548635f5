"""The subjects of the check ``recovery``: the phases of a recovery, their times, and its options."""
