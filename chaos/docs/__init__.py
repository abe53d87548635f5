"""The generated pages of docs/: ``python -m chaos.docs`` writes them anew from schema, registries and docstrings."""
