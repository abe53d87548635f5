"""The page of a run: its data, and the HTML made from it."""
