"""The rehearsal of jobs of PyTorch: real torchrun, torch and DDP on a CPU, on a device layer that stands in."""
