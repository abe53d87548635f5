"""Networks that belong to one run alone, and what faults change in them."""
