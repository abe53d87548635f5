"""The log of MindIO TTP, and what its parts say in it."""
