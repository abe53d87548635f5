"""What the check ``run`` looks at: whether the harness came to its end, and what kept the job waiting."""
