"""The remote helper: a small program that acts for the harness on a node, and the harness's side of it.

On the node run :mod:`program`, :mod:`listening` and :mod:`wire` (standard library, Python 3.9), with the parts of
:mod:`chaos.machine` that they need; :mod:`bundle` makes one file of them. :mod:`transport` and :mod:`client` are the
harness's.
"""
