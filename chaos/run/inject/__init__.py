"""Makes the faults of a plan when their triggers fire, and undoes lasting faults."""
