"""Saved checkpoints that are lost, cut, changed, renamed or too old.

A damaged file keeps its name, mode and times. Where a checkpoint is several files, in MindFormers' new layout, the
parameter ``part`` selects the file: ``model`` (the default), ``optimizer``, ``common.json`` or ``metadata.json``.
"""
