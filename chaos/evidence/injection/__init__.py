"""The evidence that a fault landed: deaths, silence, agreement of witnesses, conditions that held."""
