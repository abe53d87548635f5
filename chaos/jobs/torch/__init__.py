"""Jobs of PyTorch: a script of the user's own under torchrun."""
