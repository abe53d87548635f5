"""Jobs on hosts that are reached by SSH."""
