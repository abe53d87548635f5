"""The subjects of the check ``resume``: the step where training goes on, its state and its batches."""
