"""The state of a run on a terminal: small, also at 80 columns, and never shown by colour alone."""
