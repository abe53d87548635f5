"""The commands, one module each; `chaos/cli/main.py` lists them."""
