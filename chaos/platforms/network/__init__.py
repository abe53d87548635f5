"""Networks that belong to one run alone, and the changes that faults make in them."""
