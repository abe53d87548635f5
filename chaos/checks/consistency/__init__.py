"""What the check ``consistency`` looks at: the ranks of a replica group, step by step."""
