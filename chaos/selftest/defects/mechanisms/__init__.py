"""Defects of the mechanisms: of their actions, and of actions that they leave out."""
