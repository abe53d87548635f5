"""Parts shared by the pages of runs: their frame, their look, the plotting library, and the content policy."""
