"""The hooks in a rank that PyTorch trains: its steps, its losses and batches, its checkpoints."""
