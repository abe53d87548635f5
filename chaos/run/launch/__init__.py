"""Starts a job and follows it: its processes, agents, exits and clocks."""
