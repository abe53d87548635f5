"""Stand-ins for what exists only on Ascend, and the jobs to rehearse on. Nothing outside imports this room."""
