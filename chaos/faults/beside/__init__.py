"""Processes of the harness beside a job that faults need: load, memory, slow opens. Standard library only."""
