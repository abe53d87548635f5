"""Starting a job and following it: its processes, agents, exits and clocks."""
