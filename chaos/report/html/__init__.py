"""What the pages of runs share: their frame, their look, the plotting library, and the content policy."""
