"""What the check ``resume`` looks at: where training goes on, with which state and which batches."""
