"""Readers of the checkpoints that PyTorch writes, without PyTorch: nothing is unpickled into live objects."""
