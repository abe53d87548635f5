"""The generated pages of docs/: ``python -m chaos.manual`` writes them anew from schema, registries and docstrings."""
