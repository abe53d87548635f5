"""Which mechanism answers which faults, and what it must do."""
