"""Stand-ins for the Ascend-only parts, and the jobs to rehearse on. No other room imports this one."""
