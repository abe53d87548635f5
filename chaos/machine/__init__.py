"""This machine and the jobs on it: Linux, cards, a job's processes, jobs found here, the remote helper, leases."""
