"""The subjects of the check ``injection``: the planned faults, the proof of each, and no others."""
