"""Faults of saved checkpoints: files that are lost, cut, changed, renamed or older than they should be.

A damaged file keeps its name, mode and times. Where a checkpoint is several files, in MindFormers' new layout, the
parameter ``part`` selects the file: ``model`` (the default), ``optimizer``, ``common.json`` or ``metadata.json``.
"""
