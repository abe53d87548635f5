"""Processes that the harness runs beside a job for its faults: load, memory, slow opens. Standard library only."""
