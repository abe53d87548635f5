"""Ranks in plain Python and numpy: the job of the kind ``plain``, which needs no framework."""
