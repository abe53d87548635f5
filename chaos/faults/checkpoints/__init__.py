"""Saved checkpoints that are lost, cut, changed, renamed or too old.

A damaged file keeps its name, mode and times. Where a checkpoint is several files, the parameter ``part`` selects the
file: ``model`` (the default); in MindFormers' new layout ``optimizer``, ``common.json`` or ``metadata.json``; in a
directory of PyTorch's distributed checkpoints ``.metadata``, and ``model`` is the file that the rank has written.
"""
