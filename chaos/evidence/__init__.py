"""The evidence of a run and the words for it: artifacts, events, times, recoveries, doubts, findings."""
