"""What may be looked at in a run, and how it is said: artifacts, events, times, recoveries, doubts, findings."""
