"""Defects of jobs of PyTorch under torchrun: their files, their state, their data, and the restart of all ranks."""
