"""Attached jobs, which were running already: choosing a job, making faults in it, watching it."""
