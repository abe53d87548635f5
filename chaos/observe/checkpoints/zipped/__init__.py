"""Zip archives as containers of checkpoints, and the files of numpy, which are archives of arrays."""
