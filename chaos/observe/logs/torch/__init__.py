"""Readers for PyTorch jobs: torchrun, the ranks, Megatron with MindSpeed, and losses that scripts print."""
