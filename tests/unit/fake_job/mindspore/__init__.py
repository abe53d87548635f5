"""As much of MindSpore's interface as the agent hooks, in plain Python: a rank that starts in milliseconds."""
