"""Making the faults of a plan when their triggers fire, and undoing those that last."""
