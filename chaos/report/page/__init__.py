"""The page of a run: its data, and what makes HTML of them."""
