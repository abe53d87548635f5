"""The signatures of known defects: evidence in a run by which each is recognised, whatever the scenario."""
