"""The subjects of the check ``consistency``: the ranks of a replica group, step by step."""
