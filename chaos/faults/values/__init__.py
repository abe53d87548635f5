"""Values that a rank alters: bits, losses, gradients, batches."""
